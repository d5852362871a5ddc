"""`assay dataset generate`: synthetic golden cases by the judge's API, on a budget."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.target_options import TargetName
from assay_cli.terminal import echo, ends_quietly
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.files import rows_of
from assay_operations.evaluations.paid_calls import NoMoneyError, PaidCalls
from assay_operations.evaluations.target import TargetConfig
from assay_operations.numbers import a_number
from assay_schema.settings import JudgeSettings

if TYPE_CHECKING:
    from pydantic import BaseModel

    from assay_evals.dataset import Case
    from assay_evals.generating import Document
    from assay_evals.runner import Asked, Asking
    from assay_evals.targets import Target


def generate(
    files: Annotated[
        list[Path],
        typer.Option("--from", help='Passages: NDJSON of {"id", "text"}, or exported answers; may be repeated.'),
    ],
    target: TargetName,
    count: Annotated[int, typer.Option(help="Passages for which a question is written.")] = 20,
    known: Annotated[
        Path | None, typer.Option("--known", help="A dataset: nothing alike to its cases is kept.")
    ] = None,
    budget: Annotated[str, typer.Option("--budget", metavar="USD", help="Most that it may cost.")] = "1",
    seed: Annotated[int, typer.Option(help="Of the draw of passages.")] = 0,
) -> None:
    """Have a model write questions, another call check them, and the target find them; print what holds as NDJSON to review."""
    from assay_drift.embedding import embedder
    from assay_evals.dataset import Dataset, write_dataset
    from assay_evals.generating import documents, drawn, unlike

    cap = a_number(budget, "--budget")
    if cap is None or cap < 0 or count < 1:
        raise CommandError("--budget: 0 or more; --count: 1 or more")
    model = Model(cap)
    chosen = drawn(documents(row for _, row in rows_of(files)), count, seed)
    if not chosen:
        raise CommandError(
            '--from: no passages: lines are {"id", "text"}, or answers as `assay export --kind answer` writes them'
        )
    # Whatever cannot be is found out before money is spent.
    questions = [case.query for case in load(known, "--known").cases] if known else []
    system = TargetConfig(target).open()
    embed = embedder()[1]
    with ends_quietly():
        cases, dropped = asyncio.run(_generate(model, chosen))
        cases, lost = _round_trip(cases, *system)
        kept = unlike(cases, questions, embed)
        dropped += lost + kept.dropped
        why = ", ".join(f"{number} {reason}" for reason, number in dropped.most_common()) or "none"
        echo(f"{len(chosen)} passages: {len(kept.cases)} cases kept, dropped: {why}; ${model.spent_usd:.4f}", err=True)
        if not kept.cases:
            raise CommandError("no case was kept")
        today = datetime.now(UTC).date().isoformat()
        for line in write_dataset(Dataset(name="synthetic", version=today, created_at=today, cases=kept.cases)):
            echo(line)


async def _generate(model: "Model", chosen: "list[Document]") -> "tuple[list[Case], Counter[str]]":
    from assay_evals import generating as g

    dropped: Counter[str] = Counter()
    places = asyncio.Semaphore(model.settings.concurrency)

    async def one(document: "Document") -> "Case | None":
        async with places:
            reply = await model.ask(g.WRITER, g.writer_message(document), g.Written)
            if isinstance(reply, Failed):
                dropped[reply.why] += 1
                return None
            if (text := g.written(reply)) is None:
                dropped["no question written"] += 1
                return None
            reply = await model.ask(g.CRITIC, g.critic_message(document, text), g.Criticism)
            if isinstance(reply, Failed):
                dropped[reply.why] += 1
                return None
            critic = g.criticism(reply)
            if critic is None or not critic.keeps:
                dropped["turned down by the critic"] += 1
                return None
            return g.case_of(document, text, critic)

    try:
        found = await asyncio.gather(*map(one, chosen))
    finally:
        await model.close()
    return [case for case in found if case is not None], dropped


def _round_trip(cases: "list[Case]", target: "Target", how: "Asking") -> "tuple[list[Case], Counter[str]]":
    """The cases for which the target has the passage among its first results."""
    from contextlib import aclosing

    from assay_evals.generating import ROUND_TRIP
    from assay_evals.runner import ask_all
    from assay_evals.targets import Question

    kept: list[Case] = []
    lost: Counter[str] = Counter()

    def take(asked: "Asked[Case]") -> None:
        if asked.answer is None:
            lost["errored in the round trip"] += 1
        elif asked.item.expected_ids[0] in asked.answer.slugs[:ROUND_TRIP]:
            kept.append(asked.item)
        else:
            lost["not found by the target"] += 1

    async def work() -> None:
        try:
            async with aclosing(
                ask_all(target, cases, lambda case: Question(case.query, limit=ROUND_TRIP), how)
            ) as all_of_them:
                async for asked in all_of_them:
                    take(asked)
        finally:
            await target.close()

    asyncio.run(work())
    return kept, lost


class Failed:
    """A call that brought no reply; `why` is safe to show."""

    def __init__(self, why: str) -> None:
        self.why = why


class Model:
    """The judge's model, on a budget that what is spent is never above."""

    def __init__(self, budget_usd: float) -> None:
        self._calls = PaidCalls(
            budget_usd,
            without_key="writing cases needs a model: set judge.api_key_file (ASSAY_JUDGE_API_KEY_FILE) to the file of a key of "
            "Anthropic's API. Without one, mine cases out of production: assay dataset mine",
        )
        self.settings: JudgeSettings = self._calls.settings

    @property
    def spent_usd(self) -> float:
        """What it cost, and may have cost."""
        from assay_judge.pricing import dollars

        return dollars(self._calls.spent)

    async def close(self) -> None:
        """Close the connections."""
        await self._calls.close()

    async def ask(self, system: str, message: str, shape: "type[BaseModel]") -> str | Failed:
        """A reply's text. Raises `CommandError` when the API takes no call of ours at all."""
        from assay_evals.generating import schema_of
        from assay_judge.api import CallError, Prompt

        try:
            return await self._calls.ask(Prompt(system, message, schema_of(shape)), lambda text, _: text)
        except NoMoneyError:
            return Failed("not asked: the budget is used up")
        except CallError:
            return Failed("no reply of the API")
