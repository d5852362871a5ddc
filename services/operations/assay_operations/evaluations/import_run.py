"""Import the results of another program as a run."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.files import lines_of
from assay_operations.evaluations.runs import free_name

if TYPE_CHECKING:
    from assay_evals.run.model import Run


@dataclass(frozen=True)
class Imported:
    """A run, the number of cases missing in the file, and of its qids that are not in the dataset."""

    run: "Run"
    missing: int
    unasked: int


def import_trec(
    file: Path, dataset: Path, name: str | None, runs: Path, *, k: int, project: str, tags: tuple[str, ...]
) -> Imported:
    """Make a run from results in TREC format. Raises `OperationError`."""
    from assay_evals.dataset.importing import read_trec_run
    from assay_evals.dataset.model import DatasetError
    from assay_evals.metrics.retrieval import DEFAULT_CUTOFFS
    from assay_evals.run.case_results import case_result, score
    from assay_evals.run.folder import RunFolder
    from assay_evals.run.model import RunConfig
    from assay_evals.target.response import TargetResponse

    golden = load(dataset, "--dataset")
    try:
        found = read_trec_run("".join(lines_of(file, "FILE")))
    except DatasetError as error:
        raise OperationError("invalid", f"{file}: {error.problems[0]}") from None
    missing = sum(case.id not in found for case in golden.cases)
    if missing == len(golden.cases):
        raise OperationError(
            "invalid", f"{file}: none of its qids is a case of {dataset}: pass the dataset of this file"
        )
    cutoffs = tuple(each for each in DEFAULT_CUTOFFS if each <= k) or (k,)
    config = RunConfig.of(golden, f"trec: {file.name}", k=k, cutoffs=cutoffs, project=project, tags=tags)
    folder = RunFolder(runs / free_name(name, runs, resume=False), config)
    for case in golden.cases:
        answer = TargetResponse(found.get(case.id, [])[:k], latency_ms=0.0)
        (metrics,) = score([case], [answer], config)
        folder.add(replace(case_result(case, answer, metrics, 1), latency_ms=None))
    run = folder.finish(case.id for case in golden.cases)
    return Imported(run, missing, len(found.keys() - {case.id for case in golden.cases}))
