"""`assay operations`: list recorded operations."""

import time
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
import typer

from assay_cli.options import AsJsonLines, DataDirectory
from assay_cli.output.rows import show_rows
from assay_cli.output.terminal import echo, ends_quietly, printable
from assay_operations.clients import DEFAULT_DATA
from assay_operations.recorded import recorded
from assay_operations.time_bounds import moment_ms

#: Columns of the table; --json has all.
_COLUMNS = (
    "started_at", "operation", "outcome", "actor", "host", "planned", "changed", "target", "comment", "error_kind", "operation_id",
)  # fmt: skip

operations = typer.Typer(no_args_is_help=True, help="List operations that deleted data or changed what it means.")


@operations.callback()
def _operations() -> None:
    """Keep `list` a separate subcommand."""


@operations.command("list")
def list_operations(
    since: Annotated[
        str | None, typer.Option(help="Only since then: a duration ago (7d) or an ISO 8601 time; default: all.")
    ] = None,
    operation: Annotated[str, typer.Option(help="Only this operation, for example 'dead drop'; default: all.")] = "",
    actor: Annotated[str, typer.Option(help="Only this login name; default: all.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of operations.")] = 100,
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List recorded operations, newest first: who, what range, why, and how it ended.

    The outcome `started` means that it still runs, or was killed.
    """
    since_ms = 0 if since is None else max(0, moment_ms(since, int(time.time() * 1000), "--since"))
    with ends_quietly():
        found = recorded(data, since_ms=since_ms, operation=operation, actor=actor, limit=limit)
        rows = [{name: _plain(row[name]) for name in (row if as_json else _COLUMNS)} for row in found.rows]
        if as_json:
            rows = [row | {"target": orjson.loads(row["target"])} for row in rows]
        else:
            rows = [row | {"target": target_text(row["target"])} for row in rows]
        show_rows(rows, as_json, printable(found.nothing))
        if found.waiting:
            echo(f"{found.waiting} record(s) that the store has not taken are in {found.folder}", err=True)


def target_text(target: str) -> str:
    """Format a target for people: its values by name, and Unix milliseconds as times. Pure."""
    parts = []
    for name, value in orjson.loads(target).items():
        if name.endswith("_ms") and isinstance(value, int):
            parts.append(f"{name.removesuffix('_ms')} {datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%dT%H:%M:%S}Z")
        elif isinstance(value, list):
            parts.append(f"{name} {' '.join(map(str, value))}")
        elif value not in ("", None, False):
            parts.append(f"{name} {value}")
    return ", ".join(parts)


def _plain(value: Any) -> Any:
    """Return times, which are UTC, as ISO 8601 text, and ids as text."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return value if value is None or isinstance(value, int) else str(value)
