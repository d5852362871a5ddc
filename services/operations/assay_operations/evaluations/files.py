"""Read the files that options name."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_evals.dataset.captured_rows import Captured


def lines_of(path: Path, option: str) -> Iterator[str]:
    """Yield the lines of a text file. Raises `OperationError` naming the option."""
    from assay_evals import files
    from assay_evals.errors import EvalsError

    try:
        yield from files.lines_of(path)
    except EvalsError as error:
        raise OperationError("invalid", f"{option}: {error}") from None


def captured_of(path: Path, option: str) -> "Iterator[Captured]":
    """Yield the captured rows of a file. Raises `OperationError` naming the option and the file."""
    from assay_evals.dataset.captured_rows import CapturedError, read_captured

    try:
        yield from read_captured(lines_of(path, option))
    except CapturedError as error:
        raise OperationError("invalid", f"{option}: {path}: {error}") from None


def rows_of(files: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of NDJSON files, each with its location. Raises `OperationError` naming it."""
    from assay_evals.dataset.captured_rows import CapturedError, parse_line

    for path in files:
        for number, line in enumerate(lines_of(path, "--from"), start=1):
            if line.strip():
                try:
                    yield f"--from: {path}: line {number}", parse_line(number, line)
                except CapturedError as error:
                    raise OperationError("invalid", f"--from: {path}: {error}") from None
