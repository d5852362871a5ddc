"""`assay tail`: show scrubbed events live, from the stream."""

import asyncio
import contextlib
import shutil
import signal
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Annotated, Any

import typer

from assay_cli.commands.tail_file import pairs, tail_file
from assay_cli.errors import CommandError
from assay_cli.options import AsJsonLines, DataDirectory
from assay_cli.output.terminal import data_output, echo, ends_quietly, notice_departed_reader, printable
from assay_operations.clients import DEFAULT_DATA, settings_for
from assay_operations.tail import follow
from assay_operations.time_bounds import duration_ms
from assay_schema.fields import Kind
from assay_ui.formats import counted

#: Characters of text per line if stdout is not a terminal.
_TEXT_CHARS = 80
#: Fields of a payload that name the operation, and that have the text: the first one that is set is shown.
_OPERATION = ("tool_name", "model", "verdict", "event_subtype")
_TEXT = ("query", "text", "message", "title", "target_event_id")
_WITH_STATUS = ("tool_call", "session")
#: Fields of a retrieval that list its results, by id or with their texts.
_HITS = ("retrieved_chunk_ids", "retrieved_ids", "passages")


def tail(
    since: Annotated[
        str, typer.Option(help="How far back to begin, for example 90s or 1h; trimmed events are not shown.")
    ] = "5m",
    no_follow: Annotated[bool, typer.Option("--no-follow", help="Print the events so far and exit.")] = False,
    as_json: AsJsonLines = False,
    kind: Annotated[
        str | None, typer.Option(metavar="KIND", help=f"Only this kind: {', '.join(Kind)}; default: all.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Only this project; default: all.")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|auto",
            help="Follow a file of events instead of Redis; auto: the file of capture.file_path, or its default.",
        ),
    ] = None,
    status: Annotated[
        str | None, typer.Option(help="With --file, only tool calls with this status; default: all.")
    ] = None,
    tool: Annotated[str | None, typer.Option(help="With --file, only calls of this tool; default: all.")] = None,
    details: Annotated[
        bool, typer.Option("--details", help="With --file, every field of each event, one a line and uncut.")
    ] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show scrubbed events live, until Ctrl-C. Raw events are never shown."""
    with ends_quietly(interrupted=0):
        if file is not None:
            if kind is not None or project is not None:
                raise CommandError("--kind and --project are not for --file; use --status and --tool")
            if details and as_json:
                raise CommandError("--json has every field already; leave out --details")
            tail_file(file, since, status=status, tool=tool, live=not no_follow, as_json=as_json, details=details)
            return
        if status is not None or tool is not None:
            raise CommandError("--status and --tool need --file; use --kind and --project")
        if details:
            raise CommandError("--details needs --file; --json prints every field")
        if kind is not None and kind not in list(Kind):
            raise CommandError(f"--kind: {kind!r} is not one of {', '.join(Kind)}")
        from_ms = max(0, time.time_ns() // 1_000_000 - duration_ms(since, "--since"))
        settings, live = settings_for("sre", data).redis, not no_follow

        async def run() -> None:
            shown, out = 0, data_output()
            events = follow(
                settings, from_ms, kind=kind, project=project, live=live,
                caught_up=lambda: None if shown else echo(nothing_yet(since, follow=live), err=True),
                tell=lambda text: echo(text, err=True), still_read=notice_departed_reader,
            )  # fmt: skip
            async with contextlib.aclosing(events):
                async for raw, event in events:
                    shown += 1
                    out.write((raw if as_json else pretty(event, _text_chars()).encode()) + b"\n")
                    out.flush()

        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_until_interrupted(run()))


async def _until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends. Ctrl-C cancels it repeatedly, since redis-py can mistake a cancellation for its own timeout."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()

    def interrupt() -> None:
        if not task.done():
            task.cancel()
            loop.call_later(0.1, interrupt)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    await task


def nothing_yet(since: str, *, follow: bool) -> str:
    """Return the note for an empty window, so that silence is not mistaken for a fault. Pure."""
    longer = "1h" if duration_ms(since, "--since") < duration_ms("1h", "--since") else "7d"
    return f"no events in the last {since}{'; waiting for new ones' if follow else ''} (older: --since {longer})"


def pretty(event: Mapping[str, Any], text_chars: int) -> str:
    """Format an event as one line. Pure.

    Time (UTC), kind, project and service, operation, duration, hits or status, text, scrubbed families.
    """
    payload = event.get("payload") or {}
    kind = str(event.get("kind", ""))
    operation = next((name for field in _OPERATION if (name := payload.get(field))), "")
    took = payload.get("latency_ms", payload.get("duration_ms"))
    latency = f"{took:.0f} ms" if isinstance(took, int | float) else ""
    text = _text(kind, payload)
    if len(text) > text_chars:
        text = text[: max(1, text_chars - 1)] + "…"
    removed = event.get("pii_families") or {}
    pii = " ".join(f"{family}×{count}" for family, count in sorted(removed.items()) if count)
    line = (
        f"{_clock(str(event.get('created_at', '')))} {kind:<9} {event.get('project', '')}/{event.get('service', '')}  "
        f"{operation:<12} {latency:>8} {_outcome(kind, payload):>8}  {text}{f'  [{pii}]' if pii else ''}"
    )
    return printable(line).rstrip()


def _outcome(kind: str, payload: Mapping[str, Any]) -> str:
    """Return the number of hits, or the status of a tool call or session. Those that went wrong are in capitals."""
    if kind in _WITH_STATUS:
        status = str(payload.get("status") or "")
        return status.upper() if status in ("error", "refused", "aborted") else status
    return _hits(payload, _HITS if kind == "retrieval" else ("contexts",))


def _text(kind: str, payload: Mapping[str, Any]) -> str:
    if kind == "tool_call":
        said = [payload.get("error_kind"), pairs(payload.get("args_summary"))]
        result = "" if payload.get("error_kind") else pairs(payload.get("result_summary"))
        return " ".join(filter(None, [*said, result and f"→ {result}"]))
    if kind == "session" and payload.get("parts", 1) != 1:
        return f"part {payload.get('part')} of {payload['parts']} {payload.get('title') or ''}".rstrip()
    return str(next((text for field in _TEXT if (text := payload.get(field))), ""))


def _hits(payload: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return the number of results: the length of the longest list of them. Empty without any list."""
    found = [len(value) for name in fields if isinstance(value := payload.get(name), list)]
    return counted(max(found), "hit") if found else ""


def _clock(created_at: str) -> str:
    """Return the time of day of an ISO 8601 time, which is in UTC."""
    time_of_day = created_at.partition("T")[2].partition("+")[0].rstrip("Z")
    whole, _, fraction = time_of_day.partition(".")
    return f"{whole or '--:--:--'}.{(fraction + '000')[:3]}"


def _text_chars() -> int:
    return max(20, shutil.get_terminal_size().columns - 75) if sys.stdout.isatty() else _TEXT_CHARS
