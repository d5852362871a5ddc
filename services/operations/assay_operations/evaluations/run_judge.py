"""Judge the answers of a run with the same judge as production, within the budget of the run."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay_operations.errors import OperationError
from assay_operations.evaluations.judge_spending import NoMoneyError
from assay_operations.evaluations.paid_calls import PaidCalls, expect_backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay_evals.dataset.model import Case
    from assay_evals.metrics.scorers import Rubric
    from assay_evals.run.folder import RunFolder
    from assay_evals.run.model import CaseResult
    from assay_evals.target.response import TargetResponse
    from assay_judge.api import Prompt
    from assay_judge.pricing import Usage

T = TypeVar("T")

#: Maximum number of times that one answer is judged.
REPEATS_MOST = 10


class RunJudge:
    """Judges answers: `lexical`, or the model that settings name.

    Money is reserved before each call; when the budget is used up, answers stay unjudged.

    Unjudged answers have no metrics of the judge and are counted: `skipped` for the budget, `errors` for the API. Their coverage is 0, so
    that a failing judge does not make a system look good, and they are judged when the run is resumed. An answer that cannot be judged has
    coverage 0 as well, and so has one in a form that the judge of production does not accept; `unfit` counts these.
    """

    def __init__(
        self,
        name: str,
        budget_usd: float,
        *,
        cached_in: Path | None = None,
        repeats: int = 1,
        reference: bool = False,
    ) -> None:
        """`reference`: also compare answers and passages with the expected answers, in a separate call."""
        from assay_judge import lexical
        from assay_judge.judge_config import load_judge_config
        from assay_runtime.config import load_settings

        if name not in ("lexical", "anthropic", "openai"):
            raise OperationError("invalid", f"--judge: {name!r} is not one of lexical, anthropic, openai")
        self.unfit = self.spent_before = 0
        #: Calls without a verdict, by cause.
        self.failures: Counter[str] = Counter()
        self.repeats = repeats
        self._reference = reference
        #: Thread of the lexical judge, which reads one answer at a time.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="judge")
        #: Number of verdicts.
        self.verdicts = 0
        #: Cases that were skipped because of the budget, by this process or an earlier one.
        self._unjudged: set[str] = set()
        self._paid: PaidCalls | None = None
        settings = load_settings().judge
        self._rules = load_judge_config(settings.rules_file)
        self.fingerprint = lexical.judge().fingerprint
        if name == "lexical":
            if reference:
                raise OperationError("invalid", "--reference needs a model: pass --judge anthropic or openai")
            return
        expect_backend(name)
        self._paid = PaidCalls(
            budget_usd,
            without_key="--judge anthropic needs a key: set judge.api_key (ASSAY_JUDGE_API_KEY), or use --judge lexical",
            cached_in=cached_in,
        )
        self.fingerprint = self._paid.judge.fingerprint

    @property
    def spent(self) -> int:
        """Cost of judging the run in nano-dollars, earlier processes included."""
        return self._paid.spent if self._paid else 0

    @property
    def skipped(self) -> int:
        """Number of cases that were not judged because the budget was used up."""
        return len(self._unjudged)

    def go_on(self, spending: Path, folder: "RunFolder") -> None:
        """Add the costs of earlier processes, and retry cases that were skipped with a smaller budget.

        Raises `OperationError`.
        """
        if self._paid is None:
            return
        self._paid.spending.keep_in(spending)
        self.spent_before = self.spent
        unjudged = {
            case_id: cap
            for case_id, cap in self._paid.spending.skipped.items()
            if case_id not in folder.done or _lacks(folder.done[case_id])
        }
        again = {case_id for case_id, cap in unjudged.items() if cap < self._paid.cap}
        self._unjudged = unjudged.keys() & folder.done.keys() - again
        folder.ask_again(again)

    @property
    def digests(self) -> dict[str, str]:
        """Digests of additional prompts, by metric: runs with other prompts are not comparable."""
        from assay_judge.reference import DIGEST, METRICS

        return dict.fromkeys(METRICS, DIGEST) if self._reference else {}

    async def __call__(self, case: "Case", answer: "TargetResponse") -> dict[str, float | None]:
        """Judge one answer against its passages and, with `reference`, against the expected answer."""
        found = await self._beside_passages(case, answer)
        return found | await self._beside_reference(case, answer) if self._reference else found

    async def _beside_reference(self, case: "Case", answer: "TargetResponse") -> dict[str, float | None]:
        """Compare with the expected answer; {} without one, None for all if the budget or the API failed."""
        from assay_evals.metrics.answer_coverage import JUDGE_NOISE, is_answerable, over_repeats
        from assay_judge.prompt import case_of
        from assay_judge.reference import METRICS, UNSAID, comparison_of

        if not case.expected_answer or answer.answer is None or not is_answerable(case.query_type):
            return {}
        if not answer.answer.strip():  # nothing to judge
            return dict(UNSAID)
        asked = _as_captured(case, answer)
        compared = comparison_of(case_of(case.id, asked), case.expected_answer) if asked else None
        if compared is None:
            return {}
        said = [await self._asked(compared.prompt(), compared.read, case.id, repeat) for repeat in range(self.repeats)]
        known = [each for each in said if each is not None]
        if len(known) < len(said):
            return dict.fromkeys(METRICS)
        found = over_repeats(known)
        found.pop(JUDGE_NOISE + "flips", None)  # of its verdicts
        return found

    async def _beside_passages(self, case: "Case", answer: "TargetResponse") -> dict[str, float | None]:
        """Return the judge's metrics of one answer, its coverage and its failed checks; {} without an answer.

        Rules decide whether an answer is a refusal; a model that finds claims in it, or none, overrides them. A refusal of an answerable
        question counts as irrelevant. A refusal of an unanswerable one is correct, and costs no call.
        """
        from assay_evals.metrics.answer_coverage import (
            ABSTAINED,
            ANSWERED,
            CHECK_FAILED,
            COVERAGE,
            NULL_REFUSED,
            is_answerable,
            over_repeats,
        )
        from assay_judge.evaluator import verdict_fields
        from assay_judge.lexical import TooLongError
        from assay_judge.prompt import case_of
        from assay_schema.refusals import is_refusal
        from assay_schema.scores import Metric, ScoreStatus

        answerable = is_answerable(case.query_type)
        if answer.answer is None or (not answerable and is_refusal(answer.answer)):
            return {}
        unjudged: dict[str, float | None] = {COVERAGE: 0.0, ABSTAINED: 0.0} if answerable else {}
        refusal: dict[str, float | None] = {
            COVERAGE: 0.0,
            ABSTAINED: 1.0,
            ANSWERED: 0.0,
            Metric.ANSWER_RELEVANCY.value: 0.0,
        }
        asked = _as_captured(case, answer)
        if asked is None:  # longer than production judges, or in another form
            self.unfit += 1
            return unjudged
        checks: dict[str, float | None] = {
            CHECK_FAILED + name: float(not passed) for name, passed in self._rules.check(asked).items()
        }
        by_rules = refusal if is_refusal(answer.answer) else {}
        has_passages = any(text.strip() for _, text in answer.contexts)
        if not has_passages or (by_rules and (self._paid is None or not answer.answer.strip())):
            return unjudged | by_rules | checks
        judged = case_of(case.id, asked)
        each: list[dict[str, float | None]] = []
        for repeat in range(self.repeats):
            try:
                verdict = await self._verdict(judged, case.id, repeat)
            except TooLongError:
                self.unfit += 1
                return unjudged | checks
            if verdict is None:
                return by_rules | checks if case.id in self._unjudged else unjudged | by_rules | checks
            fields = verdict_fields(verdict, judged)
            if fields["status"] is ScoreStatus.ABSTAINED:
                # The lexical judge finds no claim in an answer of one word, which is an answer nevertheless.
                abstained = unjudged | {ABSTAINED: 1.0} if self._paid is None else refusal
                none: dict[str, float | None] = {NULL_REFUSED: 1.0} if self._paid else {}
                each.append(abstained if answerable else none)
                continue
            measured = fields.get("metrics")
            found = {str(name): value for name, value in measured.items()} if isinstance(measured, dict) else {}
            scored = {COVERAGE: 1.0, ABSTAINED: 0.0}
            if self._paid:  # a model is more reliable than rules
                scored |= {ANSWERED: 1.0}
            each.append(found | (scored if answerable else {}))
        return over_repeats(each) | checks

    async def _verdict(self, case: Any, case_id: str, repeat: int) -> Any:
        from assay_judge import lexical
        from assay_judge.api import prompt_of, verdict_in

        if self._paid is None:  # not in the event loop, which measures the latency of targets
            return await asyncio.get_running_loop().run_in_executor(self._thread, lexical.judged, case)
        return await self._asked(prompt_of(case), lambda text, usage: verdict_in(text, usage, case), case_id, repeat)

    @property
    def rubric(self) -> "Rubric | None":
        """Rubric function of the judge; None for a judge without a model."""
        return self._meets if self._paid else None

    async def _meets(self, criterion: str, case: "Case", answer: str) -> float | None:
        """Score an answer by a criterion, 0 to 1, as the mean of its repeats; None if the budget or the API failed."""
        from assay_judge.rubric import prompt_of, score_in

        prompt = prompt_of(criterion, case.query, answer)
        said = [await self._asked(prompt, score_in, case.id, repeat) for repeat in range(self.repeats)]
        known = [each for each in said if each is not None]
        return sum(known) / len(known) if len(known) == len(said) else None

    async def _asked(
        self, prompt: "Prompt", read: "Callable[[str, Usage | None], T]", case_id: str, repeat: int
    ) -> "T | None":
        from assay_judge.api import CallError

        assert self._paid is not None
        try:
            found = await self._paid.ask(prompt, read, repeat=repeat)
        except NoMoneyError:
            self._unjudged.add(case_id)
            self._paid.spending.skip(case_id, self._paid.cap)
        except CallError as error:
            self.failures[error.kind] += 1
            self._paid.spending.skip(case_id, -1)  # any budget is larger, so a resumed run judges it
        else:
            self.verdicts += 1
            return found
        return None

    async def close(self) -> None:
        """Close the connections to the API, and the cost file."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._paid is not None:
            await self._paid.close()

    @property
    def errors(self) -> int:
        """Number of calls without a verdict."""
        return self.failures.total()

    @property
    def failed(self) -> bool:
        """True if there were errors and not a single verdict."""
        return self.errors > 0 and not self.verdicts

    def why_failed(self) -> list[tuple[int, str]]:
        """Count the calls without a verdict by reason, largest first."""
        from assay_judge.reasons import reasons

        return reasons(self.failures)

    def cache_use(self) -> dict[str, float]:
        """Return the cache's hits, calls and savings in dollars; empty without a cache."""
        from assay_judge.pricing import dollars

        if self._paid is None or (cache := self._paid.cache) is None:
            return {}
        return {"hits": cache.hits, "calls": cache.hits + cache.misses, "saved_usd": dollars(cache.saved)}

    def close_note(self) -> str | None:
        """Return the closing note on cost and unjudged answers; None if there is nothing to report."""
        from assay_judge.pricing import dollars

        unfit = f"{self.unfit} answers too long or malformed to be judged" if self.unfit else None
        if self._paid is None:
            return unfit
        note = f"judged for ${dollars(self.spent):.4f}; {self.skipped} skipped by the budget, {self.errors} without a verdict"
        if cache := self._paid.cache:
            note += f"; {cache.hits} of {cache.hits + cache.misses} verdicts reused, which saved ${dollars(cache.saved):.4f}"
        return f"{note}; {unfit}" if unfit else note


def _lacks(result: "CaseResult") -> bool:
    """Return True if a score that a model gives is missing."""
    from assay_evals.dataset.scorer_specs import SCORE
    from assay_judge.reference import METRICS
    from assay_schema.scores import Metric

    scores = [value for name, value in result.metrics.items() if name.startswith(SCORE) or name in METRICS]
    return result.metrics.get(Metric.FAITHFULNESS.value) is None or None in scores


def _as_captured(case: "Case", answer: "TargetResponse") -> Any:
    """Return the answer as a service would capture it; None if it is not valid."""
    from pydantic import ValidationError

    from assay_schema.events import Answer

    try:
        return Answer.model_validate(
            {
                "query": case.query,
                "answer": answer.answer,
                "contexts": [{"id": name, "text": text} for name, text in answer.contexts],
                "citations": [{"context_id": name, "claim": claim} for name, claim in answer.citations],
                "model": "target",
                "latency_ms": answer.latency_ms,
            }
        )
    except ValidationError:
        return None
