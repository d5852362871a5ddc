"""The place where a long text is cut. Pure."""

import re
import unicodedata
from typing import Final

_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_SPACE: Final = re.compile(r"\s")
_JOINER: Final = "\u200d"
#: Longest run of characters that belong together, such as a letter with its accents. Longer ones are cut.
_CLUSTER_MAX: Final = 32


def natural_cut(text: str, most: int) -> int:
    """Return the place to cut a text: at most `most`, and not within a character and what modifies it.

    It is after the last blank line in the last quarter, else after the last newline there, else after the last white space there,
    else `most`.
    """
    if most >= len(text):
        return len(text)
    from_ = most - most // 4
    last = None
    for pattern in (_BLANK_LINE, re.compile("\n"), _SPACE):
        for found in pattern.finditer(text, from_, most):
            last = found.end()
        if last is not None:
            break
    at = most if last is None else last
    for back in range(min(_CLUSTER_MAX, at - 1)):
        if not _together(text[at - back - 1], text[at - back]):
            return at - back
    return at


def _together(before: str, after: str) -> bool:
    """Tell if two characters are one for the reader: a base and its mark, an emoji and its modifier, a CR and its LF."""
    return (
        unicodedata.category(after) in {"Mn", "Mc", "Me"}
        or _JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff")
        or (before == "\r" and after == "\n")
        or "\udc00" <= after <= "\udfff"
    )
