"""Count the spooled events that were sent or still wait, of this process and of an earlier one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_capture.owners import private_directory


@dataclass(frozen=True)
class Leftover:
    """Counts of events, never negative."""

    #: Events of this process that are still in the spool.
    waiting: int
    #: Events of an earlier process that this one sent.
    earlier_sent: int


def leftover(stats: Mapping[str, Any], still_in_spool: int) -> Leftover:
    """Compute the counts from those of the SDK after `close` and from `events_since` (`still_in_spool`).

    Pure.

    `replayed` counts both kinds. Without adopted segments all of them are of this process, and the counters suffice.
    """
    spooled, replayed = stats["spooled"], stats["replayed"]
    if not stats["adopted_segments"]:
        return Leftover(max(0, spooled - replayed), 0)
    waiting = min(spooled, still_in_spool)
    return Leftover(waiting, max(0, replayed - (spooled - waiting)))


def events_since(spool_dir: Path, service: str, first_id: str) -> int:
    """Count the events of a service in this user's spool with an `event_id` above `first_id`."""
    found = 0
    for segment in private_directory(spool_dir).rglob("*.jsonl"):
        try:
            lines = segment.read_bytes().splitlines()
        except OSError:  # another process has sent and deleted it, or it is not readable
            continue
        found += sum(_is_since(line, service, first_id) for line in lines)
    return found


def _is_since(line: bytes, service: str, first_id: str) -> bool:
    try:
        event = json.loads(line)
        return bool(event["service"] == service and event["event_id"] > first_id)
    except (ValueError, KeyError, TypeError):  # truncated by a crash
        return False
