"""The demo's agent: import the log of its sessions, and compare what it did with what is stored."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay_local.probes import Sessions
from assay_local.processes import LocalStack
from assay_local.supervisor import Supervisor, describe_exit
from assay_operations.errors import OperationError

#: Longest time of an import, in seconds. It waits up to a minute for the store.
_IMPORT_WITHIN_S = 200.0


@dataclass(frozen=True)
class AgentRun:
    """Counts of the demo's agent: its tool calls and sessions, by status."""

    #: Beginning of the ids of its sessions.
    prefix: str
    #: By status.
    tool_calls: Mapping[str, int] = field(default_factory=dict)
    #: By how they ended. `open` ones are not in the log.
    sessions: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, report: Mapping[str, Any] | None) -> "AgentRun | None":
        """Return the part of the demo's report on its agent; None without one."""
        return cls(report["prefix"], report["tool_calls"], report["sessions"]) if report else None


@dataclass(frozen=True)
class Imported:
    """Outcome of the import of the agent's log, in words."""

    succeeded: bool
    outcome: str


async def import_log(system: LocalStack, supervisor: Supervisor, environment: Mapping[str, str]) -> Imported:
    """Import the agent's log, in a process. Raises nothing: a failure is an outcome."""
    command = f"assay sessions import --from jsonl {system.agent_log.name}"
    try:
        async with asyncio.timeout(_IMPORT_WITHIN_S):
            child = await supervisor.run(system.session_import(environment))
    except OperationError as error:
        return Imported(False, f"failed: {error}")
    except TimeoutError:
        return Imported(False, f"failed: {command} did not end within {_IMPORT_WITHIN_S:.0f} s")
    if child.exit_code:
        return Imported(False, f"failed: {command}: {describe_exit(child.exit_code)}{child.last_lines()}")
    return Imported(True, child.answer)


def agent_summary(
    agent: AgentRun, tool_calls: Mapping[str, int], sessions: Sessions, imported: Imported
) -> RenderableType:
    """Return the table of tool calls and sessions by status, as the agent counted and as they are stored."""
    table = Table(title="The agent and its tools", title_justify="left")
    for heading in ("tool calls and sessions", "by the agent", "stored"):
        table.add_column(heading, justify="left" if heading.startswith("tool") else "right")
    for what, made, stored in (
        ("tool calls", agent.tool_calls, tool_calls),
        ("sessions", agent.sessions, sessions.statuses),
    ):
        for status in sorted({*made, *stored}, key=lambda status: (-made.get(status, 0), status)):
            pair = made.get(status, 0), stored.get(status, 0)
            table.add_row(
                f"{what}: {status}", *map("{:,}".format, pair), style="" if pair[0] == pair[1] else "bold red"
            )
        table.add_section()
    rows = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    rows.add_row("import", Text(imported.outcome), style="" if imported.succeeded else "bold red")
    if sessions.incomplete:
        rows.add_row("incomplete", f"{sessions.incomplete:,} sessions have parts that are not stored", style="bold red")
    return Group(Text(), table, rows)
