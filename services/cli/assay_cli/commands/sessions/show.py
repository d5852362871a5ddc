"""`assay sessions list` and `assay sessions show`."""

import shutil
import sys
from typing import Annotated

import orjson
import typer

from assay_cli.options import AsJson, AsJsonLines, DataDirectory
from assay_cli.output.rows import show_rows
from assay_cli.output.rubric import as_text
from assay_cli.output.session_table import fitted
from assay_cli.output.terminal import echo, emit, ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.sessions.listing import document, lines, sessions
from assay_operations.sessions.verdicts import latest_verdict
from assay_sessions.document import derived

#: Characters of the result of a tool call that `show` prints.
_RESULT_MAX = 400


def list_sessions(
    since: Annotated[
        str, typer.Option(help="Only sessions that changed since then: a duration (7d) or an ISO 8601 time.")
    ] = "30d",
    project: Annotated[str, typer.Option(help="Only this project; default: all.")] = "",
    source: Annotated[str, typer.Option(help="Only this agent; capture: known from captured events.")] = "",
    subagents: Annotated[bool, typer.Option("--subagents", help="Also the sessions of sub-agents.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sessions, the newest.")] = 100,
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List sessions, the one that changed last first."""
    with ends_quietly():
        rows = sessions(data, since=since, project=project, source=source, subagents=subagents, limit=limit)
        if rows and not as_json and sys.stdout.isatty():
            rows = fitted(rows, shutil.get_terminal_size().columns)
        show_rows(rows, as_json, "no sessions: import them with assay sessions import, or capture with a session_id")


def show(
    session_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the session, or its beginning.")],
    project: Annotated[str | None, typer.Option(help="Project of the session, if several have its id.")] = None,
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show an imported session as it is stored: turns, tool calls and results, and the judge's verdict."""
    with ends_quietly():
        found = document(data, session_id, project)
        verdict = latest_verdict(data, found["session_id"], found["project"])
        if as_json:
            judged = {"judged": verdict.document()} if verdict else {}
            emit(orjson.dumps(derived(found) | judged).decode())
            return
        echo(
            f"{found['title'] or found['session_id']} ({found['metadata'].get('source')}, {found['metadata'].get('status')})\n"
        )
        for line in lines(found):
            echo(f"{line.who}: {line.text}")
            if line.detail:
                rest = len(line.detail) - _RESULT_MAX
                echo("      " + line.detail[:_RESULT_MAX] + (f" ... {rest:,} more characters" if rest > 0 else ""))
        if verdict:
            echo("\n" + as_text(verdict))
