"""Numbers as people type them. Pure."""

import math
import re

from assay_operations.errors import OperationError

#: A number as JSON and most people write it; Python itself would also take `1_0` and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def a_number(text: str | None, option: str) -> float | None:
    """A finite number, or `OperationError`: one that is none must never switch a check off."""
    if text is None:
        return None
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise OperationError("invalid", f"{option}: {text!r} is not a number")
    return value
