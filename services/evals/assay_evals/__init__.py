"""Golden datasets, metrics, statistics, replay, comparison and gates.

Names for notebooks and tests; the modules contain the rest. Names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns, compare_runs
    from assay_evals.compare.comparison import Comparison
    from assay_evals.compare.verdicts import Rule, Stage, Verdict
    from assay_evals.dataset.file_format import read_dataset
    from assay_evals.dataset.model import Case, Dataset
    from assay_evals.evaluation import assert_no_regression, evaluate
    from assay_evals.replay.replay_runner import replay_captured, run_gate
    from assay_evals.run.folder import read_run
    from assay_evals.run.model import Run
    from assay_evals.target.response import ResultMetadata, TargetResponse
    from assay_evals.target.runner import RunnerOptions

_HOME = {
    "compare.compare_runs": ("PairedRuns", "compare_runs"),
    "compare.comparison": ("Comparison",),
    "compare.verdicts": ("Rule", "Stage", "Verdict"),
    "dataset.file_format": ("read_dataset",),
    "dataset.model": ("Case", "Dataset"),
    "evaluation": ("assert_no_regression", "evaluate"),
    "replay.replay_runner": ("replay_captured", "run_gate"),
    "run.folder": ("read_run",),
    "run.model": ("Run",),
    "target.response": ("ResultMetadata", "TargetResponse"),
    "target.runner": ("RunnerOptions",),
}
__all__ = [
    "Case", "Comparison", "Dataset", "PairedRuns", "ResultMetadata", "Rule", "Run", "RunnerOptions", "Stage", "TargetResponse", "Verdict",
    "assert_no_regression", "compare_runs", "evaluate", "read_dataset", "read_run", "replay_captured", "run_gate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"assay_evals.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
