"""`assay dataset generate`: synthetic golden cases by the judge's API, on a budget."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay_cli.asking import System, TargetName, a_number, rows_of
from assay_cli.dataset import load
from assay_cli.errors import CommandError
from assay_cli.terminal import echo, ends_quietly
from assay_schema.settings import JudgeSettings

if TYPE_CHECKING:
    from pydantic import BaseModel

    from assay_evals.dataset import Case
    from assay_evals.generating import Document
    from assay_evals.runner import Asked, Asking
    from assay_evals.targets import Target

#: Seconds before a call that the API was too busy for is tried again, and how often it is tried in all.
AGAIN_S, TRIES = 1.0, 3


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
    system = System(target).open()
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
    """The judge's model and prices. Money is set aside before each call, so that what is spent is never above the budget."""

    def __init__(self, budget_usd: float) -> None:
        from assay_judge.api import connect
        from assay_judge.app import key_of
        from assay_judge.pricing import NANO, tariff_of
        from assay_judge.rules import load_rules
        from assay_runtime.config import load_settings

        self.settings: JudgeSettings = load_settings().judge
        if not (key := key_of(self.settings)):
            raise CommandError(
                "writing cases needs a model: set judge.api_key_file (ASSAY_JUDGE_API_KEY_FILE) to the file of a key of Anthropic's API. "
                "Without one, mine cases out of production: assay dataset mine"
            )
        self._tariff = tariff_of(load_rules(self.settings.rules_file), self.settings.model, batch=False)
        self._client: Any = connect(self.settings, key)
        self._cap, self._spent = int(budget_usd * NANO), 0

    @property
    def spent_usd(self) -> float:
        """What it cost, and may have cost."""
        from assay_judge.pricing import dollars

        return dollars(self._spent)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def ask(self, system: str, message: str, shape: "type[BaseModel]") -> str | Failed:
        """A reply's text. Raises `CommandError` when the API takes no call of ours at all."""
        from assay_judge.api import BadReplyError, CallError, StoppedError, TryAgainError

        bound = self._tariff.bound(len((system + message).encode()), self.settings.max_output_tokens)
        for attempt in range(1, TRIES + 1):
            if self._spent + bound > self._cap:
                return Failed("not asked: the budget is used up")
            self._spent += bound
            try:
                text, usage = await self._call(system, message, shape)
            except StoppedError as error:
                raise CommandError(f"the API refuses: {error.kind}; see judge.api_key") from None
            except CallError as error:
                if error.usage is not None:
                    self._spent += self._tariff.cost(error.usage) - bound
                if isinstance(error, BadReplyError) or not isinstance(error, TryAgainError) or attempt == TRIES:
                    return Failed("no reply of the API")
                await asyncio.sleep(AGAIN_S * attempt)
            else:
                self._spent += self._tariff.cost(usage) - bound
                return text
        return Failed("no reply of the API")

    async def _call(self, system: str, message: str, shape: "type[BaseModel]") -> tuple[str, Any]:
        import anthropic

        from assay_evals.generating import schema_of
        from assay_judge.api import BadReplyError, TryAgainError, failure_of, usage_of

        try:
            reply = await self._client.messages.create(
                model=self.settings.model,
                max_tokens=self.settings.max_output_tokens,
                system=system,
                messages=[{"role": "user", "content": message}],
                output_config={
                    "format": {"type": "json_schema", "schema": schema_of(shape)},
                    "effort": self.settings.effort,
                },
            )
        except anthropic.APIStatusError as error:
            raise failure_of(error.status_code, type(error).__name__, error.response.headers) from None
        except anthropic.APIConnectionError as error:
            raise TryAgainError(type(error).__name__, None) from None
        usage = usage_of(reply.usage)
        if reply.stop_reason != "end_turn":
            raise BadReplyError("ReplyIncomplete", usage)
        return "".join(block.text for block in reply.content if block.type == "text"), usage
