"""Text of a dataset's statistics and differences. Pure."""

from collections.abc import Mapping
from typing import Any

from assay_evals.dataset.changes import DatasetDiff


def stats_text(counts: Mapping[str, Any]) -> str:
    """Return the counts of a dataset, one line each."""
    return "\n".join(f"{name.replace('_', ' ') + ':':22}{_count(value)}" for name, value in counts.items())


def _count(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {count}" for key, count in value.items())
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}"


def diff_lines(changes: DatasetDiff) -> list[str]:
    """Return a line for each case that was added, removed or changed."""
    lines = [f"{mark} {name}" for mark, names in (("+", changes.added), ("-", changes.removed)) for name in names]
    return lines + [f"~ {name}: {', '.join(fields)}" for name, fields in changes.changed.items()]


def diff_counts(changes: DatasetDiff) -> str:
    """Return how many cases were added, removed and changed."""
    return f"{len(changes.added)} added, {len(changes.removed)} removed, {len(changes.changed)} changed"
