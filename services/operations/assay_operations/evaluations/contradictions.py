"""Judge pairs of retrieved documents for contradictions, within a budget that is never exceeded."""

import asyncio
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.clients import DEFAULT_DATA
from assay_operations.errors import OperationError
from assay_operations.evaluations.contradiction_sources import LIMIT_MOST, Read, Source, expect_one, read_questions
from assay_operations.evaluations.contradiction_store import expect_store, known_findings, store_run
from assay_operations.evaluations.files import expect_output, write_output
from assay_operations.evaluations.judge_spending import NoMoneyError
from assay_operations.evaluations.paid_calls import PaidCalls, judge_settings
from assay_operations.progress import Counts, Unseen
from assay_schema.limits import PROJECT_PATTERN

if TYPE_CHECKING:
    from assay_evals.contradictions.findings import History, State
    from assay_evals.contradictions.judging import Opinion, Severity
    from assay_evals.contradictions.pairs import Pair
    from assay_evals.contradictions.report import Facts, Result, Series
    from assay_judge.api import CallError
    from assay_judge.pricing import Usage

#: Tokens of a usual reply, for the estimate.
_REPLY_TOKENS = 200
TOP_K_MOST, CONCURRENCY_MOST = 50, 32
CHARS_LEAST, CHARS_MOST = 100, 50_000
PAIRS_MOST = 100_000


@dataclass(frozen=True)
class ContradictionsRequest:
    """The source, the pairs, the judge and its limits.

    `spending`: file of the cost of all runs that share the budget; None: only this one.

    `pairs_per_query`: None for all pairs. `max_pair_chars`: of each text. `cached_in`: None to pay for every reply again. `store`: False
    to store nothing, and to know nothing of earlier runs.
    """

    source: Source
    pairs_per_query: int | None = None
    max_pair_chars: int = 1_500
    model: str | None = None
    budget_usd: float = 5.0
    concurrency: int = 4
    cached_in: Path | None = None
    output: Path | None = None
    spending: Path | None = None
    store: bool = True
    data: Path = DEFAULT_DATA


@dataclass(frozen=True)
class Finished:
    """A run: its facts, all pairs, the states of findings, and the report."""

    facts: "Facts"
    results: "Sequence[Result]"
    states: "Mapping[str, State]"
    report: dict[str, Any]
    #: Keys of pairs with an open finding that their question no longer retrieves.
    gone: frozenset[str] = frozenset()


