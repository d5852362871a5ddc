"""Read files of LongMemEval row by row, in the memory of one: a JSON array, or JSON lines."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from assay_evals.longmemeval.rows import TYPES, DatasetError, Row, read_row
from assay_evals.strict_json import JsonError, JsonSyntaxError, first_value

#: Characters that are read at a time, and most of one row: the largest in the released files has 7 million.
_PIECE = 1_000_000
ROW_MAX_CHARS = 50_000_000
#: Released files by their SHA-256.
RELEASES = {"d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442": "longmemeval_s_cleaned"}
_SPACE = " \t\r\n\ufeff"


@dataclass
class Survey:
    """Contents of a file: questions by type, and counts of defects by name."""

    sha256: str
    questions: int = 0
    types: Counter[str] = field(default_factory=Counter)
    quirks: Counter[str] = field(default_factory=Counter)
    #: Questions with evidence, except abstention.
    measurable: int = 0


def survey(path: Path, limit: int | None, *, judged: bool) -> Survey:
    """Read the first `limit` rows and validate all of them, before a run costs time or money.

    `judged`: each also needs an answer, and a type that the benchmark defines. Raises `DatasetError`.
    """
    try:
        if not path.is_file():
            raise DatasetError(f"no file {path}" if not path.exists() else f"{path} is not a regular file")
        with path.open("rb") as file:
            found = Survey(hashlib.file_digest(file, "sha256").hexdigest())
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None
    seen: set[str] = set()
    for row in read_rows(path, limit):
        if row.id in seen:
            raise DatasetError(f"{path}: two rows have the question_id {row.id}")
        if judged and row.type not in TYPES:
            raise DatasetError(f"{path}: {row.id}: question_type {row.type!r} is not one of {', '.join(TYPES)}")
        if judged and not row.answer:
            raise DatasetError(f"{path}: {row.id} has no answer to judge by: pass --retrieval-only")
        seen.add(row.id)
        found.questions += 1
        found.types[row.type] += 1
        found.measurable += bool(row.evidence) and not row.abstention
        found.quirks.update({name: count for name, count in row.quirks.items() if count})
    if not found.questions:
        raise DatasetError(f"{path} contains no questions")
    return found


def read_rows(path: Path, limit: int | None = None) -> Iterator[Row]:
    """Yield the rows of a file, at most `limit`. Raises `DatasetError` with the number of the row."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, value in enumerate(islice(_values(file, path), limit), start=1):
                yield read_row(value, f"{path}: row {number}")
    except UnicodeDecodeError:
        raise DatasetError(f"{path} is not UTF-8 text: unpack it, or convert it with iconv") from None
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from None


class _Text:
    """The unread part of a file, and where it begins."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.text = ""
        self.place = 0
        self.ended = False

    def more(self) -> None:
        """Read another piece, at least as long as the unread part: parsing a row again costs at most twice its length."""
        piece = self._file.read(max(_PIECE, len(self.text) - self.place))
        self.text, self.place, self.ended = self.text[self.place :] + piece, 0, not piece

    def next(self) -> str:
        """Return the next character that is not white space, without consuming it; empty at the end."""
        while True:
            while self.place < len(self.text) and self.text[self.place] in _SPACE:
                self.place += 1
            if self.place < len(self.text) or self.ended:
                return self.text[self.place : self.place + 1]
            self.more()


def _values(file: TextIO, path: Path) -> Iterator[Any]:
    text, number = _Text(file), 1
    array = text.next() == "["
    text.place += array
    while (character := text.next()) and not (array and character == "]"):
        if array and number > 1:
            if character != ",":
                raise DatasetError(f"{path}: row {number - 1} is not followed by a comma")
            text.place += 1
            text.next()
        yield _value(text, f"{path}: row {number}")
        number += 1
    if array:
        text.place += 1
        if character != "]" or text.next():
            raise DatasetError(f"{path}: the list of rows has no end, or is followed by other text: download it again")


def _value(text: _Text, place: str) -> Any:
    while True:
        try:
            value, end = first_value(text.text, text.place)
        except JsonSyntaxError as error:
            if text.ended:
                raise DatasetError(f"{place}: {error}: the file is damaged or cut off") from None
            if len(text.text) - text.place > ROW_MAX_CHARS:
                raise DatasetError(f"{place} is not JSON, or has more than {ROW_MAX_CHARS:,} characters") from None
            text.more()
        except JsonError as error:
            raise DatasetError(f"{place}: {error}") from None
        else:
            if end == len(text.text) and not text.ended:  # a number may continue
                text.more()
                continue
            whole, text.place = text.text[text.place : end], end
            return _encodable(value) if "\\ud" in whole else value


def _encodable(value: Any) -> Any:
    """Replace lone surrogates, which JSON can contain and no file can."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def by_type(types: Sequence[str]) -> list[str]:
    """Return question types in the benchmark's order, others after them by name."""
    known = [each for each in TYPES if each in types]
    return known + sorted(set(types) - set(known))
