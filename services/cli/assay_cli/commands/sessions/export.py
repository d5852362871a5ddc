"""`assay sessions export`: print sessions as NDJSON."""

import time
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.options import DataDirectory
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.terminal import data_output, echo, ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.export.cursor_file import alone, read_cursor, settle, write_cursor
from assay_operations.sessions.exporting import Format, export_sessions
from assay_operations.time_bounds import Bound, bound


def export(
    form: Annotated[
        Format,
        typer.Option("--format", help="assay: every field; vertex: for Vertex AI; vertex-agent: with its agent_data."),
    ] = Format.ASSAY,
    since: Annotated[
        str | None,
        typer.Option(help="Only sessions that arrived after this: a duration ago, a time, or a cursor; default: all."),
    ] = None,
    project: Annotated[str | None, typer.Option(help="Only this project; default: all.")] = None,
    source: Annotated[str | None, typer.Option(help="Only this agent; default: all.")] = None,
    cursor_file: Annotated[
        Path | None, typer.Option(help="Continue after the cursor in this file, and write the new cursor to it.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Print imported sessions as NDJSON, each in its newest revision.

    The cursor for the next export is on stderr. A chain of exports, each with the previous cursor as
    `--since`, has every session, and one that grew once more.
    """
    with ends_quietly(), alone(cursor_file, None):
        start = bound(since, time.time_ns() // 1_000_000, "--since") if since is not None else None
        if cursor_file and (kept := read_cursor(cursor_file)) is not None:
            start = Bound(kept, is_cursor=True)
        out = data_output()
        with Progress(Mode.NONE if quiet else Mode.AUTO) as counter:

            def progress(rows: int) -> None:
                counter.rows = rows

            done = export_sessions(data, out, form, since=start, project=project, source=source, progress=progress)
        out.flush()
        if cursor_file:
            settle(out)
            write_cursor(cursor_file, done.cursor)
    for reason, count in sorted(done.refused.items()):
        echo(f"left out: {count:,}, {reason}", err=True)
    if done.incomplete:
        echo(f"left out: {len(done.incomplete):,} whose parts have not all arrived", err=True)
    if done.malformed:
        echo(
            f"left out: {len(done.malformed):,} that have not the form of a session (assay sessions show names it)",
            err=True,
        )
    echo(f"exported {done.rows:,} session(s); cursor {done.cursor}", err=True)
