"""Read and write the files that options name."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.errors import OperationError
from assay_runtime.private import opener, write_whole

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


def expect_file(path: Path, option: str) -> None:
    """Raise `OperationError` if an option names a folder, or a file in a folder that does not exist."""
    if path.is_dir():
        raise OperationError("invalid", f"{option}: {path} is a folder")
    if not path.parent.is_dir():
        raise OperationError("invalid", f"{option}: no folder {path.parent}")


def expect_resumable(path: Path, resume: bool) -> None:
    """Raise `OperationError` unless the file of `--output` can be begun, or continued with `--resume`."""
    expect_file(path, "--output")
    if path.exists() and not resume:
        raise OperationError(
            "conflict", f"--output: {path} already exists: continue it with --resume, or choose another file"
        )


def expect_output(path: Path | None) -> None:
    """Raise `OperationError` unless the file of `--output` can be written, before a run costs money."""
    if path is None:
        return
    try:
        expect_file(path, "--output")
        probe = path.with_name(f"{path.name}.part")  # as `write_whole` writes it first
        probe.unlink(missing_ok=True)
        os.close(opener(str(probe), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        probe.unlink()
    except OSError as error:
        raise _not_written(path, error) from None


def write_output(path: Path | None, document: Mapping[str, Any]) -> None:
    """Write the file of `--output`, if there is one, readable by its owner only. Raises `OperationError`."""
    if path is None:
        return
    try:
        write_whole(path, orjson.dumps(document) + b"\n")
    except OSError as error:
        raise _not_written(path, error) from None


def _not_written(path: Path, error: OSError) -> OperationError:
    return OperationError("invalid", f"--output: {path}: {error.strerror or type(error).__name__}")
