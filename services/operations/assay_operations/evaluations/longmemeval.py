"""Evaluate a memory on LongMemEval: each question is asked once, scored, and stored."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.errors import OperationError
from assay_operations.evaluations.longmemeval_judge import Graded, Grader, Label, labelled, labels_of
from assay_operations.evaluations.longmemeval_output import Output, read_results
from assay_operations.evaluations.target import TargetConfig, log_no_tries
from assay_operations.numbers import a_number
from assay_operations.progress import Counts
from assay_runtime.private import write_whole

if TYPE_CHECKING:
    from assay_evals.longmemeval.comparison import Compared
    from assay_evals.longmemeval.memory import Bm25Memory, HookedMemory
    from assay_evals.longmemeval.reading import Survey
    from assay_evals.longmemeval.results import Result
    from assay_evals.longmemeval.rows import Row
    from assay_evals.longmemeval.summary import Share
    from assay_evals.target.response import TargetResponse
    from assay_evals.target.runner import QueryResult, RunnerOptions
    from assay_evals.target.targets import Question

    Item = tuple[Row, Result | None]

#: Dollars that the models of a run may cost unless an option names another amount.
DEFAULT_BUDGET_USD = 1.0


@dataclass(frozen=True)
class LongMemEvalRequest:
    """Options of `assay eval longmemeval`; None is the default."""

    dataset: Path
    system: TargetConfig
    ingest: str | None = None
    top_k: int = 10
    limit: int | None = None
    retrieval_only: bool = False
    keyword_only: bool = False
    expansion: bool = False
    model: str | None = None
    judge: str | None = None
    judge_budget: str | None = None
    labels: Path | None = None
    by_type: bool = False
    by_type_floor: str | None = None
    output: Path | None = None
    resume: bool = False
    baseline: Path | None = None
    #: File of the cost of all runs that share the budget; None: of this run, named like the output.
    spending: Path | None = None


@dataclass(frozen=True)
class Finished:
    """A complete run.

    `by_type`: the last line of its output; None unless wanted. `below`: types below the floor.
    """

    results: "list[Result]"
    summary: dict[str, Any]
    by_type: dict[str, Any] | None
    below: "dict[str, Share]"
    compared: "Compared | None"


def prepare_longmemeval(request: LongMemEvalRequest) -> "PreparedLongMemEval":
    """Validate everything before a question is asked.

    Raises `OperationError`, `EvalsError`, `SettingsError`.
    """
    from assay_evals.longmemeval.reading import survey

    floor = _expect_valid(request)
    labels = labels_of(request.labels) if request.labels else None
    baseline = read_results(request.baseline, "--baseline") if request.baseline else None
    if baseline is not None and not baseline:
        raise OperationError("invalid", f"--baseline: {request.baseline} contains no results")
    judged = not request.retrieval_only
    found = survey(request.dataset, request.limit, judged=judged)
    if floor is not None and not found.measurable:
        raise OperationError(
            "invalid", "--by-type-floor: no question has evidence (answer_session_ids), so there is no recall"
        )
    judge = None if request.labels else request.judge or "lexical"
    budget = a_number(request.judge_budget, "--judge-budget")
    grader = (
        Grader(judge, request.model, DEFAULT_BUDGET_USD if budget is None else budget, request.top_k)
        if judged
        else None
    )
    memory, options = _open_memory(request)
    begun_with, seals = _inputs(request, found.sha256, grader)
    output = Output(request.output, begun_with, seals, resume=request.resume)
    try:
        if grader is not None:
            grader.keep_spending_in(request.spending or output.beside("judge.ndjson"))
    except OperationError:
        output.close()
        raise
    return PreparedLongMemEval(request, found, grader, labels, memory, options, output, floor, baseline, begun_with)


def _expect_valid(request: LongMemEvalRequest) -> float | None:
    """Raise `OperationError` for options that are invalid or exclude one another. Returns the floor."""
    from assay_evals.longmemeval.memory import RESULTS_MAX

    for option, value in (("--top-k", request.top_k), ("--limit", request.limit)):
        if value is not None and value < 1:
            raise OperationError("invalid", f"{option}: {value} is below 1")
    if request.top_k > RESULTS_MAX:
        raise OperationError("invalid", f"--top-k: {request.top_k} is above {RESULTS_MAX:,}")
    if request.resume and request.output is None:
        raise OperationError("invalid", "--resume needs --output, the file with the results so far")
    if request.retrieval_only:
        for option, given in (("--model", request.model), ("--judge", request.judge), ("--labels", request.labels)):
            if given is not None:
                raise OperationError(
                    "invalid", f"{option} judges answers, and --retrieval-only has none: pass one of them"
                )
    if request.labels and request.judge:
        raise OperationError("invalid", "--labels replaces the judge: pass --labels or --judge")
    budget = a_number(request.judge_budget, "--judge-budget")
    if budget is not None and budget < 0:
        raise OperationError("invalid", "--judge-budget: below 0")
    floor = a_number(request.by_type_floor, "--by-type-floor")
    if floor is not None and not 0 <= floor <= 1:
        raise OperationError("invalid", f"--by-type-floor: {request.by_type_floor} is not between 0 and 1")
    _expect_hooks(request.system.target, request.ingest)
    return floor


def _expect_hooks(target: str, ingest: str | None) -> None:
    from assay_evals.longmemeval.memory import BM25

    if target == BM25:
        if ingest is not None:
            raise OperationError("invalid", f"--ingest: the memory {BM25} needs no other target: pass --target")
    elif "{query}" in (ingest or target):
        raise OperationError(
            "invalid",
            "an address with {query} is called with GET, which cannot carry sessions: name one without it, with --ingest",
        )


def _open_memory(request: LongMemEvalRequest) -> "tuple[HookedMemory | Bm25Memory, RunnerOptions]":
    from assay_evals.longmemeval.memory import BM25, Bm25Memory, HookedMemory
    from assay_evals.target.runner import RunnerOptions

    system = request.system
    if system.target != BM25:
        ask, options = system.open()
        if request.ingest is None:
            return HookedMemory(ask, ask), options
        try:
            return HookedMemory(ask, replace(system, target=request.ingest).open()[0]), options
        except OperationError as error:
            raise OperationError("invalid", str(error).replace("--target", "--ingest", 1)) from None
    log_no_tries()
    try:
        return Bm25Memory(), RunnerOptions(
            system.concurrency, system.deadline_s, system.retries, on_error=system.on_error
        )
    except ValueError as error:
        raise OperationError("invalid", f"--{error}") from None


def _inputs(request: LongMemEvalRequest, sha256: str, grader: Grader | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a run depends on, without secrets, and the full names of its targets."""
    from assay_evals.target.redaction import redact_target

    names = {"target": request.system.target} | ({"ingest": request.ingest} if request.ingest else {})
    inputs: dict[str, Any] = {
        "dataset": request.dataset.name,
        "dataset_sha256": sha256,
        "target": redact_target(request.system.target),
        "ingest": redact_target(request.ingest) if request.ingest else None,
        "top_k": request.top_k,
        "retrieval_only": request.retrieval_only,
        "keyword_only": request.keyword_only,
        "expansion": request.expansion,
        "model": request.model,
        "reader": grader.reader if grader else None,
    }
    # With labels of a file, there is no judge that could differ.
    return inputs | ({} if request.labels else {"judge": grader.identity if grader else None}), names


