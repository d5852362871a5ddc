"""Cut a batch into the bytes of its events, without decoding them. Pure.

Each event keeps the bytes that the client sent: numbers and texts are not written again. Brackets, strings and commas
are found with regular expressions, so that the cost does not depend on what is in an event, and within windows, so
that no step takes long. Events that are not valid JSON are found later, one by one.
"""

import itertools
import re
from collections.abc import Generator, Iterator

from assay_gateway.refusal import RefusedError, malformed
from assay_schema.limits import NESTING_MAX

#: Most events of a request.
ITEMS_MAX = 10_000
#: Deepest nesting of brackets in a batch: that of free-form JSON, and what is around it.
DEPTH_MAX = NESTING_MAX + 16
#: Bytes that one step looks at, at most.
WINDOW_BYTES = 128 * 1024
#: Steps after which the cutter lets others run.
PAUSE_STEPS = 500
#: Most steps of a body from bracket to bracket. Events that the schema accepts need far fewer.
STEPS_MAX = 200_000
#: Levels of an event that is cut in one step. Deeper ones take a step for each bracket.
_QUICK_LEVELS = 8

#: A string. The quick form is right if there is no escaped backslash in the batch: a quote after a backslash is then
#: always an escaped one.
_STRINGS = {False: rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', True: rb'"[^"]*+(?:(?<=\\)"[^"]*+)*+"'}
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BRACKETS = rb"\[\]{}"
_SPACE = rb"[ \t\r\n]*+"


def _past(string: bytes, stops: bytes) -> bytes:
    """Return the pattern of everything up to one of `stops`, or to a string that does not end in the window."""
    other = rb'[^"%b]*+' % stops
    return rb"%b(?:%b%b)*+" % (other, string, other)


def _step(string: bytes, stops: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'%b(["%b]?)' % (_past(string, stops), stops), re.DOTALL)


def _event(string: bytes) -> re.Pattern[bytes]:
    """Return the pattern of an object and what separates it from the next one."""
    flat = inner = _past(string, _BRACKETS)
    for _ in range(_QUICK_LEVELS - 1):
        inner = rb"%b(?:[\[{]%b[\]}]%b)*+" % (flat, inner, flat)
    return re.compile(rb"%b({%b})%b([,\]])" % (_SPACE, inner, _SPACE), re.DOTALL)


#: By whether the quick form is right. Between events, commas separate them; within an event only brackets matter.
_EVENT = {quick: _event(string) for quick, string in _STRINGS.items()}
_BETWEEN = {quick: _step(string, b"," + _BRACKETS) for quick, string in _STRINGS.items()}
_WITHIN = {quick: _step(string, _BRACKETS) for quick, string in _STRINGS.items()}
_ENVELOPE = re.compile(rb'[ \t\r\n]*{[ \t\r\n]*"events"[ \t\r\n]*:[ \t\r\n]*\[')
_ARRAY = re.compile(rb"[ \t\r\n]*\[")
_END = {True: re.compile(rb"[ \t\r\n]*}[ \t\r\n]*"), False: re.compile(rb"[ \t\r\n]*")}
_LINE = re.compile(rb"[^\n]+")
_QUOTE = 0x22


def json_items(body: bytes) -> Iterator[bytes | None]:
    """Yield the events of an array, or of `{"events": [...]}`, and None where others should run.

    Raises `RefusedError` if the batch is neither, not complete, or too long.
    """
    envelope = _ENVELOPE.match(body)
    begin = envelope or _ARRAY.match(body)
    if begin is None:
        raise malformed(
            "invalid_body", 'the body must be a JSON array of events, {"events": [...]} alone, or NDJSON with its type'
        )
    position = yield from _elements(body, begin.end())
    if not _END[envelope is not None].fullmatch(body, position):
        raise malformed("invalid_json", "there is more after the array of events; nothing was stored")


def _elements(body: bytes, position: int) -> Generator[bytes | None, None, int]:
    """Yield the elements of the array that begins at a position. Return the position after it."""
    quick, size, count = b"\\\\" not in body, len(body), 0
    event, steps = _EVENT[quick], itertools.count(1)
    while True:
        if count % PAUSE_STEPS == 0:
            yield None
        match = event.match(body, position, min(size, position + WINDOW_BYTES))
        if match is not None:
            element, stop, position = match[1], match[2], match.end()
        else:
            end = yield from _end_of_element(body, position, steps, quick=quick)
            element, stop, position = body[position:end], body[end : end + 1], end + 1
        if stop == b"]" and not count and not element.strip():
            return position
        count = _counted(count)
        yield element
        if stop == b"]":
            return position


def _end_of_element(body: bytes, position: int, steps: Iterator[int], *, quick: bool) -> Generator[None, None, int]:
    """Return the position of the comma or bracket after an element of any kind, found bracket by bracket."""
    between, within, size = _BETWEEN[quick], _WITHIN[quick], len(body)
    depth = 0
    while True:
        step = next(steps)
        if step % PAUSE_STEPS == 0:
            yield None
        if step > STEPS_MAX:
            raise malformed("too_complex", "the events have too many brackets; send smaller batches")
        match = (within if depth else between).match(body, position, min(size, position + WINDOW_BYTES))
        assert match is not None  # it matches nothing, at least
        stop, begin, position = match[1], match.start(), match.end()
        if not stop:
            if position >= size or position == begin:
                raise _incomplete()
            yield None  # a whole window takes milliseconds
        elif stop == b'"':
            position = yield from _end_of_string(body, position)
        elif stop == b"," or (depth == 0 and stop in (b"]", b"}")):
            if stop == b"}":
                raise _incomplete()
            return position - 1
        else:
            depth += 1 if stop in (b"[", b"{") else -1
            if depth > DEPTH_MAX:
                raise malformed("nested_too_deep", f"the events are nested in more than {DEPTH_MAX} levels")


def _end_of_string(body: bytes, position: int) -> Generator[None, None, int]:
    """Return the position after a string that is longer than a window, or that never ends."""
    size = len(body)
    while True:
        match = _REST_OF_STRING.match(body, position, min(size, position + WINDOW_BYTES))
        assert match is not None
        if match.end() < size and body[match.end()] == _QUOTE:
            return match.end() + 1
        if match.end() == position:
            raise _incomplete()
        position = match.end()
        yield None


def lines(body: bytes) -> Iterator[bytes | None]:
    """Yield the lines of NDJSON that are not blank, and None where others should run."""
    count = 0
    for step, match in enumerate(_LINE.finditer(body), 1):
        if step % PAUSE_STEPS == 0:
            yield None
        if line := match[0].strip():
            count = _counted(count)
            yield line


def _counted(count: int) -> int:
    if count >= ITEMS_MAX:
        raise malformed("too_many_events", f"more than {ITEMS_MAX} events in a request; send smaller batches")
    return count + 1


def _incomplete() -> RefusedError:
    return malformed("invalid_json", "the JSON is not complete; nothing was stored")
