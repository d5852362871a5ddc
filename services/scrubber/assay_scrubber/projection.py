"""Project text to one byte per code point, so that a byte offset is a character offset.

Detection runs on bytes: `bytes` has fast searches, and one alphabet for patterns. Decimal digits of every script become 0-9, spaces ' ',
dashes '-', full-width forms their ASCII equivalents. Other characters become `LETTER` (alphabets that are written with spaces between
words) or `OTHER` (everything else, including scripts that are written without spaces: there the neighbour of an address is not part of
it). Invisible characters become `UNSEEN`. Keywords in such scripts become a dedicated byte each (`lexicon`).
"""

import codecs
import re
import unicodedata
from bisect import bisect_left, bisect_right
from functools import lru_cache
from itertools import combinations

from .lexicon import marked, marked_escapes

LETTER = 0x80
OTHER = 0x81
UNSEEN = 0xAD
#: Circled, raised and lowered digits: 0xB0 to 0xB9. One is a footnote mark; a text with several is also searched with them as digits.
SMALL = 0xB0

_UNSEEN_RANGES = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x20DD, 0x20E4), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF9, 0xFFFB), (0xE0000, 0xE0FFF),
)  # fmt: skip
_ASCII_TWIN_RANGES = ((0x2000, 0x206F), (0x2100, 0x214F), (0xFE50, 0xFE6F), (0xFF01, 0xFF5E), (0x1D400, 0x1D7FF))
_ALPHABETS = ((0x00AA, 0x0DFF), (0x10A0, 0x10FF), (0x1E00, 0x1FFF), (0x2C00, 0x2DFF), (0xA640, 0xA69F))
_DOTS = "·•‧∙⋅․。｡"  # also the ideographic full stops that host names may be written with
_SLASHES = "\u2044\u2215"
_SPACES = (
    "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_DASHES = "‐‑‒–—―−⁃﹘﹣－➖⸺"


def _fold_letters(table: bytearray) -> None:
    for first, last in _ALPHABETS:
        for point in range(first, last + 1):
            if unicodedata.category(chr(point))[0] in "LM":
                table[point] = LETTER


def _fold_twins(table: bytearray) -> None:
    for point in range(0x80, 0x20000):
        digit = unicodedata.decimal(chr(point), None)
        if digit is not None:
            table[point] = 0x30 + digit
        elif (small := unicodedata.digit(chr(point), None)) is not None:
            table[point] = SMALL + small
    for first, last in _ASCII_TWIN_RANGES:
        for point in range(first, last + 1):
            twin = unicodedata.normalize("NFKC", chr(point))
            if len(twin) == 1 and twin.isascii():
                table[point] = ord(twin)
    for marks, mark in ((_SPACES, " "), (_DOTS, "."), (_DASHES, "-"), (_SLASHES, "/")):
        for character in marks:
            table[ord(character)] = ord(mark)


def _table() -> bytes:
    table = bytearray([OTHER]) * 0x110000
    table[:0x80] = bytes(range(0x80))
    _fold_letters(table)
    _fold_twins(table)
    for first, last in _UNSEEN_RANGES:
        table[first : last + 1] = bytes([UNSEEN]) * (last - first + 1)
    return bytes(table)


_TABLE = _table()
_CHUNK = 32
_FOLD = "assay_scrubber.fold"


def _fold(error: UnicodeError) -> tuple[bytes, int]:
    """Project a run of characters that begins with a non-ASCII one: text is mostly ASCII, for which the codec is fast."""
    assert isinstance(error, UnicodeEncodeError)
    end = max(error.end, min(error.start + _CHUNK, len(error.object)))
    return codecs.charmap_encode(error.object[error.start : end], "strict", _TABLE)[0], end


codecs.register_error(_FOLD, _fold)


def project(text: str) -> bytes:
    """Return one byte per code point of `text`.

    Lone surrogates are included, so it never raises. Keywords of `lexicon` become the byte of their meaning.
    """
    raw = text.encode("ascii", _FOLD)
    return raw if text.isascii() else marked(text, raw)


# Ways in which one character is written as several, and invisible terminal colours (ECMA-48). A run of backslashes is one escape:
# JSON inside JSON doubles it.
_COLOUR = rb"\[[0-9;:]{0,16}m"
_ESCAPES = {
    b"%": rb"%(?:25)*[C-Fc-f][0-9A-Fa-f](?:%(?:25)*[89ABab][0-9A-Fa-f]){1,3}|%(?:25)*[0-9A-Fa-f]{2}",
    b"\\": rb"\\(?<!\\\\)\\*+(?:(?:u001[Bb]|x1[Bb]|033|e)"
    + _COLOUR
    + rb"|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|[nrtbf\"'/])",
    b"&": rb"&(?:amp;)*(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|commat|period|colon|plus|nbsp|amp|quot|apos|lt|gt);",
    b"\x1b": rb"\x1b" + _COLOUR,
}
#: Text of only these bytes reads as written. Other text may read differently: escapes, invisible characters, other scripts.
SHOWN = bytes(b for b in range(1, 0x80) if bytes([b]) not in _ESCAPES)
# One pattern for each set of bytes that escapes begin with: a search for one literal is fast.
_ESCAPE = {
    marks: re.compile(b"|".join(_ESCAPES[mark] for mark in marks))
    for size in range(1, len(_ESCAPES) + 1)
    for marks in combinations(_ESCAPES, size)
}
_NAMED = {
    b"commat": b"@", b"period": b".", b"colon": b":", b"plus": b"+", b"nbsp": b" ", b"amp": b"&", b"quot": b'"',
    b"apos": b"'", b"lt": b"<", b"gt": b">", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b" ", b"f": b" ",
    b'"': b'"', b"'": b"'", b"/": b"/",
}  # fmt: skip


def _percent(written: bytes) -> bytes:
    """Decode one code point's percent escapes (RFC 3986); percent signs may themselves be escaped, any number of times."""
    octets = bytes([int(octet[-2:], 16) for octet in written[1:].split(b"%")])
    if octets.isascii():
        return octets
    try:
        return project(octets.decode("utf-8"))
    except UnicodeDecodeError:
        return bytes([LETTER])  # part of a letter


@lru_cache(maxsize=4096)
def _decoded(written: bytes) -> bytes:
    if written.find(b"[") >= 0:
        return _UNSEEN_BYTE * len(written)
    body = written.strip(b"%\\&;").rpartition(b";")[2]
    named = _percent(written) if written[:1] == b"%" else _NAMED.get(body)
    if named is None:
        base = 10 if body[:1] == b"#" and body[1:2] not in b"xX" else 16
        named = bytes([_TABLE[min(int(body.lstrip(b"#xXu{").rstrip(b"}"), base), 0x10FFFF)] or UNSEEN])
    return named + bytes([UNSEEN]) * (len(written) - 1)


def _decode(match: re.Match[bytes]) -> bytes:
    written = match.group()
    return _decoded(written) if len(written) <= _LONGEST_KEPT else _decoded.__wrapped__(written)


_LONGEST_KEPT = 16
_UNSEEN_BYTE = bytes([UNSEEN])
_FEWEST_SMALL = 4
_NOT_SMALL = bytes(b for b in range(256) if not SMALL <= b < SMALL + 10)
_SMALL_TO_DIGITS = bytes.maketrans(bytes(range(SMALL, SMALL + 10)), b"0123456789")
_UNSEEN_ONE = re.compile(_UNSEEN_BYTE)


class Unfolded:
    """The text as a reader sees it: escapes decoded, invisible characters removed; `origin` maps back."""

    __slots__ = ("_positions", "_size", "gaps", "respelled", "seen")

    def __init__(self, decoded: bytes, *, respelled: bool = False) -> None:
        #: Whether a visible byte differs from the projection without a gap there.
        self.respelled = respelled
        self.seen = decoded.translate(None, _UNSEEN_BYTE)
        self._size = len(decoded)
        self._positions = [match.start() for match in _UNSEEN_ONE.finditer(decoded)]
        #: Number of visible bytes before each unseen byte.
        self.gaps = [position - before for before, position in enumerate(self._positions)]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the projection that `seen[start:end]` came from, including whole escapes."""
        first = start + bisect_right(self.gaps, start)
        last = end + bisect_right(self.gaps, end) if end < len(self.seen) else self._size
        return first, last

    def seen_at(self, position: int) -> int:
        """Return the number of visible bytes before `position` of the projection."""
        return position - bisect_left(self._positions, position)


def unfold(raw: bytes) -> Unfolded | None:
    """Unfold `raw`; None if it already reads as written: no escapes, no invisible characters."""
    decoded = raw
    marks = tuple(mark for mark in _ESCAPES if raw.find(mark) >= 0)
    if marks:
        if raw.find(b"\\u") >= 0:
            raw = marked_escapes(raw, _UNSEEN_BYTE)
        decoded = _ESCAPE[marks].sub(_decode, raw)
    if decoded.find(b"\0") >= 0:
        decoded = decoded.replace(b"\0", _UNSEEN_BYTE)
    if decoded.isascii():
        return None
    respelled = len(decoded.translate(None, _NOT_SMALL)) >= _FEWEST_SMALL
    if respelled:
        decoded = decoded.translate(_SMALL_TO_DIGITS)
    return Unfolded(decoded, respelled=respelled) if respelled or decoded.find(_UNSEEN_BYTE) >= 0 else None
