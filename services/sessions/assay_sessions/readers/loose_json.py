"""JSON as agents write it: cut in the middle, with half an emoji, with numbers beyond 64 bits."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from assay_sessions.readers.reader import Problems
from assay_sessions.record import Json

#: Bytes of a line or a file that is read at once.
LINE_MAX: Final = 256 * 1024 * 1024
#: Damaged lines of a file whose numbers are named.
_LINES_NAMED: Final = 3


class DamagedError(ValueError):
    """Raised for a text that is not JSON. The message has no part of it."""


def loads(data: bytes | str) -> Any:
    """Parse JSON. Bytes that are no UTF-8 become U+FFFD. Raises `DamagedError`."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    try:
        return json.loads(
            text, strict=False
        )  # accepts lone surrogates, NaN and large numbers, which `document` replaces
    except (ValueError, RecursionError):
        raise DamagedError from None


def load_object(data: bytes | str) -> Json:
    """Parse a JSON object. Raises `DamagedError` for anything else."""
    value = loads(data)
    if not isinstance(value, dict):
        raise DamagedError
    return value


def load_file(path: Path, name: str, problems: Problems) -> Any:
    """Parse a file, or count the problem and return None."""
    try:
        data = path.read_bytes()
        if not data.strip():
            problems.add("empty_file", name)
            return None
        return loads(data)
    except DamagedError:
        problems.add("damaged", name, "JSON")
    except OSError as error:
        problems.failed(name, error)
    return None


def lines(path: Path, problems: Problems) -> Iterator[Json]:
    """Yield the JSON objects of a file of lines.

    Other lines are counted, and the first ones named by their number.
    """
    try:
        with path.open("rb") as file:
            yield from _objects(file, path.name, problems)
    except OSError as error:
        problems.failed(path.name, error)


def _objects(file: BinaryIO, name: str, problems: Problems) -> Iterator[Json]:
    damaged: list[int] = []
    count = number = 0
    is_empty = begins = True
    while line := file.readline(LINE_MAX):
        number += begins
        begins = line.endswith(b"\n")
        if not line.strip():
            continue
        is_empty = False
        try:
            yield load_object(line)
        except DamagedError:
            count += 1
            damaged += [number] if len(damaged) < _LINES_NAMED else []
    if is_empty:
        problems.add("empty_file", name)
    if damaged:
        more = f" and {count - len(damaged):,} more" if count > len(damaged) else ""
        problems.add("damaged", name, f"line{'s' if count > 1 else ''} {', '.join(map(str, damaged))}{more}", count)


# What a field has, if it has the type that is expected.


def mapping(value: Any) -> Json:
    """Return an object, or an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return a list, or an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """Return a text, or an empty one."""
    return value if isinstance(value, str) else ""


def some_text(value: Any) -> str | None:
    """Return a text that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def whole(value: Any) -> int | None:
    """Return a whole number, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def amount(value: Any) -> float:
    """Return a number, or 0."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def arguments(value: Any) -> Json:
    """Return the arguments of a call, which some agents write as JSON text.

    A text that is none stands under `raw`.
    """
    if isinstance(value, dict):
        return value
    if isinstance(value, str) and value:
        try:
            return load_object(value)
        except DamagedError:
            return {"raw": value}
    return {} if value is None or value == "" else {"raw": value}