@dataclass
class PreparedContradictions:
    """A run that passed every check that costs nothing."""

    request: ContradictionsRequest
    read: Read
    pairs: "list[Pair]"
    calls: PaidCalls
    series: "Series"
    history: "History"
    #: Usual cost, and the part of the budget that earlier runs left, in US dollars.
    estimated_usd: float
    left_usd: float
    #: Why no further pair is judged; empty while pairs are.
    _stopped: str = ""

    @property
    def cost_usd(self) -> float:
        """Maximum cost of the calls of this process, in US dollars."""
        from assay_judge.pricing import dollars

        return dollars(self.calls.own)

    def run(self, counter: Counts | None = None, *, within_s: float | None = None) -> Finished:
        """Judge the pairs. This calls the API and costs money; the caller stores the result.

        Raises `TimeoutError` after `within_s` seconds.
        """
        from assay_evals.contradictions.findings import gone_pairs, states
        from assay_evals.contradictions.report import Facts, report_of

        started = datetime.now(UTC)

        async def judge() -> "list[Result]":
            async with asyncio.timeout(within_s):
                return await self._judge_all(counter or Unseen())

        results = asyncio.run(judge())
        source, request = self.request.source, self.request
        facts = Facts(
            run_id=str(uuid.uuid4()),
            project=source.project,
            series=self.series,
            judge_model=self.calls.settings.model,
            started_at=started,
            completed_at=datetime.now(UTC),
            top_k=source.top_k,
            seed=source.seed,
            estimated_usd=self.estimated_usd,
            cost_usd=self.cost_usd,
            max_usd=request.budget_usd,
            cache=self._cache(),
            stopped_by=self._stopped,
            without_pairs=self.read.without_pairs,
        )
        found = [each.finding_id for each in results if each.finding_id]
        certain = [each.pair.key for each in results if each.is_certain]
        known = self.history.known
        gone = gone_pairs(known, self.read.retrieved, (self.series.sampling, self.series.scope))
        of_findings = states(found, certain, known, gone) if request.store else {}
        return Finished(facts, results, of_findings, report_of(facts, results, of_findings), gone)

    def standing(self, done: Finished) -> "set[Severity]":
        """Return the severities of findings in pairs that no person refuted: a gate may fail for them."""
        return {
            each.opinion.severity
            for each in done.results
            if each.opinion is not None and each.is_finding
            if not self.history.is_refuted(each.finding_id, each.pair.key)
        }

    def keep(self, done: Finished) -> None:
        """Store the run, and write the output file if there is one; neither prevents the other.

        Raises `OperationError`.
        """
        try:
            if self.request.store:
                store_run(
                    self.request.data,
                    done.facts,
                    done.results,
                    done.states,
                    done.report,
                    self.read.captured_at,
                    done.gone,
                )
        except OperationError as error:
            again = "replies are cached: run the same command again" if self.calls.cache else "its replies are lost"
            raise OperationError(error.kind, f"{error}; the run is not stored, {again}") from None
        finally:
            write_output(self.request.output, done.report)

    def _cache(self) -> dict[str, Any] | None:
        from assay_judge.pricing import dollars

        cache = self.calls.cache
        return (
            None if cache is None else {"hits": cache.hits, "misses": cache.misses, "saved_usd": dollars(cache.saved)}
        )

    async def _judge_all(self, counts: Counts) -> "list[Result]":
        counts.total = len(self.pairs)
        places = asyncio.Semaphore(self.request.concurrency)

        async def one(pair: "Pair") -> "Result":
            async with places:  # places are given in order, so that a budget leaves a random part
                result = await self._judge(pair)
            counts.rows += 1
            return result

        try:
            return await asyncio.gather(*(one(pair) for pair in self.pairs))
        finally:
            await self.calls.close()

    async def _judge(self, pair: "Pair") -> "Result":
        from assay_evals.contradictions.judging import both_orders
        from assay_evals.contradictions.report import BUDGET, Result
        from assay_judge.api import CallError

        if self._stopped:
            return Result(pair)
        try:
            opinion = both_orders(await self._ask(pair, swapped=False), await self._ask(pair, swapped=True))
        except NoMoneyError:
            self._stopped = self._stopped or BUDGET
            return Result(pair)
        except OperationError as error:  # the API accepts no calls at all
            self._stopped = self._stopped or str(error)
            return Result(pair)
        except CallError as error:
            return Result(pair, error=failure_of(error))
        finding = self.history.identify(opinion.claims, pair.pair_id) if opinion.is_finding else ""
        return Result(pair, opinion, finding_id=finding)

    async def _ask(self, pair: "Pair", *, swapped: bool) -> "Opinion":
        from assay_evals.contradictions.judging import ReplyError, opinion_in
        from assay_judge.api import BadReplyError

        def read(text: str, usage: "Usage | None") -> "Opinion":
            try:
                return opinion_in(text, pair, swapped=swapped)
            except ReplyError as error:
                raise BadReplyError(error.kind, usage) from None

        return await self.calls.ask(_prompt(pair, swapped=swapped), read)


def _prompt(pair: "Pair", *, swapped: bool) -> Any:
    from assay_evals.contradictions.judging import SCHEMA, SYSTEM, message_of
    from assay_judge.api import Prompt

    return Prompt(SYSTEM, message_of(pair, swapped=swapped), SCHEMA)


