"""What became of the events that went to the spool: those of this process, and those an earlier one had left there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_capture.owners import private_directory


@dataclass(frozen=True)
class Leftover:
    """Counts of events, never negative."""

    #: Captured by this process and still in the spool.
    waiting: int
    #: Left in the spool by a process that died before, and sent by this one.
    earlier_sent: int


def leftover(stats: Mapping[str, Any], still_in_spool: int) -> Leftover:
    """Tell them apart by the SDK's counters after `close`; `still_in_spool` is what `events_since` finds. Pure.

    `replayed` counts both kinds. Without adopted segments all of them are this process's own, and the counters say all.
    """
    spooled, replayed = stats["spooled"], stats["replayed"]
    if not stats["adopted_segments"]:
        return Leftover(max(0, spooled - replayed), 0)
    waiting = min(spooled, still_in_spool)
    return Leftover(waiting, max(0, replayed - (spooled - waiting)))


def events_since(spool_dir: Path, service: str, first_id: str) -> int:
    """Events of a service in this user's spool whose `event_id` is above `first_id`: they sort by time, so they are this run's."""
    found = 0
    for segment in private_directory(spool_dir).rglob("*.jsonl"):
        try:
            lines = segment.read_bytes().splitlines()
        except OSError:  # sent and deleted meanwhile by another process, or not ours to read
            continue
        found += sum(_is_since(line, service, first_id) for line in lines)
    return found


def _is_since(line: bytes, service: str, first_id: str) -> bool:
    try:
        event = json.loads(line)
        return bool(event["service"] == service and event["event_id"] > first_id)
    except (ValueError, KeyError, TypeError):  # cut off by a crash
        return False
