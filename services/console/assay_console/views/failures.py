"""Failures: what was lost, and whether it can come back."""

import asyncio

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.people import Role
from assay_operations.failures import Dead, Failures, dead_letters, failures
from assay_schema.failures import Reason
from assay_schema.streams import STREAMS

_HOUR_MS = 3_600_000
STAGES = tuple(dict.fromkeys(group for stream in STREAMS for group in stream.groups))

REASON = Parameter("reason", "Only this reason; empty: all.", tuple(Reason))
STAGE = Parameter("stage", "Only what this service gave up; empty: all.", STAGES)


class FailuresPage(Document):
    """Failures that are alike, and dead letters. `requeue`: the command for the filter of this page."""

    reason: str
    stage: str
    hours: int
    found: Panel[Failures]
    dead: Panel[list[Dead]]
    letters: int | None
    requeue: str
    drop: str
    #: True if this console has the operator's credentials, and the person is an operator.
    may_requeue: bool


async def read(ask: Ask) -> FailuresPage:
    """Read failures and dead letters at the same time."""
    hours = max(1, -(-(ask.scope.to_ms - ask.scope.from_ms) // _HOUR_MS))
    reason, stage = ask.text("reason"), ask.text("stage")
    found, dead = await asyncio.gather(
        ask.panel(
            failures, hours=hours, project=ask.scope.project, reason=reason, stage=stage, service=ask.text("service")
        ),
        ask.redis_panel(dead_letters, ask.settings.redis.shards),
    )
    chosen = " ".join([*([f"--reason {reason}"] if reason else []), *([f"--stage {stage}"] if stage else [])])
    return FailuresPage(
        reason=reason,
        stage=stage,
        hours=hours,
        found=found,
        dead=dead,
        letters=None if dead.value is None else sum(each.letters for each in dead.value),
        requeue=f"assay dead requeue {chosen or '--all'} --dry-run",
        may_requeue=ask.settings.console.operator_config is not None and ask.person.role >= Role.OPERATOR,
        drop=f"assay dead drop {chosen or '--all'} --dry-run",
    )


PAGE = Page(
    "failures",
    "/failures",
    "Failures",
    "What was lost, and can it come back?",
    read,
    FailuresPage,
    (
        REASON,
        STAGE,
        Parameter("service", "Only this producer; empty: all.", longest=128),
    ),
    key="f",
    command="assay query failures",
)
