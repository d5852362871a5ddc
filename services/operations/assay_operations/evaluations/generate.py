"""Generate golden cases with a model, which writes and checks them."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.files import rows_of
from assay_operations.evaluations.judge_spending import NoMoneyError
from assay_operations.evaluations.paid_calls import PaidCalls
from assay_operations.evaluations.target import TargetConfig
from assay_schema.settings import JudgeSettings

if TYPE_CHECKING:
    from pydantic import BaseModel

    from assay_drift.embedding import Embed
    from assay_evals.dataset.model import Case
    from assay_evals.dataset.synthetic_cases import Document
    from assay_evals.target.runner import QueryResult, RunnerOptions
    from assay_evals.target.targets import Target


@dataclass(frozen=True)
class Made:
    """The result of a generation."""

    passages: int
    cases: "list[Case]"
    #: Counts of dropped cases by reason.
    dropped: Counter[str]
    spent_usd: float


@dataclass(frozen=True)
class PreparedGeneration:
    """A generation that passed every check that costs nothing."""

    model: "Model"
    chosen: "list[Document]"
    questions: list[str]
    target: "Target"
    options: "RunnerOptions"
    embed: "Embed"

    def run(self) -> Made:
        """Generate the cases. This calls the API and costs money."""
        from assay_evals.dataset.synthetic_cases import unlike

        cases, dropped = asyncio.run(_write_cases(self.model, self.chosen))
        cases, lost = _round_trip(cases, self.target, self.options)
        kept = unlike(cases, self.questions, self.embed)
        return Made(len(self.chosen), kept.cases, dropped + lost + kept.dropped, self.model.spent_usd)


def prepare_generation(
    files: list[Path], target: TargetConfig, count: int, budget_usd: float, known: Path | None, seed: int
) -> PreparedGeneration:
    """Validate everything before money is spent. Raises `OperationError`."""
    from assay_drift.embedding import embedder
    from assay_evals.dataset.synthetic_cases import documents, drawn

    model = Model(budget_usd)
    chosen = drawn(documents(row for _, row in rows_of(files)), count, seed)
    if not chosen:
        raise OperationError(
            "invalid",
            '--from: no passages: lines are {"id", "text"}, or answers as `assay export --kind answer` writes them',
        )
    questions = [case.query for case in load(known, "--known").cases] if known else []
    return PreparedGeneration(model, chosen, questions, *target.open(), embedder()[1])


async def _write_cases(model: "Model", chosen: "list[Document]") -> "tuple[list[Case], Counter[str]]":
    """Write cases for passages, and count the failures by reason."""
    from assay_evals.dataset import synthetic_cases as synthetic

    dropped: Counter[str] = Counter()
    places = asyncio.Semaphore(model.settings.concurrency)

    async def one(document: "Document") -> "Case | None":
        async with places:
            reply = await model.ask(synthetic.WRITER, synthetic.writer_message(document), synthetic.Written)
            if isinstance(reply, Failed):
                dropped[reply.why] += 1
                return None
            if (text := synthetic.written(reply)) is None:
                dropped["no question written"] += 1
                return None
            reply = await model.ask(synthetic.CRITIC, synthetic.critic_message(document, text), synthetic.Criticism)
            if isinstance(reply, Failed):
                dropped[reply.why] += 1
                return None
            critic = synthetic.criticism(reply)
            if critic is None or not critic.keeps:
                dropped["turned down by the critic"] += 1
                return None
            return synthetic.case_of(document, text, critic)

    try:
        found = await asyncio.gather(*map(one, chosen))
    finally:
        await model.close()
    return [case for case in found if case is not None], dropped


def _round_trip(cases: "list[Case]", target: "Target", options: "RunnerOptions") -> "tuple[list[Case], Counter[str]]":
    """Keep the cases whose passage is among the first results of the target."""
    from contextlib import aclosing

    from assay_evals.dataset.synthetic_cases import ROUND_TRIP
    from assay_evals.target.runner import stream_queries
    from assay_evals.target.targets import Question

    kept: list[Case] = []
    lost: Counter[str] = Counter()

    def take(asked: "QueryResult[Case]") -> None:
        if asked.answer is None:
            lost["errored in the round trip"] += 1
        elif asked.item.expected_ids[0] in asked.answer.slugs[:ROUND_TRIP]:
            kept.append(asked.item)
        else:
            lost["not found by the target"] += 1

    async def work() -> None:
        try:
            async with aclosing(
                stream_queries(target, cases, lambda case: Question(case.query, limit=ROUND_TRIP), options)
            ) as all_of_them:
                async for asked in all_of_them:
                    take(asked)
        finally:
            await target.close()

    asyncio.run(work())
    return kept, lost


class Failed:
    """A call without a reply; `why` is safe to show."""

    def __init__(self, why: str) -> None:
        self.why = why


class Model:
    """The judge's model, within a budget that is never exceeded."""

    def __init__(self, budget_usd: float) -> None:
        self._calls = PaidCalls(
            budget_usd,
            without_key="writing cases needs a model: set judge.api_key_file (ASSAY_JUDGE_API_KEY_FILE) to the file of a key of "
            "Anthropic's API. Without one, mine cases from production: assay dataset mine",
        )
        self.settings: JudgeSettings = self._calls.settings

    @property
    def spent_usd(self) -> float:
        """Maximum cost so far in dollars."""
        from assay_judge.pricing import dollars

        return dollars(self._calls.spent)

    async def close(self) -> None:
        """Close the connections."""
        await self._calls.close()

    async def ask(self, system: str, message: str, shape: "type[BaseModel]") -> str | Failed:
        """Ask the model, and return the text of its reply.

        Raises `OperationError` if the API refuses all calls.
        """
        from assay_evals.dataset.synthetic_cases import schema_of
        from assay_judge.api import CallError, Prompt

        try:
            return await self._calls.ask(Prompt(system, message, schema_of(shape)), lambda text, _: text)
        except NoMoneyError:
            return Failed("not asked: the budget is used up")
        except CallError:
            return Failed("no reply of the API")
