"""Custom families of a policy: a name, a category, and a pattern whose running time is bounded.

Patterns use RE2, which matches in time linear in the text for any pattern. Look-around and back-references, which RE2 lacks for that
reason, are refused. Patterns run on the projection: full-width and Unicode digits are ASCII there, and a letter outside ASCII is the
byte 0x80, so patterns are written in ASCII; `\\x80` stands for any such letter.
"""

import re
from collections.abc import Iterator
from typing import Any

from .family import Always, Family, Rule, View
from .taxonomy import Category

RANK = 10_000
"""Rank of the first custom family: built-in families name an overlapping span first; custom ones follow in the order of the policy."""

LONGEST_PATTERN = 1_000
_MEMORY = 8 << 20
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


LONGEST_MATCH = 512
"""Code points. Longer matches can be cut or missed: the window bounds the cost of one match."""

_WINDOW = 4 * LONGEST_MATCH


class PatternError(ValueError):
    """The pattern or name of a custom family is not usable. The message states why and how to fix it."""


def custom_family(name: str, category: Category, pattern: str, *, number: int = 0, description: str = "") -> Family:
    """Return a family that finds the matches of `pattern`, or of its first group if it has groups.

    With a group, the context around it is kept. `number` orders the custom families of one policy by rank. Raises PatternError.
    """
    if not _NAME.fullmatch(name):
        raise PatternError(f"custom family {name!r}: a name is lower-case letters, digits and _, at most 64 of them")
    if not pattern.isascii() or len(pattern) > LONGEST_PATTERN:
        raise PatternError(f"custom family {name}: a pattern must be ASCII and at most {LONGEST_PATTERN} characters")
    compiled = _compile(name, pattern)
    if compiled.search(b"") is not None:
        raise PatternError(f"custom family {name}: the pattern matches the empty text; it would match everywhere")
    group = 1 if compiled.groups else 0

    def accept(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
        start, end = match.span(group)
        return (start, end) if start < end else None

    return Family(
        name=name,
        category=category,
        rank=RANK + number,
        gate=Always(),
        rules=(Rule(compiled, accept),),
        description=description or "Defined by the policy.",
    )


def _compile(name: str, pattern: str) -> Any:
    """Compile a pattern; RE2's message goes into the error instead of to stderr."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    options.log_errors = False  # its messages would go to stderr
    try:
        return re2.compile(pattern.encode("ascii"), options)
    except re2.error as error:
        reason = error.args[0].decode("ascii", "replace") if error.args and isinstance(error.args[0], bytes) else error
        raise PatternError(f"custom family {name}: {reason} (patterns are RE2's: no look-around, no \\1)") from None


def search_windows(pattern: Any, raw: bytes) -> Iterator[re.Match[bytes]]:
    """Yield matches in order, without overlap, each searched for in a window.

    One search of RE2 is linear, but after each match the next one starts over: `a.*b|a` would read the rest of the
    text once for every `a`.
    """
    position, size = 0, len(raw)
    while position < size:
        end = min(position + _WINDOW, size)
        match = pattern.search(raw, position, end)
        if match is None:
            position = end if end == size else end - LONGEST_MATCH
        elif match.end() == end < size and match.start() > position:
            position = match.start()  # may extend beyond the window
        else:
            yield match
            position = max(match.end(), position + 1)
