"""The one form of every measurement: ours beside its anchor, measured in the same run."""

import operator
from typing import Any

_COMPARE = {"<=": operator.le, ">=": operator.ge}


def result(name: str, ours: float, anchor: float, unit: str, target: str | None, n: int) -> dict[str, Any]:
    """One row. `ratio` is ours / anchor; `target` is such as `<= 0.25` or None; `met` follows from these two and nothing else."""
    ratio = ours / anchor
    met = None
    if target is not None:
        sign, _, bound = target.partition(" ")
        met = bool(_COMPARE[sign](ratio, float(bound)))
    return {
        "name": name,
        "ours": ours,
        "anchor": anchor,
        "unit": unit,
        "ratio": ratio,
        "target": target,
        "met": met,
        "n": n,
    }
