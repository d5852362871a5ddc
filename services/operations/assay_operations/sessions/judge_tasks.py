"""The two paid calls about a session, as tasks of the judge.

The first writes the items of its rubric, the second gives the verdicts on them. A task's outcome stays in the judge's books until its
records expire, so that a process that dies between two steps pays for none twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from assay_operations.sessions.judge_cost import NOTHING, Cost
from assay_schema.scores import Metric, RubricItem, Score, ScoreStatus, score_id
from assay_sessions.rubric import (
    Item,
    Rubric,
    RubricPrompt,
    RubricReplyError,
    RubricScore,
    items_prompt,
    parse_items,
    parse_verdicts,
    score_of,
    verdict_prompt,
)
from assay_sessions.rubric_view import View

if TYPE_CHECKING:
    from uuid import UUID

    from assay_judge.api import Calls
    from assay_judge.call_budget import Bill
    from assay_judge.judge_identity import JudgeIdentity
    from assay_judge.sampling import Draw
    from assay_judge.task_runner import Attempted, Result

NOTHING_APPLIES: Final = "no item of the rubric applies to this session"


def shown_in_part(view: View) -> str:
    """Return the detail of a score whose judge did not see the whole session; empty if it did."""
    if not view.is_cut:
        return ""
    texts = sum(bool(each.text.bytes_cut) + bool(each.result.bytes_cut) for each in view.shown)
    return f"the judge saw it in part: {texts} texts were cut, {len(view.left_out)} turns and calls left out"


@dataclass(frozen=True)
class Judged:
    """A session to judge: what its score says about it in addition to the verdict."""

    event_id: "UUID"
    project: str
    service: str
    session_id: str
    revision: int
    draw: "Draw"
    #: What earlier judgements of the session cost, by this judge.
    spent: Cost = NOTHING
    #: What tells this judgement from an earlier one of the same revision, which ended without a verdict.
    again: str = ""

    def task_name(self, step: str) -> str:
        """Return the name of a step in the judge's books."""
        return "/".join(filter(None, ("session", str(self.event_id), str(self.revision), step, self.again)))

    def cost(self, now: Cost = NOTHING) -> dict[str, Any]:
        """Return the fields of a score for what the session cost so far, with what was paid now."""
        return (self.spent + now).fields()


def session_score(
    judge: "JudgeIdentity", session: Judged, status: ScoreStatus, rubric: Sequence[RubricItem] = (), **more: Any
) -> Score:
    """Build the score of a session; `more` has the fields of its status."""
    from datetime import UTC, datetime

    from assay_runtime.clock import clock
    from assay_schema.ids import event_ms

    return Score(
        score_id=score_id(session.event_id, judge.fingerprint),
        event_id=session.event_id,
        project=session.project,
        service=session.service,
        event_time=datetime.fromtimestamp(event_ms(session.event_id) / 1000, UTC),
        judged_at=clock.now(),
        status=status,
        base=session.draw.base,
        inclusion_probability=session.draw.inclusion_probability,
        base_probability=session.draw.base_probability,
        boosts=list(session.draw.boosts),
        fingerprint=judge.fingerprint,
        backend=judge.backend,
        model=judge.model,
        prompt_hash=judge.prompt_hash,
        schema_hash=judge.schema_hash,
        effort=judge.effort,
        session_id=session.session_id,
        revision=session.revision,
        rubric=list(rubric),
        **more,
    )


class _Call:
    """One call to the model about a session."""

    def __init__(self, session: Judged, prompt: RubricPrompt, api: "Calls", step: str) -> None:
        self.project = session.project
        self.name = session.task_name(step)
        self._prompt = prompt
        self._api = api

    @property
    def message_bytes(self) -> int:
        """Bytes of the request."""
        return len(self._prompt.system.encode()) + len(self._prompt.message.encode())

    async def attempt(self, timeout_s: float) -> "Attempted":
        """Make one attempt. Raises a `CallError`."""
        from assay_judge.api import BadReplyError, Prompt
        from assay_judge.task_runner import Attempted

        said = await self._api.ask(Prompt(*self._prompt), timeout_s)
        try:
            return Attempted(self._read(said.text), said.usage, said.limit, said.pause_s)
        except RubricReplyError as error:
            raise BadReplyError(error.kind, said.usage) from None

    def _read(self, text: str) -> "Result":
        raise NotImplementedError


