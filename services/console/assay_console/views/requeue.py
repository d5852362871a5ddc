"""Requeue dead letters: count first, then send them again with the operator's credentials."""

import asyncio
from collections.abc import Mapping

from assay_console.page import Action, Ask, Document, Done, Page
from assay_console.people import Role
from assay_console.scope import link
from assay_console.views.chosen_letters import COMMENT, EXPECTED, check_shown, planned
from assay_console.views.failures import REASON, STAGE
from assay_operations.actor import Actor
from assay_operations.dead_letters.requeue import Plan, apply, plan_requeue

#: Lines about letters that cannot be requeued, at most.
_UNFIT_MAX = 20
_COMMAND = "assay dead requeue --all --dry-run"


class Requeue(Document):
    """The letters that a requeue would send, by stream. Never any of their content."""

    reason: str
    stage: str
    letters: int
    streams: dict[str, int]
    #: Letters that cannot be requeued, and why.
    unfit: list[str]
    unfit_count: int
    #: Letters that this person requeued just now; None for no requeue.
    done: int | None
    #: Names the letters that were found: a requeue sends these and no others.
    digest: str
    #: Command to run instead, if this console has no credentials of an operator.
    command: str


def _plan(ask: Ask, reason: str, stage: str) -> Plan:
    """Count the letters. Blocks: call it in a thread."""
    return planned(ask, "requeue", plan_requeue, _COMMAND, reason, stage)


async def read(ask: Ask) -> Requeue:
    """Count what would be requeued, and change nothing."""
    reason, stage = ask.text("reason"), ask.text("stage")
    if ask.settings.console.operator_config is None:
        return Requeue(
            reason=reason,
            stage=stage,
            letters=0,
            streams={},
            unfit=[],
            unfit_count=0,
            done=None,
            digest="",
            command=_COMMAND,
        )
    plan = await asyncio.to_thread(_plan, ask, reason, stage)
    return Requeue(
        reason=reason,
        stage=stage,
        letters=len(plan.names),
        streams=dict(plan.streams),
        unfit=list(plan.unfit[:_UNFIT_MAX]),
        unfit_count=len(plan.unfit),
        digest=plan.digest,
        done=int(ask.notice) if ask.notice else None,
        command="",
    )


async def requeue(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Requeue the letters of a filter, if they are those that the person saw."""
    reason, stage = fields.get("reason", ""), fields.get("stage", "")
    actor = Actor(ask.person.name, "console", "console", fields.get("comment", ""))

    def run() -> int:
        plan = _plan(ask, reason, stage)
        check_shown(plan, fields)
        return apply(plan, actor).streams.total()

    sent = await asyncio.to_thread(run)
    return Done(link("/failures/requeue", {"reason": reason, "stage": stage}), str(sent))


PAGE = Page(
    "requeue",
    "/failures/requeue",
    "Requeue",
    "Which dead letters are sent again?",
    read,
    Requeue,
    (REASON, STAGE),
    role=Role.OPERATOR,
    span="",
    within="failures",
    command=_COMMAND,
)
ACTION = Action(
    "/failures/requeue",
    "Send the dead letters of a filter again, under their original event ids.",
    Role.OPERATOR,
    requeue,
    (REASON, STAGE, EXPECTED, COMMENT),
)
