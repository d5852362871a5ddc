"""Find where JSON values begin and end, without decoding them. Pure.

Brackets, strings and commas are found with regular expressions, so that the cost does not depend on what is in a value,
and within windows, so that no step takes long. The text between brackets is not checked: the caller decodes the values
that it needs.
"""

import itertools
import re
from collections.abc import Generator, Iterator

import orjson

#: Bytes that one step looks at, at most.
WINDOW_BYTES = 128 * 1024
#: Elements of an array, or steps, after which the cutter lets others run.
PAUSE_STEPS = 500
#: Bytes of elements after which it does, too.
PAUSE_BYTES = 512 * 1024
#: Most steps of a body from bracket to bracket. Values that the gateway accepts need far fewer.
STEPS_MAX = 200_000
#: Longest run of white space that is skipped outside of values, in bytes.
SPACE_MAX = 64 * 1024
#: Levels of a value that is cut in one step. Deeper ones take a step for each bracket.
_QUICK_LEVELS = 20

#: A string. The quick form is right if there is no escaped backslash in the body: a quote after a backslash is then
#: always an escaped one.
_STRINGS = {False: rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', True: rb'"[^"]*+(?:(?<=\\)"[^"]*+)*+"'}
_REST_OF_STRING = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_BRACKETS = rb"\[\]{}"
SPACE = rb"[ \t\r\n]{0,%d}+" % SPACE_MAX


def _past(string: bytes, stops: bytes) -> bytes:
    """Return the pattern of everything up to one of `stops`, or to a string that does not end in the window."""
    other = rb'[^"%b]*+' % stops
    return rb"%b(?:%b%b)*+" % (other, string, other)


def _step(string: bytes, stops: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'%b(["%b]?)' % (_past(string, stops), stops), re.DOTALL)


def _object(string: bytes) -> re.Pattern[bytes]:
    """Return the pattern of an object and what separates it from the next value."""
    flat = inner = _past(string, _BRACKETS)
    for _ in range(_QUICK_LEVELS - 1):
        inner = rb"%b(?:[\[{]%b[\]}]%b)*+" % (flat, inner, flat)
    return re.compile(rb"%b({%b})%b([,\]}])" % (SPACE, inner, SPACE), re.DOTALL)


#: By whether the quick form is right. Between values, commas separate them; within a value only brackets matter.
_OBJECT = {quick: _object(string) for quick, string in _STRINGS.items()}
_BETWEEN = {quick: _step(string, b"," + _BRACKETS) for quick, string in _STRINGS.items()}
_WITHIN = {quick: _step(string, _BRACKETS) for quick, string in _STRINGS.items()}
_NAME = re.compile(rb'%b(?:(}|"[^"\\]*+(?:\\.[^"\\]*+)*+")%b(:?))' % (SPACE, SPACE), re.DOTALL)
_SPACE = re.compile(SPACE)
#: A string, or the rest of a value in which it does not end: otherwise each quote in it would be tried as its beginning.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_SCALAR = re.compile(rb'%b(?:-?[0-9][0-9.eE+-]*+|true|false|null|["\[{].*+)%b' % (SPACE, SPACE), re.DOTALL)
_QUOTE = 0x22

#: Begin and end of a value.
Range = tuple[int, int]


