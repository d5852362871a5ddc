"""Cut spans in JSON text so that it is still JSON when they are replaced. Pure."""

import json
import re

from .family import Span

# A string and what is in its quotes, or a number. In valid JSON no other quote stands anywhere.
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)"|-?[0-9][0-9.eE+\-]*+')
_LONGEST_ESCAPE = 6
_SPACE = " \t\r\n"
_OPENING, _CLOSING = frozenset('{["'), frozenset('}]"')


#: Where numbers of JSON begin that spans take, and the quotes that belong round what stands for each: `\\"` in JSON inside JSON.
Numbers = dict[int, str]


def within_json(text: str, spans: list[Span]) -> tuple[list[Span], Numbers]:
    """Return `spans` cut where the text or their line is JSON, and the numbers that they take.

    `spans` are in order, without overlap.

    Of a span in a string or number see `_within_tokens`; one that goes over several lines stays as it is.
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
        if not own:  # it goes on in the next line
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
    """True for a whole JSON object, list or string."""
    stripped = text.strip(_SPACE)
    if stripped[:1] not in _OPENING or stripped[-1:] not in _CLOSING:
        return False
    try:
        json.loads(stripped)  # orjson refuses halves of surrogate pairs
    except (ValueError, RecursionError):
        return False
    return True


def _within_tokens(text: str, spans: list[Span], begin: int, stop: int) -> tuple[list[Span], Numbers]:
    """What of `spans` stands in strings and numbers of the JSON from `begin` to `stop`, and the numbers.

    No span leaves the quotes of its string or parts an escape, and one in a number takes all of it.
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
            if first < last and not (kept and first < kept[-1][1]):  # two of them in one number or escape
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


# What stands before and after a number of JSON in a string of JSON.
_GAP = r"(?:[ \t]|\\{1,15}+[nrt]){0,16}+"
_BEFORE_NUMBER = re.compile(r"(?:\\\"" + _GAP + r":|[\[,])" + _GAP + r"-?[0-9.eE+\-]{0,32}$")
_AFTER_NUMBER = re.compile(r"[0-9.eE+\-]{0,32}+(?=" + _GAP + r"[,\]}])")
_DIGITS = re.compile(r"(-?[0-9][0-9.eE+\-]*+)" + _GAP)
_SEEN_BEFORE = 320
_NUMBER_BACK = re.compile(r"-?[0-9][0-9.eE+\-]{0,32}$|-?$")


def _number_round(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int, str] | None:
    """The number of JSON that a span stands in, in the string from `first` to `last` that is JSON itself, with the quotes it has there."""
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
    """The quote that strings of JSON have at a position within a string, which begins at `first`: of the last one, or deeper in it."""
    quote = text.rfind('"', max(first, position - _SEEN_BEFORE), position)
    if quote < 0:
        return '\\"'
    depth = quote - len(text[max(first, quote - 64) : quote].rstrip("\\")) - max(first, quote - 64)
    if _OPENED.match(text, quote + 1):  # it opens a string that is JSON itself
        depth = 2 * depth + 1
    return "\\" * depth + '"'


def _whole_escapes(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int]:
    """The part of a string, which goes from `first` to `last`, with all of the escapes that it begins or ends in."""
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
    """The escape of a string, which begins at `first`, that `position` stands in; the position alone when there is none."""
    at = text.rfind("\\", max(first, position - _LONGEST_ESCAPE + 1), position)
    before = at
    while before >= first and text[before] == "\\":
        before -= 1
    if (at - before) % 2:  # an even number of them are escapes of themselves
        after = at + (_LONGEST_ESCAPE if text[at + 1] == "u" else 2)
        if position < after:
            return at, after
    return position, position
