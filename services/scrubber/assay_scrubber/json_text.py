"""Trim spans in JSON text so that it is still JSON after they are replaced. Pure."""

import json
import re

from .family import Span

# A string with its content, or a number. In valid JSON, quotes occur nowhere else.
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)"|-?[0-9][0-9.eE+\-]*+')
_LONGEST_ESCAPE = 6
_SPACE = " \t\r\n"
_OPENING, _CLOSING = frozenset('{["'), frozenset('}]"')


#: Start of each redacted JSON number, and the quotes that its replacement needs: `\\"` in JSON inside JSON.
Numbers = dict[int, str]


def within_json(text: str, spans: list[Span]) -> tuple[list[Span], Numbers]:
    """Return `spans` trimmed where the text or their line is JSON, and the numbers that they redact.

    `spans` are in order, without overlap. Spans in a string or number are trimmed as `_within_tokens` describes; a span over several lines
    is unchanged.
    """
    if '"' not in text and "[" not in text:
        return spans, {}
    if _is_json(text):
        return _within_tokens(text, spans, 0, len(text))
    if "\n" not in text:
        return spans, {}
    kept: list[Span] = []
    numbers: Numbers = {}
    place = 0
    while place < len(spans):
        first, last = _line(text, spans[place][0])
        own = []
        while place < len(spans) and spans[place][1] <= last:
            own.append(spans[place])
            place += 1
        if not own:  # it continues in the next line
            kept.append(spans[place])
            place += 1
        elif _is_json(text[first:last]):
            own, found = _within_tokens(text, own, first, last)
            numbers |= found
        kept += own
    return kept, numbers


def _line(text: str, position: int) -> tuple[int, int]:
    last = text.find("\n", position)
    return text.rfind("\n", 0, position) + 1, last if last >= 0 else len(text)


def _is_json(text: str) -> bool:
    """Return whether the text is a whole JSON object, list or string."""
    stripped = text.strip(_SPACE)
    if stripped[:1] not in _OPENING or stripped[-1:] not in _CLOSING:
        return False
    try:
        json.loads(stripped)  # orjson refuses lone surrogates
    except (ValueError, RecursionError):
        return False
    return True


def _within_tokens(text: str, spans: list[Span], begin: int, stop: int) -> tuple[list[Span], Numbers]:
    """Return the parts of `spans` in strings and numbers of the JSON from `begin` to `stop`, and the numbers.

    No span crosses the quotes of its string or splits an escape, and a span in a number covers all of it.
    """
    kept: list[Span] = []
    numbers: Numbers = {}
    holds_json: dict[int, bool] = {}
    tokens = _TOKEN.finditer(text, begin, stop)
    token = next(tokens, None)
    for start, end, rank in spans:
        while token is not None and token.end() <= start:
            token = next(tokens, None)
        while token is not None and token.start() < end:
            if token.start(1) < 0:
                first, last = token.span()
                numbers[first] = '"'
            else:
                first, last = token.span(1)
                first, last = _whole_escapes(text, max(start, first), min(end, last), first, last)
                number = _DIGITS.fullmatch(text, first, last) if first < last and text[token.start(1)] in "{[" else None
                if number is not None:
                    if token.start(1) not in holds_json:
                        holds_json[token.start(1)] = _is_json_in_string(token.group(1))
                    inner = _number_round(text, *number.span(1), *token.span(1)) if holds_json[token.start(1)] else None
                    if inner is not None:
                        first, last, numbers[inner[0]] = inner
            if first < last and not (kept and first < kept[-1][1]):  # two spans in one number or escape
                kept.append((first, last, rank))
            if token.end() > end:
                break
            token = next(tokens, None)
    return kept, numbers


def _is_json_in_string(written: str) -> bool:
    try:
        json.loads(json.loads(f'"{written}"'))
    except (ValueError, RecursionError):
        return False
    return True


# The context of a JSON number inside a JSON string.
_GAP = r"(?:[ \t]|\\{1,15}+[nrt]){0,16}+"
_BEFORE_NUMBER = re.compile(r"(?:\\\"" + _GAP + r":|[\[,])" + _GAP + r"-?[0-9.eE+\-]{0,32}$")
_AFTER_NUMBER = re.compile(r"[0-9.eE+\-]{0,32}+(?=" + _GAP + r"[,\]}])")
_DIGITS = re.compile(r"(-?[0-9][0-9.eE+\-]*+)" + _GAP)
_SEEN_BEFORE = 320
_NUMBER_BACK = re.compile(r"-?[0-9][0-9.eE+\-]{0,32}$|-?$")


def _number_round(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int, str] | None:
    """Return the JSON number around a span, with the quotes that its replacement needs.

    The number stands in the string from `first` to `last`, which is itself JSON.
    """
    before, after = (
        _BEFORE_NUMBER.search(text, max(first, start - _SEEN_BEFORE), start),
        _AFTER_NUMBER.match(text, end, last),
    )
    if before is None or after is None:
        return None
    back = _NUMBER_BACK.search(text, max(first, start - 40), start)
    return (back.start() if back is not None else start), after.end(), _quotes_at(text, start, first)


_OPENED = re.compile(_GAP + r"[\[{]")


def _quotes_at(text: str, position: int, first: int) -> str:
    """Return the quote, with its backslashes, that strings have at a position within a string that begins at `first`.

    It is the quote of the preceding string, or of one nested in that.
    """
    quote = text.rfind('"', max(first, position - _SEEN_BEFORE), position)
    if quote < 0:
        return '\\"'
    depth = quote - len(text[max(first, quote - 64) : quote].rstrip("\\")) - max(first, quote - 64)
    if _OPENED.match(text, quote + 1):  # it opens a string that is JSON itself
        depth = 2 * depth + 1
    return "\\" * depth + '"'


def _whole_escapes(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int]:
    """Extend a part of a string from `first` to `last` by the escapes that it splits."""
    if start >= end:
        return start, end
    start = _escape_round(text, start, first)[0]
    if end == last:
        return start, end
    before, after = end, end
    while before > start and text[before - 1] == "\\":
        before -= 1
    while after < last and text[after] == "\\":
        after += 1
    if before < after < last and text[after] == '"':
        return start, before  # a quote of JSON inside JSON, with all its backslashes
    return start, _escape_round(text, end, first)[1]


def _escape_round(text: str, position: int, first: int) -> tuple[int, int]:
    """Return the escape around `position` in a string that begins at `first`, or the position alone."""
    at = text.rfind("\\", max(first, position - _LONGEST_ESCAPE + 1), position)
    before = at
    while before >= first and text[before] == "\\":
        before -= 1
    if (at - before) % 2:  # an even number of backslashes escape each other
        after = at + (_LONGEST_ESCAPE if text[at + 1] == "u" else 2)
        if position < after:
            return at, after
    return position, position
