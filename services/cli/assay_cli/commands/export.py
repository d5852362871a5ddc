"""`assay export`: captured events as NDJSON."""

from pathlib import Path
from typing import Annotated

import typer

from assay_cli.options import DataDirectory
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.terminal import data_output, echo, ends_quietly
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.export.cursor_file import alone, settle, write_cursor
from assay_operations.export.run import Exported, Request, stored_watermark, window
from assay_operations.export.run import export as run_export
from assay_operations.export.sql import Selection


def export(
    since: Annotated[
        str | None,
        typer.Option(
            help="Rows after this: a duration ago (7d), an ISO 8601 time (UTC unless it names a zone), or the cursor of an earlier export."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Rows up to and including this; the same forms.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most this many rows, the newest.")] = None,
    tool: Annotated[str | None, typer.Option(metavar="query|search", help="Only retrievals by this operation.")] = None,
    kind: Annotated[
        str, typer.Option(metavar="retrieval|answer|feedback", help="Which kind of event.")
    ] = Exported.RETRIEVAL,
    project: Annotated[str | None, typer.Option(help="Only this project's.")] = None,
    cursor_file: Annotated[
        Path | None, typer.Option(help="Continue after the cursor in this file, and leave the new one there.")
    ] = None,
    progress: Annotated[Mode, typer.Option(help="Progress on stderr: for people, as JSON, or none.")] = Mode.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", help="The same as --progress none.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Print captured events as NDJSON, newest first, and the cursor to continue from on stderr.

    Windows that chain, each `--since` the cursor of the one before, hold every event once. With --cursor-file, --since counts only for
    the first run, before the file exists.
    """
    with ends_quietly(), alone(cursor_file, limit):
        ask = Request.checked(since, until, limit, tool, kind, project, cursor_file)
        settings = settings_for("exporter", data)
        out = data_output()
        with open_store(settings.store) as client:
            span = window(ask.since, ask.until, stored_watermark(client, settings.store.database))
            selection = Selection(ask.kind, span.after, span.upto, ask.tool, ask.project)
            with Progress(Mode.NONE if quiet else progress) as seen:
                run_export(client, settings.store.database, selection, ask.limit, out, seen)
        out.flush()
        if cursor_file:
            settle(out)
            write_cursor(cursor_file, span.cursor)
    echo(f"exported {seen.rows} row(s); cursor {span.cursor}", err=True)
