"""Regular expressions for captured text: RE2's, in time linear in the text, for any pattern. Pure."""

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1_000)
def compiled(pattern: str) -> Any:
    """Compile a pattern. Raises `ValueError` with the reason if RE2 does not support it."""
    import re2

    options = re2.Options()
    options.log_errors = False  # its messages would go to stderr
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("ascii", "replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"not a regular expression: {reason} (patterns are RE2's: no look-around, no \\1)") from None


def found(pattern: str, text: str) -> bool:
    """True if a pattern matches anywhere in a text."""
    return compiled(pattern).search(text.encode(errors="replace")) is not None
