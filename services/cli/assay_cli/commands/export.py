"""`assay export`: print captured events as NDJSON."""

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
            help="Only rows after this: a duration ago (7d), an ISO 8601 time (UTC unless it names a zone), or a cursor; default: all."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Only rows up to and including this, in the same forms; default: now.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Maximum number of rows, the newest; default: no limit.")] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="query|search", help="Only retrievals by this operation; default: all.")
    ] = None,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help=f"Kind of event to export: {', '.join(Exported)}.")
    ] = Exported.RETRIEVAL,
    project: Annotated[str | None, typer.Option(help="Only this project; default: all.")] = None,
    cursor_file: Annotated[
        Path | None, typer.Option(help="Continue after the cursor in this file, and write the new cursor to it.")
    ] = None,
    progress: Annotated[Mode, typer.Option(help="Format of progress on stderr.")] = Mode.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress; short for --progress none.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Print captured events as NDJSON, newest first, and the cursor for the next export on stderr.

    A chain of exports, each with the previous cursor as `--since`, contains every event exactly once. With --cursor-file, --since
    applies only to the first run, before the file exists.
    """
    with ends_quietly(), alone(cursor_file, limit):
        ask = Request.checked(since, until, limit, tool, kind, project, cursor_file)
        settings = settings_for("exporter", data)
        out = data_output()
        with open_store(settings.store) as client:
            span = window(ask.since, ask.until, stored_watermark(client, settings.store.database))
            selection = Selection(ask.kind, span.after, span.upto, ask.tool, ask.project)
            with Progress(Mode.NONE if quiet else progress) as counter:
                run_export(client, settings.store.database, selection, ask.limit, out, counter)
        out.flush()
        if cursor_file:
            settle(out)
            write_cursor(cursor_file, span.cursor)
    echo(f"exported {counter.rows} row(s); cursor {span.cursor}", err=True)
