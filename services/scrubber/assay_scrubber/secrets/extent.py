"""Determine the extent of a secret's value.

As matched, to the closing quote, past marks inside it, or to the end of its element or block.
"""

import re

from assay_scrubber.family import Judge, View

from .values import is_mixed

_REST = re.compile(
    rb"(?:&(?!quot|amp|lt|gt|apos|nbsp|#)[^\s\"'`<>&;]{1,64}(?![^\s\"'`<>&]{0,64}=))?"
)  # an ampersand in a password, but not the next parameter
_WIDE = re.compile(rb"[^\s\"'`\\<>]{8,128}+")
_TO_TAG = re.compile(rb"[^\s<>]{4,256}?(?<!\))(?=</|\]\]>)")  # not a call
_OTHER_QUOTE = re.compile(rb"[\"'`][^\s\\]{0,128}+")
_LONGEST_QUOTED, _MOST_LINES = 512, 32


def judged(view: View, match: re.Match[bytes], judge: Judge) -> tuple[int, int] | None:
    """Return the group `value` of a match if `judge` accepts it."""
    return match.span("value") if judge(view.raw[slice(*match.span("value"))]) else None


def _closing(raw: bytes, start: int, quote: bytes) -> int:
    """Return the end of the value whose opening quote stands before `start`, or -1 if it is not nearby.

    The closing quote has as many backslashes as the opening one (`\\"` in a JSON string).
    """
    depth = _backslashes(raw, start - 1)
    at = raw.find(quote, start, start + _LONGEST_QUOTED)
    while at >= 0:
        deeper = _backslashes(raw, at) - depth
        if deeper >= 0 and deeper % (2 * depth + 2) == 0:
            return at - depth if raw.find(b"\n", start, at) < 0 else -1
        at = raw.find(quote, at + 1, start + _LONGEST_QUOTED)
    return -1


def _backslashes(raw: bytes, position: int) -> int:
    before = raw[max(0, position - 16) : position]
    return len(before) - len(before.rstrip(b"\\"))


def ending(quote: bytes | None, span: tuple[int, int], raw: bytes, *, whole: bool) -> tuple[int, int, bytes, bool]:
    """Return a value with its span, and whether it counts as quoted.

    `whole`: not a parameter of a URL, which would end at an ampersand.
    """
    start, end = span
    if quote:
        other = _OTHER_QUOTE.match(raw, end)
        if raw[end : end + 1] == b"\\":  # an escape inside, or the one before the closing quote
            end = max(end, _closing(raw, start, quote))
        elif other and raw[end : end + 1] != quote:  # an apostrophe in double quotes
            close = raw.find(quote, end, other.end() + 1)
            end = close if close > 0 else end
        return start, end, raw[start:end], True
    wide = _WIDE.match(raw, start)
    if wide and wide.end() > end and is_mixed(wide.group()):
        return start, wide.end(), wide.group(), True
    if whole:
        end = _REST.match(raw, end).end()  # type: ignore[union-attr]  # it matches the empty text too
    value = raw[start:end].rstrip(b".:,;\\")  # a backslash belongs to the quote after it
    return start, start + len(value), value, False


def value_of(match: re.Match[bytes], raw: bytes) -> tuple[int, int, bytes, bool]:
    """Return the result of `ending` for a match with `quote`, `quoted` or `bare`, and `link`.

    `link` attaches the value to its word.
    """
    quote, link = match["quote"], match["link"]
    start, end, value, quoted = ending(quote, match.span("quoted" if quote else "bare"), raw, whole=b"=" not in link)
    if quote:
        return start, end, value, quoted
    if link.endswith(b">") and (element := _TO_TAG.match(raw, start)) is not None and element.end() > end:
        return start, element.end(), element.group(), quoted
    return start, _end_of_block(raw, start) if b"\n" in link else end, value, quoted


def _end_of_block(raw: bytes, start: int) -> int:
    """Return the end of a YAML block, whose lines are all indented like the line of `start`."""
    indent = raw[raw.rfind(b"\n", 0, start) : start]
    end = start
    for _ in range(_MOST_LINES):
        end = raw.find(b"\n", end)
        if end < 0:
            return len(raw)
        if indent.strip() or not raw.startswith(indent, end):
            break
        end += len(indent)
    return end
