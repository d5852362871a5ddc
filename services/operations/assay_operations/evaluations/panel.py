"""Have a panel of judges score the answers of a file, within one budget that is never exceeded."""

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from assay_operations.errors import OperationError
from assay_operations.evaluations.files import expect_output, write_output
from assay_operations.evaluations.judge_spending import NoMoneyError, Spending
from assay_operations.evaluations.paid_calls import NoKeyError, PaidCalls
from assay_operations.progress import Counts, Unseen
from assay_schema.settings import JudgeSettings, SettingsError

if TYPE_CHECKING:
    from assay_evals.panel.batch import Batch, Item
    from assay_evals.panel.config import Panel, PanelJudge
    from assay_evals.panel.scoring import Judged, Scored
    from assay_judge.api import Prompt
    from assay_judge.pricing import Usage

#: Tokens of a usual reply, for each dimension, and bytes of a usual answer, both for the estimate.
_REPLY_TOKENS = 60
CYCLES_MOST, CONCURRENT_MOST = 3, 32
#: How messages name settings of the judge and their variables, except the price list, which a panel reads too.
_SETTING = re.compile(r"\bjudge\.(?!rules_file)| \((?:or )?ASSAY_JUDGE_(?!RULES)[A-Z_]+(?:, ASSAY_JUDGE_[A-Z_]+)*\)")


@dataclass(frozen=True)
class PanelRequest:
    """The answers to judge, the panel, and the limits.

    `output`: the file of the summary, readable by its owner only. `family`: that of the answers whose line names none.
    `cached_in`: None to pay for every reply again. `spending`: file of the cost of all runs that share the budget; None: only this one.
    """

    file: Path
    panel: Path
    limit: int = 10
    cycles: int = 1
    concurrent: int = 3
    max_usd: float = 5.0
    output: Path | None = None
    seed: int = 0
    family: str | None = None
    cached_in: Path | None = None
    spending: Path | None = None


@dataclass
class _Seat:
    """A judge of the panel, at work. `gone`: why it is asked no more."""

    judge: "PanelJudge"
    calls: PaidCalls
    gone: str = ""


@dataclass
class PreparedPanel:
    """A batch that passed every check that costs nothing."""

    request: PanelRequest
    panel: "Panel"
    batch: "Batch"
    seats: list[_Seat]
    #: Usual cost of the batch, and the part of the maximum that earlier runs left, in US dollars.
    estimated_usd: float
    left_usd: float
    _over: bool = False

    @property
    def cost_usd(self) -> float:
        """Maximum cost of the calls of this process, in US dollars."""
        from assay_judge.pricing import dollars

        return dollars(sum(seat.calls.own for seat in self.seats))

    async def run(self, progress: Counts | None = None) -> dict[str, Any]:
        """Judge the answers, and return the summary. This calls the APIs and costs money."""
        from assay_evals.panel.summary import Costs, summary_of
        from assay_judge.pricing import dollars

        counts = progress or Unseen()
        counts.total = len(self.batch.items)
        places = asyncio.Semaphore(self.request.concurrent)

        async def one(item: "Item") -> "Judged":
            async with places:
                judged = await self._judge(item)
            counts.rows += 1
            return judged

        try:
            judged = await asyncio.gather(*(one(item) for item in self.batch.items))
        finally:
            await self.close()
        by_family = dict.fromkeys(self.panel.families, 0)
        for seat in self.seats:
            by_family[seat.judge.family] += seat.calls.own
        costs = Costs(
            self.estimated_usd,
            self.cost_usd,
            self.request.max_usd,
            {family: dollars(nano) for family, nano in by_family.items()},
        )
        request = self.request
        return summary_of(
            self.batch,
            judged,
            self.panel,
            costs,
            cycles=request.cycles,
            concurrent=request.concurrent,
            seed=request.seed,
            at=datetime.now(UTC),
        )

    async def close(self) -> None:
        """Close the connections, and the file of costs. `run` does it itself."""
        for seat in self.seats:
            await seat.calls.close()

    def keep(self, summary: Mapping[str, Any]) -> None:
        """Write the summary to the output file, if there is one. Raises `OperationError`."""
        write_output(self.request.output, summary)

    async def _judge(self, item: "Item") -> "Judged":
        from assay_evals.panel.scoring import Judged, Outcome, judged_of

        gone = {seat.judge.name: seat.gone for seat in self.seats if seat.gone}
        if self._over:
            return Judged(item, Outcome.UNJUDGED)
        if len({seat.judge.family for seat in self.seats if not seat.gone}) < 2:
            return Judged(item, Outcome.ERROR, errors=gone)
        replies: list[Scored] = []
        errors = dict[str, str]()
        asked = (self._ask(seat, item, replies, errors) for seat in self.seats)
        for failure in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(failure, NoMoneyError):
                self._over = True
                return Judged(item, Outcome.UNJUDGED)
            if failure is not None:
                raise failure
        order = {seat.judge.name: place for place, seat in enumerate(self.seats)}
        replies.sort(key=lambda reply: order[reply.judge])  # not in the order in which they came
        return judged_of(item, replies, errors, self.panel)

    async def _ask(self, seat: _Seat, item: "Item", replies: "list[Scored]", errors: dict[str, str]) -> None:
        """Add the scores of a judge, or its last error. Raises `NoMoneyError`."""
        from assay_evals.panel.scoring import Scored
        from assay_judge.api import CallError

        for cycle in range(self.request.cycles):
            if seat.gone:
                errors[seat.judge.name] = seat.gone
                return
            prompt = prompt_of(item, self.panel, seat.judge.name, self.request.seed, cycle)
            try:
                scores, reasons = await seat.calls.ask(prompt, self._read, repeat=cycle)
            except CallError as error:
                errors[seat.judge.name] = error.kind
            except OperationError as error:
                seat.gone = errors[seat.judge.name] = str(error)
            else:
                replies.append(Scored(seat.judge.family, seat.judge.name, scores, reasons))

    def _read(self, text: str, usage: "Usage | None") -> tuple[dict[str, float], dict[str, str]]:
        from assay_evals.panel.scoring import ReplyError, scores_in
        from assay_judge.api import BadReplyError

        try:
            return scores_in(text, self.panel)
        except ReplyError:
            raise BadReplyError("ReplyWithoutScores", usage) from None


