"""Golden datasets in files."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.files import lines_of

if TYPE_CHECKING:
    from assay_evals.dataset.model import Dataset


def load(file: Path, option: str = "FILE") -> "Dataset":
    """Read a dataset from a file. Raises `OperationError`."""
    from assay_evals.dataset.file_format import read_dataset
    from assay_evals.dataset.model import DatasetError

    try:
        return read_dataset("".join(lines_of(file, option)))
    except DatasetError as error:
        more = (
            f" (and {len(error.problems) - 1} more: assay dataset validate {file})" if len(error.problems) > 1 else ""
        )
        if file.suffix.lower() in (".csv", ".tsv"):
            raise OperationError(
                "invalid",
                f"{option}: {file} is a table: convert it with `assay dataset import csv {file} > golden.jsonl`",
            ) from None
        raise OperationError("invalid", f"{file}: {error.problems[0]}{more}") from None


def expect_reviewed(golden: "Dataset", file: Path, tell: Callable[[str], None], *, required: bool) -> None:
    """Report the number of unreviewed cases. Raises `OperationError` if all must be reviewed."""
    from assay_evals.dataset.review import unreviewed

    if not (left := len(unreviewed(golden))):
        return
    count = f"{left:,} of {len(golden.cases):,} cases of {file} are unreviewed"
    if required:
        raise OperationError("invalid", f"--require-reviewed: {count}: review them with: assay dataset review {file}")
    tell(f"{count}: their expected results may be wrong")


@contextlib.contextmanager
def refused_as_an_operation(prefix: str = "") -> Iterator[None]:
    """Raise the first problem of a dataset as an `OperationError`."""
    from assay_evals.dataset.model import DatasetError

    try:
        yield
    except DatasetError as error:
        raise OperationError("invalid", f"{prefix}{error.problems[0]}") from None