def failure_of(error: "CallError") -> str:
    """Return the kind of a failure, by the type of the error."""
    from assay_evals.contradictions.judging import QUOTE_NOT_FOUND
    from assay_judge.api import BadReplyError, RejectedError, TryAgainError

    match error:
        case BadReplyError(kind="ReplyRefused"):
            return "refusal"
        case BadReplyError(kind=kind) if kind == QUOTE_NOT_FOUND:
            return "quote_not_found"
        case BadReplyError():
            return "parse_fail"
        case TryAgainError(kind="APITimeoutError"):
            return "timeout"
        case TryAgainError():
            return "api_unavailable"
        case RejectedError():
            return "rejected"
    return "unknown"


def prepare_contradictions(request: ContradictionsRequest) -> PreparedContradictions:
    """Validate everything and read the documents before money is spent.

    Raises `OperationError`, `SettingsError`.
    """
    from assay_evals.contradictions.findings import History
    from assay_evals.contradictions.pairs import in_random_order, pairs_of
    from assay_evals.contradictions.report import Series
    from assay_judge.pricing import dollars

    _check(request)
    calls = PaidCalls(
        request.budget_usd,
        without_key="contradictions are judged by a model: set judge.api_key_file (ASSAY_JUDGE_API_KEY_FILE)",
        cached_in=request.cached_in,
        settings=None if request.model is None else judge_settings(request.model),
    )
    source = request.source
    history = _history(request) if request.store else History()
    read = read_questions(source, request.data)
    pairs = [
        pair
        for question in in_random_order(read.questions, source.seed)
        for pair in pairs_of(question, most=request.pairs_per_query, max_chars=request.max_pair_chars, seed=source.seed)
    ]
    if len(pairs) > PAIRS_MOST:
        raise OperationError(
            "invalid",
            f"{len(pairs):,} pairs are above {PAIRS_MOST:,}: lower --limit or --top-k, or pass --pairs-per-query",
        )
    number = "all" if request.pairs_per_query is None else request.pairs_per_query
    sampling = f"top {source.top_k}, {number} pairs a question, {request.max_pair_chars} characters a text"
    judge = replace(calls.judge, prompt_hash="", schema_hash="")  # of the prompt that scores answers
    series = Series(f"{judge.model} {judge.fingerprint}", sampling, source.scope)
    nano = sum(
        calls.expected(_prompt(pair, swapped=swapped), _REPLY_TOKENS) for pair in pairs for swapped in (False, True)
    )
    if request.spending is not None:
        calls.spending.keep_in(request.spending)
    left_usd = request.budget_usd - dollars(calls.spent)
    return PreparedContradictions(request, read, pairs, calls, series, history, dollars(nano), left_usd)


def _history(request: ContradictionsRequest) -> "History":
    """Return the findings of earlier runs, if the store can be read and written."""
    try:
        expect_store(request.data)
        return known_findings(request.data, request.source.project)
    except OperationError as error:
        more = "" if request.source.from_capture else "; or pass --no-store"
        raise OperationError(error.kind, f"{error}{more}") from None


def _check(request: ContradictionsRequest) -> None:
    source = request.source
    expect_one(source)
    for option, value, least, most in (
        ("--limit", source.limit, 1, LIMIT_MOST),
        ("--top-k", source.top_k, 2, TOP_K_MOST),
        ("--pairs-per-query", request.pairs_per_query, 1, None),
        ("--max-pair-chars", request.max_pair_chars, CHARS_LEAST, CHARS_MOST),
        ("--concurrency", request.concurrency, 1, CONCURRENCY_MOST),
    ):
        if value is not None and (value < least or (most is not None and value > most)):
            raise OperationError("invalid", f"{option} must be {least} {'or more' if most is None else f'to {most:,}'}")
    if not re.fullmatch(PROJECT_PATTERN, source.project):
        raise OperationError("invalid", f"--project: {source.project[:80]!r} is not the name of a project")
    if request.budget_usd < 0:
        raise OperationError("invalid", "--budget-usd: below 0")
    expect_output(request.output)
