"""The one form of every measurement: ours beside its anchor, measured in the same run."""

import operator
from typing import Any

_COMPARE = {"<=": operator.le, ">=": operator.ge}


def result(name: str, ours: float, anchor: float, unit: str, target: str | None, n: int) -> dict[str, Any]:
    """One row. `ratio`: ours / anchor; `target`: such as `<= 0.25`, `0.4 to 1.4`, or None; `met` follows from these two alone."""
    ratio = ours / anchor
    return {
        "name": name,
        "ours": ours,
        "anchor": anchor,
        "unit": unit,
        "ratio": ratio,
        "target": target,
        "met": None if target is None else _meets(ratio, target),
        "n": n,
    }


def _meets(ratio: float, target: str) -> bool:
    low, between, high = target.partition(" to ")
    if between:
        return float(low) <= ratio <= float(high)
    sign, _, bound = target.partition(" ")
    return bool(_COMPARE[sign](ratio, float(bound)))