class CutError(ValueError):
    """A body cannot be cut. `code` is a short stable name; the message never quotes the body."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Cutter:
    """A way through a body. `at` is the position of the next value.

    Generators yield None where others should run, unless they say otherwise. Each raises `CutError`.
    """

    def __init__(self, body: bytes, at: int = 0, *, depth_max: int) -> None:
        self.body = body
        self.at = at
        self._depth_max = depth_max
        self._quick = b"\\\\" not in body
        self._steps = itertools.count(1)

    def begins(self, bracket: bytes) -> bool:
        """Return whether the next value begins with a bracket."""
        space = _SPACE.match(self.body, self.at)
        assert space is not None  # it matches nothing, at least
        self.at = space.end()
        return self.body.startswith(bracket, self.at)

    def members(self) -> Iterator[bytes]:
        """Yield the name of each member of the object here.

        The caller passes its value before it asks for the next.
        """
        self._enter(b"{")
        first = True
        while True:
            match = _NAME.match(self.body, self.at, self.at + WINDOW_BYTES)
            if match is None or (match[1] == b"}") == bool(match[2]) or (match[1] == b"}" and not first):
                raise incomplete()
            self.at = match.end()
            if match[1] == b"}":
                return
            yield _name(match[1])
            first = False
            if self._stop(b"}"):
                return

    def elements(self) -> Iterator[None]:
        """Yield None for each element of the array here.

        The caller passes it before it asks for the next.
        """
        self._enter(b"[")
        if self.begins(b"]"):
            self.at += 1
            return
        while True:
            yield None
            if self._stop(b"]"):
                return

    def ranges(self) -> Iterator[Range | None]:
        """Yield begin and end of each element of the array here, with the white space around it."""
        self._enter(b"[")
        body, position, count = self.body, self.at, 0
        match_object, paused_at = _OBJECT[self._quick].match, position
        while True:
            if count % PAUSE_STEPS == 0 or position - paused_at > PAUSE_BYTES:
                yield None
                paused_at = position
            match = match_object(body, position, position + WINDOW_BYTES)
            if match is not None and match[2] != b"}":
                begin, end = match.span(1)
                stop, position = match[2], match.end()
            else:
                self.at = begin = position
                end = yield from self._end_of_value(b"]")
                stop, position = body[end : end + 1], end + 1
            if stop == b"]":
                self.at = position
                if count or body[begin:end].strip():
                    yield begin, end
                return
            count += 1
            yield begin, end

    def value(self) -> Generator[None, None, Range]:
        """Pass the value of a member. Return its begin and end."""
        begin = self.at
        match = _OBJECT[self._quick].match(self.body, begin, begin + WINDOW_BYTES)
        if match is not None:
            self.at = match.end(1)
            return match.span(1)
        self.at = end = yield from self._end_of_value(b"}")
        if not _SCALAR.fullmatch(self.body, begin, end):
            raise incomplete()
        return begin, end

    def ends(self) -> bool:
        """Return whether there is nothing more but white space."""
        space = _SPACE.match(self.body, self.at)
        return space is not None and space.end() == len(self.body)

    def _enter(self, bracket: bytes) -> None:
        if not self.begins(bracket):
            raise incomplete()
        self.at += 1

    def _stop(self, closing: bytes) -> bool:
        """Pass a comma, or the closing bracket. Return whether it was the bracket."""
        if self.begins(closing):
            self.at += 1
            return True
        if not self.body.startswith(b",", self.at):
            raise incomplete()
        self.at += 1
        return False

    def _end_of_value(self, closing: bytes) -> Generator[None, None, int]:
        """Return the position of the comma or bracket after a value of any kind, found bracket by bracket."""
        body, between, within, size = self.body, _BETWEEN[self._quick], _WITHIN[self._quick], len(self.body)
        depth, position = 0, self.at
        while True:
            step = next(self._steps)
            if step % PAUSE_STEPS == 0:
                yield None
            if step > STEPS_MAX:
                raise CutError("too_complex", "the body has too many brackets; send smaller batches")
            match = (within if depth else between).match(body, position, min(size, position + WINDOW_BYTES))
            assert match is not None  # it matches nothing, at least
            stop, begin, position = match[1], match.start(), match.end()
            if not stop:
                if position >= size or position == begin:
                    raise incomplete()
                yield None  # a whole window takes milliseconds
            elif stop == b'"':
                yield None
                position = yield from self._end_of_string(position)
            elif depth == 0 and stop in (b",", b"]", b"}"):
                if stop not in (b",", closing):
                    raise incomplete()
                return position - 1
            else:
                depth += 1 if stop in (b"[", b"{") else -1
                if depth > self._depth_max:
                    raise CutError("nested_too_deep", f"the body is nested in more than {self._depth_max} levels")

    def _end_of_string(self, position: int) -> Generator[None, None, int]:
        """Return the position after a string that is longer than a window, or that never ends."""
        body, size = self.body, len(self.body)
        while True:
            match = _REST_OF_STRING.match(body, position, min(size, position + WINDOW_BYTES))
            assert match is not None  # it matches nothing, at least
            if match.end() < size and body[match.end()] == _QUOTE:
                return match.end() + 1
            if match.end() == position:
                raise incomplete()
            position = match.end()
            yield None


def parts(value: bytes) -> int:
    """Return the number of commas and opening brackets in a JSON value, outside of texts."""
    text = _TEXT.sub(b"", value)
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def incomplete() -> CutError:
    """Return the error of a body that ends early, or has brackets where none belong."""
    return CutError("invalid_json", "the JSON is not complete; nothing was stored")


def _name(quoted: bytes) -> bytes:
    if b"\\" not in quoted:
        return quoted[1:-1]
    try:
        return str(orjson.loads(quoted)).encode(errors="replace")
    except orjson.JSONDecodeError:
        raise incomplete() from None