@dataclass(frozen=True)
class Written:
    """The outcome of the first step: the items, or the status of a session without any, and the cost."""

    status: ScoreStatus
    detail: str = ""
    items: tuple[RubricItem, ...] = ()
    cost: Cost = NOTHING

    @classmethod
    def of(cls, data: bytes) -> "Written":
        """Read an outcome from the judge's books."""
        found = orjson.loads(data)
        items = tuple(RubricItem.model_validate(item) for item in found["items"])
        cost = Cost(found["nano"], found["input_tokens"], found["output_tokens"])
        return cls(ScoreStatus(found["status"]), found["detail"], items, cost)

    @property
    def rubric(self) -> Rubric:
        """The items as the prompt of the second step numbers them."""
        return Rubric(
            items=[
                Item(id=f"r{number}", dimension=item.dimension, criterion=item.criterion, absence=item.absence)
                for number, item in enumerate(self.items, 1)
            ]
        )


class ItemsTask(_Call):
    """Have the items of a session's rubric written. They are scrubbed before anything stores them."""

    def __init__(self, session: Judged, view: View, api: "Calls", scrub: Callable[[str], str]) -> None:
        super().__init__(session, items_prompt(view), api, "items")
        self._scrub = scrub

    def _read(self, text: str) -> "Result":
        from assay_judge.patterns import instructs

        rubric: dict[str, RubricItem] = {}  # scrubbed, two criteria may be the same
        for item in parse_items(text, instructs).items:
            criterion = self._scrub(item.criterion)[:1_000]
            rubric.setdefault(
                criterion, RubricItem(dimension=item.dimension, criterion=criterion, absence=item.absence)
            )
        return {"status": ScoreStatus.SCORED, "items": tuple(rubric.values())}

    def document(self, result: "Result", bill: "Bill") -> bytes:
        """Return the outcome as JSON."""
        cost = Cost.of(bill)
        return orjson.dumps(
            {
                "status": result["status"],
                "detail": result.get("detail", ""),
                "items": [item.model_dump() for item in result.get("items", ())],
                "nano": cost.nano,
                "input_tokens": cost.input_tokens,
                "output_tokens": cost.output_tokens,
            }
        )


class VerdictsTask(_Call):
    """Have a session checked against its rubric. The document is its score."""

    def __init__(self, session: Judged, view: View, api: "Calls", judge: "JudgeIdentity", written: Written) -> None:
        super().__init__(session, verdict_prompt(written.rubric, view), api, "verdicts")
        self._session, self._view, self._judge, self._written = session, view, judge, written

    def _read(self, text: str) -> "Result":
        from assay_judge.patterns import instructs

        rubric = self._written.rubric
        return scored(score_of(rubric, parse_verdicts(text, rubric), self._view, instructs), self._view)

    def document(self, result: "Result", bill: "Bill") -> bytes:
        """Return the JSON of the score, with the cost of both steps."""
        fields: dict[str, Any] = {"rubric": self._written.items} | result
        cost = self._session.cost(self._written.cost + Cost.of(bill))
        return session_score(self._judge, self._session, **fields, **cost).model_dump_json().encode()


def scored(score: RubricScore, view: View) -> dict[str, Any]:
    """Return the status and the numbers of a verdict after its verification. Pure."""
    rubric = [
        RubricItem(
            dimension=each.item.dimension,
            criterion=each.item.criterion,
            absence=each.item.absence,
            verdict=each.verdict,
            demoted=each.demoted,
            turn=each.turn or 0,
        )
        for each in score.items
    ]
    if score.score is None:
        return {"status": ScoreStatus.ABSTAINED, "detail": NOTHING_APPLIES, "rubric": rubric}
    return {
        "status": ScoreStatus.SCORED,
        "metrics": {Metric.RUBRIC_SCORE: score.score}
        | {Metric(dimension): share for dimension, share in score.by_dimension.items()},
        "demoted": score.demoted,
        "detail": shown_in_part(view),
        "rubric": rubric,
    }