def prompt_of(item: "Item", panel: "Panel", judge: str, seed: int, cycle: int) -> "Prompt":
    """Return the request to a judge about an answer.

    It is the same for the same seed, so that a cached reply is found again.
    """
    from assay_evals.panel.scoring import request_of
    from assay_judge.api import Prompt

    asked = request_of(item, panel, json.dumps([seed, item.question_id, judge, cycle]))
    return Prompt(asked.system, asked.message, asked.schema)


def prepare_panel(request: PanelRequest) -> PreparedPanel:
    """Validate everything before money is spent. Raises `OperationError`, `SettingsError`."""
    from assay_evals.errors import EvalsError
    from assay_evals.files import lines_of
    from assay_evals.panel.batch import read_batch
    from assay_evals.panel.config import read_panel
    from assay_judge.pricing import dollars

    _check(request)
    expect_output(request.output)
    try:
        panel = read_panel(request.panel)
    except EvalsError as error:
        raise OperationError("invalid", f"--panel: {error}") from None
    try:
        batch = read_batch(lines_of(request.file), request.limit, request.seed, request.family)
    except EvalsError as error:
        raise OperationError("invalid", f"--batch: {error}") from None
    if not batch.lines:
        raise OperationError(
            "invalid",
            "--batch: no question in the file",
            'lines are {"question_id", "question", "hypothesis"}, as `assay eval longmemeval --output` writes them',
        )
    spending = Spending()
    if request.spending is not None:
        spending.keep_in(request.spending)
    left_usd = request.max_usd - dollars(spending.spent)
    try:
        seats = [_Seat(judge, _calls(judge, request, spending)) for judge in panel.judges]
    except BaseException:
        spending.close()
        raise
    tokens = _REPLY_TOKENS * len(panel.dimensions)
    nano = sum(
        seat.calls.expected(prompt_of(item, panel, seat.judge.name, request.seed, cycle), tokens, repeat=cycle)
        for seat in seats
        for item in batch.items
        for cycle in range(request.cycles)
    )
    return PreparedPanel(request, panel, batch, seats, dollars(nano), left_usd)


def _check(request: PanelRequest) -> None:
    for option, value, most in (
        ("--limit", request.limit, None),
        ("--cycles", request.cycles, CYCLES_MOST),
        ("--concurrent", request.concurrent, CONCURRENT_MOST),
    ):
        if value < 1 or (most is not None and value > most):
            raise OperationError("invalid", f"{option} must be 1 {'or more' if most is None else f'to {most}'}")
    if request.max_usd < 0:
        raise OperationError("invalid", "--max-usd: below 0")


def _calls(judge: "PanelJudge", request: PanelRequest, spending: Spending) -> PaidCalls:
    """Return the client of a judge. Raises `OperationError` naming it."""
    from assay_runtime.config import load_settings

    keys = {"api_key", "family", "api_key_env"}
    fields: dict[str, Any] = judge.model_dump(exclude=keys, exclude_none=True)
    fields["rules_file"] = load_settings().judge.rules_file  # the price list
    if judge.api_key_file is not None:
        fields["api_key_file"] = request.panel.parent / judge.api_key_file
    if judge.api_key_env:
        if not (key := os.environ.get(judge.api_key_env, "")):
            raise NoKeyError(f"--panel: {judge.name}: the environment has no {judge.api_key_env}")
        fields["api_key"] = SecretStr(key)
    try:
        return PaidCalls(
            request.max_usd,
            without_key=f"--panel: {judge.name} needs a key: give it api_key_file or api_key_env",
            cached_in=request.cached_in,
            settings=JudgeSettings.model_validate(fields),
            spending=spending,
        )
    except SettingsError as error:
        said = _SETTING.sub("", str(error)).replace(
            "ASSAY_JUDGE_API_KEY_FILE", "api_key_file"
        )  # keys of the panel file
        raise OperationError("invalid", f"--panel: {judge.name}: {said}") from None


def outcomes(summary: dict[str, Any]) -> Sequence[tuple[str, int]]:
    """Return the counts of a summary that are not zero, for people."""
    names = ("pass", "fail", "inconclusive", "unjudged", "error", "upstream_error", "malformed")
    return [(name.replace("_", " "), summary[name]) for name in names if summary[name]]
