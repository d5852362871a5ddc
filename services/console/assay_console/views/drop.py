"""Drop dead letters: count first, then delete them with the operator's credentials."""

import asyncio
from collections.abc import Mapping

from assay_console.page import Action, Ask, Document, Done, Form, Page, Parameter
from assay_console.people import Role
from assay_console.scope import link
from assay_console.views.chosen_letters import COMMENT, EXPECTED, check_shown, planned
from assay_console.views.failures import REASON, STAGE
from assay_operations.actor import Actor
from assay_operations.dead_letters.drop import Plan, apply, plan_drop
from assay_operations.errors import OperationError

_COMMAND = "assay dead drop --all --dry-run"


class Drop(Document):
    """The letters that a drop would delete. Never any of their content."""

    reason: str
    stage: str
    letters: int
    #: Their number by stage and reason, in words.
    tally: str
    #: Names the letters that were counted.
    digest: str
    #: Command to run instead, if this console has no credentials of an operator.
    command: str
    #: The comment that was sent, if the form was refused.
    comment: str = ""


def _plan(ask: Ask, reason: str, stage: str) -> Plan:
    """Count the letters. Blocks: call it in a thread."""
    return planned(ask, "drop", plan_drop, _COMMAND, reason, stage)


async def read(ask: Ask) -> Drop:
    """Count what would be deleted, and change nothing."""
    reason, stage = ask.text("reason"), ask.text("stage")
    if ask.settings.console.operator_config is None:
        return Drop(reason=reason, stage=stage, letters=0, tally="", digest="", command=_COMMAND)
    plan = await asyncio.to_thread(_plan, ask, reason, stage)
    return Drop(reason=reason, stage=stage, letters=len(plan.names), tally=plan.tally, digest=plan.digest, command="")


async def _read_again(ask: Ask, sent: Mapping[str, str]) -> Drop:
    return (await read(ask)).model_copy(update={"comment": sent.get("comment", "")})


async def drop(ask: Ask, fields: Mapping[str, str]) -> Done:
    """Delete the letters of a filter, if the person typed how many they are."""
    reason, stage = fields.get("reason", ""), fields.get("stage", "")
    typed = fields.get("typed", "").strip().replace(",", "")
    actor = Actor(ask.person.name, "console", "console", fields.get("comment", ""))

    def run() -> int:
        plan = _plan(ask, reason, stage)
        check_shown(plan, fields)
        if typed != str(len(plan.names)):
            raise OperationError("invalid", f"type {len(plan.names)} to delete the dead letters")
        return apply(plan, actor)

    gone = await asyncio.to_thread(run)
    return Done(link("/failures", {"reason": reason, "stage": stage}), f"● Deleted: {gone:,} dead letters.")


PAGE = Page(
    "drop",
    "/failures/drop",
    "Drop",
    "Which dead letters are deleted?",
    read,
    Drop,
    (REASON, STAGE),
    role=Role.OPERATOR,
    span="",
    within="failures",
    command=_COMMAND,
)
ACTION = Action(
    "/failures/drop",
    "Delete the dead letters of a filter.",
    Role.OPERATOR,
    drop,
    (
        REASON,
        STAGE,
        EXPECTED,
        Parameter("typed", "The number of letters, as a confirmation.", longest=12),
        COMMENT,
    ),
    Form(PAGE, lambda _, sent: {name: sent[name] for name in ("reason", "stage") if sent.get(name)}, _read_again),
)
