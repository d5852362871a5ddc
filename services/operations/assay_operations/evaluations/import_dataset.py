"""Import datasets from other formats."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from assay_operations.errors import OperationError
from assay_operations.evaluations.files import lines_of

if TYPE_CHECKING:
    from assay_evals.dataset.model import Dataset


Made = TypeVar("Made")


class Form(StrEnum):
    """Format to import a dataset from."""

    TREC = "trec"
    BEIR = "beir"
    CSV = "csv"
    QRELS = "qrels"


def imported(
    form: Form, source: Path, queries: Path | None, split: str, name: str, tell: Callable[[str], None]
) -> "Dataset":
    """Import a dataset from another format; `tell` gets a note for each omission.

    Raises `OperationError`.
    """
    from assay_evals.dataset import importing
    from assay_evals.dataset.qrels import QrelsError, read_qrels

    if form is Form.CSV:
        return _read(source, lambda text: importing.from_csv(text, name=name), tell)
    if form is Form.QRELS:
        try:
            return _read(source, lambda text: importing.from_known(read_qrels(text), name=name), tell)
        except QrelsError as error:
            raise OperationError("invalid", f"{source}: {error}") from None
    if form is Form.BEIR:
        if not source.is_dir():
            raise OperationError(
                "invalid", f"{source} is not a folder: beir needs one with queries.jsonl and qrels/{split}.tsv"
            )
        source, queries = source / "qrels" / f"{split}.tsv", source / "queries.jsonl"
    assert queries is not None
    grades = _read(source, importing.read_judgements, tell)
    asked = _read(queries, importing.read_queries, tell)
    made, notes = _read(source, lambda _: importing.from_judgements(grades, asked, name=name), tell)
    for note in notes:
        tell(note)
    return made


def _read(path: Path, make: Callable[[str], Made], tell: Callable[[str], None]) -> Made:
    from assay_evals.dataset.model import DatasetError

    try:
        return make("".join(lines_of(path, "FILE")))
    except DatasetError as error:
        for problem in error.problems[1:]:
            tell(f"{path}: {problem}")
        raise OperationError("invalid", f"{path}: {error.problems[0]}") from None