@dataclass(frozen=True)
class PreparedLongMemEval:
    """A run that passed every check that costs nothing."""

    request: LongMemEvalRequest
    survey: "Survey"
    grader: Grader | None
    labels: dict[str, Label] | None
    memory: "HookedMemory | Bm25Memory"
    options: "RunnerOptions"
    output: Output
    floor: float | None
    baseline: "list[Result] | None"
    begun_with: dict[str, Any]

    def run(
        self,
        counter: Counts,
        on_result: "Callable[[Result], None] | None" = None,
        *,
        within_s: float | None = None,
    ) -> Finished:
        """Ask what is missing, store each result as it is done, and summarize all of them.

        Raises `TimeoutError` after `within_s` seconds; what is done is kept.
        """
        counter.total = self.survey.questions

        async def ask() -> list[str]:
            async with asyncio.timeout(within_s):
                return await self._ask(counter, on_result)

        return self._finish(asyncio.run(ask()))

    async def _ask(self, counter: Counts, on_result: "Callable[[Result], None] | None") -> list[str]:
        from assay_evals.longmemeval.memory import AnsweredBefore
        from assay_evals.target.runner import stream_queries

        async def grade(item: "Item", response: "TargetResponse") -> dict[str, float | None]:
            row, earlier = item
            if earlier is not None and self.grader is not None:
                again = await self.grader.label(row, earlier.hypothesis)
                self._store(replace(earlier, label=again.label, judge=again.judge, judge_error=again.judge_error))
                return {}
            graded = await self.grader(row, response) if self.grader is not None else Graded()
            self._store(self._answered(row, response, graded))  # at once: a kill loses no answer that was paid
            return {}

        order: list[str] = []
        replies = stream_queries(AnsweredBefore(self.memory), self._items(), self._question, self.options, judge=grade)
        try:
            async with aclosing(replies):
                async for reply in replies:
                    row, _ = reply.item
                    result = self.output.done.get(row.id) or self._failed(reply)
                    if result != self.output.done.get(row.id) or self.labels is not None:
                        result = self._store(result)
                    order.append(row.id)
                    counter.rows += 1
                    if on_result:
                        on_result(result)
            return order
        finally:
            await self.memory.close()
            if self.grader is not None:
                await self.grader.close()
            if len(order) < self.survey.questions:
                self.output.close()

    def _items(self) -> "Iterator[Item]":
        from assay_evals.longmemeval.reading import read_rows

        for row in read_rows(self.request.dataset, self.request.limit):
            yield row, self.output.done.get(row.id)

    def _question(self, item: "Item") -> "Question | None":
        from assay_evals.longmemeval.memory import MemoryQuestion

        row, earlier = item
        if earlier is not None:
            unjudged = earlier.judge_error is not None and self.grader is not None and self.labels is None
            return MemoryQuestion(row.question, row=row, answer=earlier.hypothesis) if unjudged else None
        return MemoryQuestion(
            row.question,
            self.request.top_k,
            "search" if self.request.keyword_only else "query",
            expand_enabled=self.request.expansion or None,
            row=row,
            token=self.output.token,
        )

    def _store(self, result: "Result") -> "Result":
        """Store a result unless it is, with its label from the file of labels if there is one."""
        if self.labels is not None:
            result = labelled(result, self.labels)
        if result != self.output.done.get(result.question_id):
            self.output.add(result)
        return result

    def _answered(self, row: "Row", response: "TargetResponse", graded: Graded) -> "Result":
        from assay_evals.longmemeval.memory import ranking
        from assay_evals.longmemeval.results import result_of

        times = {"latency_ms": response.latency_ms, "ingest_ms": self.memory.ingest_ms.pop(row.id, None)}
        return result_of(row, ranking(row, response), self.request.top_k, **vars(graded), **times)

    def _failed(self, reply: "QueryResult[Item]") -> "Result":
        from assay_evals.longmemeval.results import result_of

        row = reply.item[0]
        ingest_ms = self.memory.ingest_ms.pop(row.id, None)
        return result_of(row, [], self.request.top_k, error=reply.error or "no answer", ingest_ms=ingest_ms)

    def _finish(self, order: Sequence[str]) -> Finished:
        from assay_evals.longmemeval.comparison import compare
        from assay_evals.longmemeval.summary import below_floor, recall_by_type, summary

        wanted = self.request.by_type or self.floor is not None
        results = [self.output.done[name] for name in dict.fromkeys(order)]
        try:
            self.output.finish(order, recall_by_type(results) if wanted else None)
        finally:
            self.output.close()
        if all(each.error is not None for each in results):
            raise OperationError("unavailable", f"no question was answered; the first error: {results[0].error}")
        document = summary(results, self._described(results))
        self._write(document)  # a baseline of another dataset is found below, and the run is paid
        compared = compare(self.baseline, results) if self.baseline is not None else None
        if compared is not None:
            document["comparison"] = {"baseline": str(self.request.baseline)} | compared.as_json()
            self._write(document)
        below = below_floor(results, self.floor) if self.floor is not None else {}
        return Finished(results, document, recall_by_type(results) if wanted else None, below, compared)

    def _write(self, document: dict[str, Any]) -> None:
        if (path := self.output.beside("summary.json")) is not None:
            write_whole(path, orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")

    def _described(self, results: "Sequence[Result]") -> dict[str, Any]:
        from assay_evals.longmemeval.judging import LEXICAL, REFERENCE_MODEL
        from assay_evals.longmemeval.reading import RELEASES

        judges = sorted({each.judge for each in results if each.judge is not None})
        # Labels of the benchmark's judge, for each question of a release.
        comparable = (
            self.labels is not None
            and judges == [REFERENCE_MODEL]
            and self.survey.sha256 in RELEASES
            and self.request.limit is None
            and not any(each.judge_error for each in results)
        )
        return {
            "dataset": {
                "name": self.request.dataset.name,
                "sha256": self.survey.sha256,
                "release": RELEASES.get(self.survey.sha256),
                "questions": self.survey.questions,
                "quirks": dict(self.survey.quirks),
            },
            **{
                name: value
                for name, value in self.begun_with.items()
                if not name.startswith("dataset") and name not in ("judge", "reader")
            },
            "judge": {
                "models": judges,
                "offline_baseline": judges == [LEXICAL],
                "comparable_with_published": comparable,
            }
            if judges
            else None,
        }
