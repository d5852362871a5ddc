"""Parse numbers that people typed. Pure."""

import math
import re

from assay_operations.errors import OperationError

#: A number as in JSON; Python itself would also accept `1_0` and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def a_number(text: str | None, option: str) -> float | None:
    """Parse a finite number. Raises `OperationError`, so that a typo never switches a check off."""
    if text is None:
        return None
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise OperationError("invalid", f"{option}: {text!r} is not a number")
    return value
