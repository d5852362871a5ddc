"""`assay tail --file`: show the lines of the file of events live."""

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from assay_cli.output.terminal import data_output, echo, notice_departed_reader, printable
from assay_operations.file_tail import check_status, file_path, follow_file
from assay_operations.time_bounds import moment_ms

#: Longest text of a value, in characters; width of a tool's name and of the second line's indentation.
_TEXT_CHARS, _NAME_CHARS, _INDENT = 60, 24, 14


def tail_file(
    file: str, since: str, *, status: str | None, tool: str | None, live: bool, as_json: bool, details: bool = False
) -> None:
    """Print the lines of a file of events. Raises `OperationError`."""
    check_status(status)
    from_ms = moment_ms(since, time.time_ns() // 1_000_000, "--since")
    out = data_output()
    lines = follow_file(
        file_path(file, os.environ), from_ms, status=status, tool=tool, live=live,
        tell=lambda text: echo(text, err=True), still_read=notice_departed_reader,
    )  # fmt: skip
    pretty = detailed if details else pretty_line
    for raw, event in lines:
        out.write((raw if as_json else pretty(event).encode()) + b"\n")
        out.flush()


def pretty_line(event: Mapping[str, Any]) -> str:
    """Format a line of the file: two lines for a tool call, one for anything else. Pure."""
    clock = _clock(event.get("timestamp", event.get("occurred_at")))
    if event.get("kind") != "tool_call":
        what = event.get("event_subtype") or event.get("kind") or "event"
        text = event.get("message") or event.get("event_id") or ""
        return printable(f"{clock}  ▪ {what}: {text}")
    name = _cut(str(event.get("tool_name") or "-"), _NAME_CHARS)
    first = f"{clock}  {name:<{_NAME_CHARS}}  {pairs(event.get('args_summary'))}"
    return f"{printable(first).rstrip()}\n{' ' * _INDENT}{printable(_outcome(event))}"


def detailed(event: Mapping[str, Any]) -> str:
    """Format a line of the file with all its fields that are set, one a line and uncut. Pure.

    The fields of a payload are listed with those of its event, and each key of a summary has a line.
    """
    shown = dict(_fields(event, "", levels=2))
    longest = max(map(len, shown), default=0)
    name = event.get("tool_name") or event.get("event_subtype") or event.get("kind") or "event"
    first = f"{_clock(event.get('timestamp', event.get('occurred_at')))}  {name}"
    rest = (f"{' ' * _INDENT}{field:<{longest}}  {value}" for field, value in shown.items())
    return "\n".join(map(printable, (first, *rest)))


def _fields(values: Mapping[str, Any], before: str, *, levels: int) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and levels:
            yield from _fields(value, "" if name == "payload" else f"{before}{name}.", levels=levels - 1)
        elif value is not None:
            yield f"{before}{name}", value if isinstance(value, str) else orjson.dumps(value).decode()


def _outcome(event: Mapping[str, Any]) -> str:
    status, kind = str(event.get("status") or "-"), event.get("error_kind")
    if status in ("error", "refused"):
        shown = " ".join(filter(None, [status.upper(), str(kind or "")]))
    else:
        shown = " ".join(filter(None, ["" if status == "success" else status, pairs(event.get("result_summary"))]))
    duration = event.get("duration_ms")
    took = f"in {duration:.0f}ms" if isinstance(duration, int | float) else ""
    return " ".join(filter(None, ["→", shown, took]))


def pairs(summary: Any) -> str:
    """Format the summary of a call as `key=value` pairs, each shortened; empty for anything else. Pure."""
    if not isinstance(summary, Mapping):
        return ""
    return " ".join(f"{key}={_value(value)}" for key, value in summary.items())


def _value(value: Any) -> str:
    return f'"{_cut(value, _TEXT_CHARS)}"' if isinstance(value, str) else _cut(str(value), _TEXT_CHARS)


def _cut(text: str, chars: int) -> str:
    return text if len(text) < chars else text[: chars - 3] + "…"


def _clock(moment: Any) -> str:
    """Return the time of day of an ISO 8601 time, with milliseconds; dashes for anything else."""
    if not isinstance(moment, str) or "T" not in moment:
        return "--:--:--.---"
    whole, _, fraction = moment.partition("T")[2].rstrip("Z").partition("+")[0].partition(".")
    return f"{whole or '--:--:--'}.{(fraction + '000')[:3]}"
