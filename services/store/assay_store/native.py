"""ClickHouse's Native format for clients with a protocol version (`client_protocol_version`).

The engine writes the format for clients without a version: no block information, and `DateTime` for
`DateTime('Asia/Tokyo')`. From version 54337 on, a server writes the zone. The types with their zones come from
DESCRIBE; the position of a column in a block is found by skipping the columns before it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence

from assay_store import statements
from assay_store.execute import Block

VERSION_WITH_ZONES = 54337
_VERSION_WITH_SERIALIZATION = 54454
"""From this version on, every column states its serialization, which is not supported here: such clients get the previous format."""

BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"
"""Not the overflow of a GROUP BY, no bucket."""

PLAIN = b"\x08DateTime"
"""The type of a DateTime column in a block."""

_FIXED = {
    **dict.fromkeys(("UInt8", "Int8", "Bool", "Enum8", "Nothing"), 1),
    **dict.fromkeys(("UInt16", "Int16", "Date", "Enum16", "BFloat16"), 2),
    **dict.fromkeys(("UInt32", "Int32", "Float32", "Date32", "DateTime", "IPv4", "Time", "Decimal32"), 4),
    **dict.fromkeys(("UInt64", "Int64", "Float64", "DateTime64", "Time64", "Decimal64"), 8),
    **dict.fromkeys(("UInt128", "Int128", "UUID", "IPv6", "Decimal128"), 16),
    **dict.fromkeys(("UInt256", "Int256", "Decimal256"), 32),
    "Point": 16,
}
_PLAIN = re.compile(re.escape(PLAIN))
_PIECE = 1 << 20
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]* (?=[A-Z])|`(?:[^`\\]|\\.)*` ")

Skip = Callable[[memoryview, int, int], int]


class UnreadableError(Exception):
    """A block has a column of unknown length."""


def respects(version: int) -> bool:
    """True if blocks are written for clients of this version."""
    return VERSION_WITH_ZONES <= version < _VERSION_WITH_SERIALIZATION


class Rewriter:
    """Converts blocks for a client with a protocol version.

    Args:
        describe: gives name and type of each column of the result; asked once, and only if a column may be a DateTime.
    """

    def __init__(self, describe: Callable[[], Sequence[tuple[str, str]]]) -> None:
        self._describe = describe
        self._types: Sequence[tuple[str, str]] | None = None

    def __call__(self, block: Block) -> list[Block]:
        """Convert a block of the engine to the form that the client expects."""
        plain = [Block(memoryview(BLOCK_INFO)), block]
        if self._types is None:
            if not _may_have_dates(block.view):
                return plain
            types = self._describe()
            self._types = types if any(kind.startswith("DateTime(") for _, kind in types) else ()
        if not self._types:
            return plain
        try:
            return [plain[0], Block(memoryview(with_types(block.view, self._types)))]
        except (UnreadableError, ValueError, IndexError, StopIteration, RecursionError):
            # An unknown type: the client reads times as the engine writes them.
            return plain


def describing(sql: str) -> str:
    """Return the statement for the column types of a query.

    Its SETTINGS still apply to the whole statement.
    """
    text = sql.encode("utf-8", "surrogateescape")
    format_at = settings_at = len(text)
    before, previous = None, None
    for token in statements.tokens(text):
        if not token.depth and previous is not None and previous.keyword == "FORMAT" and token.kind == "word":
            format_at = previous.end - len(previous.text)
        if not token.depth and before is not None and before.keyword == "SETTINGS" and token.text == b"=":
            settings_at = before.end - len(before.text)
        before, previous = previous, token
    settings = text[settings_at : format_at if format_at > settings_at else len(text)]
    query, end = (part.decode("utf-8", "surrogateescape") for part in (text[: min(format_at, settings_at)], settings))
    return f"DESCRIBE TABLE (\n{query}\n) {end}".rstrip()


def _may_have_dates(block: memoryview) -> bool:
    # In pieces: one search through a block of hundreds of megabytes would stop every other thread.
    return any(_PLAIN.search(block[start : start + _PIECE + len(PLAIN)]) for start in range(0, len(block), _PIECE))


def with_types(block: memoryview, types: Sequence[tuple[str, str]]) -> bytes:
    """Return a block with these types instead of `DateTime`.

    Args:
        block: one block as the engine writes it.
        types: name and type of each column, in their order.

    Raises:
        UnreadableError: where its columns begin cannot be found out.
    """
    columns, at = _number(block, 0)
    rows, at = _number(block, at)
    found = bytearray(block[:at])
    if columns != len(types):
        raise UnreadableError
    for name, described in types:
        start = at
        read, at = _text(block, at)
        kind, end = _text(block, at)
        if read != name.encode("utf-8", "surrogateescape"):
            raise UnreadableError
        if kind == b"DateTime" and described.startswith("DateTime("):
            found += bytes(block[start:at]) + _varint(len(described)) + described.encode()
        else:
            found += block[start:end]
        prefix, skip = _reader(kind.decode("utf-8", "replace"))
        at = skip(block, prefix + end, rows) if rows else end
        if at > len(block):
            raise UnreadableError
        found += block[end:at]
    if at != len(block):
        raise UnreadableError
    return bytes(found)


def _number(block: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(block) or shift > 63:
            raise UnreadableError
        byte = block[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def _text(block: memoryview, at: int) -> tuple[bytes, int]:
    size, at = _number(block, at)
    return bytes(block[at : at + size]), at + size


def _little(block: memoryview, at: int, size: int) -> int:
    if at + size > len(block):
        raise UnreadableError
    return int.from_bytes(block[at : at + size], "little")


@functools.lru_cache(maxsize=256)
def _reader(kind: str) -> tuple[int, Skip]:
    """Return the bytes that a type writes before its columns, and a function that skips a number of rows."""
    base, _, rest = kind.partition("(")
    arguments = _split(rest[:-1]) if rest else []
    match base:
        case "FixedString":
            return 0, _fixed(int(arguments[0]))
        case "Decimal":
            precision = int(arguments[0])
            return 0, _fixed(next(size for most, size in ((9, 4), (18, 8), (38, 16), (76, 32)) if precision <= most))
        case "String":
            return 0, _strings
        case "SimpleAggregateFunction":
            return _reader(arguments[1])
        case "Nullable":
            prefix, inner = _reader(arguments[0])
            return prefix, lambda block, at, rows: inner(block, at + rows, rows)
        case "Array":
            return _array(arguments[0])
        case "Map":
            return _array(f"Tuple({', '.join(arguments)})")
        case "Tuple":
            return _tuple(
                [_NAMED.sub("", argument, count=1) if _NAMED.match(argument) else argument for argument in arguments]
            )
        case "LowCardinality":
            return 8, _low_cardinality(arguments[0])
        case _ if base in _FIXED or base.startswith("Interval"):
            return 0, _fixed(_FIXED.get(base, 8))
    raise UnreadableError


def _fixed(size: int) -> Skip:
    return lambda _, at, rows: at + size * rows


def _strings(block: memoryview, at: int, rows: int) -> int:
    for _ in range(rows):
        size = block[at] if at < len(block) else 0
        if size < 0x80:
            at += 1 + size
        else:
            size, at = _number(block, at)
            at += size
    return at


def _array(inner: str) -> tuple[int, Skip]:
    prefix, skip = _reader(inner)

    def over(block: memoryview, at: int, rows: int) -> int:
        at += 8 * rows
        size = _little(block, at - 8, 8)
        return skip(block, at, size) if size else at

    return prefix, over


def _tuple(kinds: list[str]) -> tuple[int, Skip]:
    readers = [_reader(kind) for kind in kinds]

    def over(block: memoryview, at: int, rows: int) -> int:
        for _, skip in readers:
            at = skip(block, at, rows)
        return at

    return sum(prefix for prefix, _ in readers), over


def _low_cardinality(inner: str) -> Skip:
    _, skip = _reader(inner.removeprefix("Nullable(").removesuffix(")") if inner.startswith("Nullable(") else inner)

    def over(block: memoryview, at: int, _: int) -> int:
        width = 1 << (_little(block, at, 1) & 0xF)
        keys = _little(block, at + 8, 8)
        at = skip(block, at + 16, keys)
        return at + 8 + width * _little(block, at, 8)

    return over


def _split(text: str) -> list[str]:
    return list(_arguments(text))


def _arguments(text: str) -> Iterator[str]:
    """Split the arguments of a type, at commas outside of brackets and quotes."""
    depth, start, quoted, at = 0, 0, "", 0
    while at < len(text):
        character = text[at]
        if quoted:
            at += character == "\\"
            quoted = "" if character == quoted else quoted
        elif character in "'`":
            quoted = character
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
        at += 1
    yield text[start:].strip()
