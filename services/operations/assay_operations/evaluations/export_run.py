"""Export runs in the formats of other programs."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.compare import was_asked
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.longmemeval_output import read_results

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


def exported_longmemeval(output: Path, form: RunFormat, dataset: Path | None) -> "Exported":
    """Export an output of `assay eval longmemeval` as TREC: rankings, or the sessions with the answer.

    `dataset`: the file of the benchmark that it was asked from; judgements need it. Questions without evidence and those about what cannot
    be answered have no judgements, as in the command's own metrics. Raises `OperationError`.
    """
    from assay_evals.errors import EvalsError
    from assay_evals.longmemeval.reading import read_rows
    from assay_evals.run import exporting

    if form not in (RunFormat.TREC, RunFormat.TREC_QRELS):
        raise OperationError("invalid", f"--format {form}: {output} is of LongMemEval: use trec or trec-qrels")
    if (dataset is None) != (form is RunFormat.TREC):
        raise OperationError(
            "invalid",
            "trec needs no --dataset" if dataset else f"{form} needs the dataset that was asked: pass --dataset",
        )
    results = {each.question_id: each for each in read_results(output, "RUN")}
    if not results:
        raise OperationError("invalid", f"RUN: {output} contains no results")
    try:
        if dataset is None:
            return exporting.trec_results(((name, result.retrieved) for name, result in results.items()), output.stem)
        evidence = {
            row.id: {} if row.abstention else dict.fromkeys(row.evidence, 1)
            for row in read_rows(dataset)
            if row.id in results and row.question == results[row.id].question
        }
        if len(evidence) < len(results):
            raise OperationError(
                "invalid", f"--dataset: {dataset} is not the dataset of {output}: it lacks some of its questions"
            )
        return exporting.trec_judgements((name, evidence[name]) for name in results)
    except EvalsError as error:
        raise OperationError("invalid", str(error)) from None
