"""Export runs in the formats of other programs."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.compare import was_asked
from assay_operations.evaluations.datasets import load

if TYPE_CHECKING:
    from assay_evals.run.exporting import Exported
    from assay_evals.run.model import Run


class RunFormat(StrEnum):
    """Format to export a run in."""

    TREC = "trec"
    TREC_QRELS = "trec-qrels"
    CAPTURED = "captured"
    QRELS = "qrels"


def exported(run: "Run", form: RunFormat, dataset: Path | None) -> "Exported":
    """Export a run. All formats but `trec` need its dataset. Raises `OperationError`."""
    from assay_evals.run import exporting
    from assay_evals.run.model import RunError

    if (dataset is None) != (form is RunFormat.TREC):
        raise OperationError(
            "invalid", "trec needs no --dataset" if dataset else f"{form} needs the dataset of the run: pass --dataset"
        )
    try:
        if dataset is None:
            return exporting.trec_run(run)
        golden = load(dataset, "--dataset")
        if not was_asked(golden, run):
            raise OperationError(
                "invalid", f"--dataset: {dataset} is not the dataset of {run.run_id}: its cases or texts differ"
            )
        write = {
            RunFormat.TREC_QRELS: exporting.trec_qrels,
            RunFormat.CAPTURED: exporting.captured_rows,
            RunFormat.QRELS: exporting.gate_qrels,
        }[form]
        return write(run, golden)
    except RunError as error:
        raise OperationError("invalid", str(error)) from None
