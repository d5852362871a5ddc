"""Health: the checks of `assay doctor` that this console's rights allow."""

import asyncio
import platform
from importlib.metadata import version

from assay_console.page import Ask, Document, Page, Panel
from assay_console.views.overview import Service, services_of
from assay_operations.doctor.finding import Finding, Status
from assay_operations.doctor.host_checks import transport
from assay_operations.doctor.partial import CHECKS_S, redis_findings, store_findings, waiting_of
from assay_ui.formats import counted

#: What only a process on the host, or with more rights, can see.
_NOT_HERE = (
    "the disk", "the memory of services", "spools of producers", "files with secrets", "broken parts of tables",
    "spans that made no event", "the scrubbing policy",
)  # fmt: skip


class Health(Document):
    """Findings by source, versions, and what `assay doctor` also checks."""

    state: str
    sentence: str
    redis: Panel[list[Finding]]
    store: Panel[list[Finding]]
    console: list[Finding]
    services: list[Service]
    versions: dict[str, str]
    not_here: tuple[str, ...] = _NOT_HERE


async def read(ask: Ask) -> Health:
    """Make the checks of Redis and the store at the same time."""
    database = ask.settings.store.database
    nightly = ask.settings.has_nightly_evaluation

    async def of_store() -> Panel[list[Finding]]:
        waiting = (await ask.redis_panel(waiting_of, ask.settings)).value
        return await ask.panel(store_findings, database=database, nightly=nightly, waiting=waiting)

    redis, store, services = await asyncio.gather(
        ask.redis_panel_within(2 * CHECKS_S, redis_findings, ask.settings), of_store(), services_of(ask)
    )
    own = transport(ask.settings)
    state, sentence = summary([*(redis.value or ()), *(store.value or ()), *own], [redis, store], services)
    return Health(
        state=state,
        sentence=sentence,
        redis=redis,
        store=store,
        console=own,
        services=services,
        versions={"Assay": version("assay-console"), "Python": platform.python_version(), "Kernel": platform.release()},
    )


def summary(findings: list[Finding], panels: list[Panel[list[Finding]]], services: list[Service]) -> tuple[str, str]:
    """Return the worst state, and how many checks failed. Pure."""
    failed = sum(each.status is Status.FAIL for each in findings) + sum(each.state != "ready" for each in panels)
    failed += sum(each.state == "bad" for each in services)
    warned = sum(each.status is Status.WARN for each in findings)
    if failed:
        return "bad", f"{counted(failed, 'check')} failed" + (f", {counted(warned, 'warning')}." if warned else ".")
    if warned:
        return "warn", f"No check failed, {counted(warned, 'warning')}."
    return "good", f"All {len(findings)} checks passed."


PAGE = Page(
    "health",
    "/health",
    "Health",
    "Is every part as it should be?",
    read,
    Health,
    span="",
    key="h",
    command="assay doctor",
)
