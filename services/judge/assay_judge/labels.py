"""Parse files of human labels: one answer per line, as JSON or CSV. Pure.

JSON: `{"event_id": "...", "label": "good"}`. CSV: a header with `event_id` and `label`. A label is `good` or `bad`, `1`
or `0`. A session's `event_id` is followed by `@` and the revision that was labelled. Label a random subset of what was
scored: labels of cases selected for being interesting cannot correct a rate.
"""

import csv
import io
import json
from uuid import UUID

_GOOD, _BAD = {"good", "1", "true", "yes", "supported"}, {"bad", "0", "false", "no", "unsupported"}


class LabelError(ValueError):
    """An invalid line of a label file. The message contains its number and the rule."""


def read(text: str) -> dict[str, bool]:
    """Parse labels by event id, for sessions with their revision. Raises `LabelError`."""
    rows: list[tuple[int, object]]
    if text.lstrip().startswith("{"):
        rows = [(number, _json(number, line)) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    else:
        rows = [(number, row) for number, row in enumerate(csv.DictReader(io.StringIO(text)), 2)]
    labels: dict[str, bool] = {}
    for number, row in rows:
        if not isinstance(row, dict) or "event_id" not in row or "label" not in row:
            raise LabelError(f"line {number}: needs event_id and label")
        name, at, revision = str(row["event_id"]).strip().partition("@")
        try:
            event_id = str(UUID(name)) + (f"@{int(revision)}" if at else "")
        except ValueError:
            raise LabelError(f"line {number}: event_id is not a UUID, or for a session a UUID@revision") from None
        label = str(row["label"]).strip().lower()
        if label not in _GOOD | _BAD:
            raise LabelError(f"line {number}: label must be good or bad")
        if labels.get(event_id, label in _GOOD) != (label in _GOOD):
            raise LabelError(f"line {number}: this has a different label in an earlier line")
        labels[event_id] = label in _GOOD
    return labels


def _json(number: int, line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        raise LabelError(f"line {number}: not JSON") from None
