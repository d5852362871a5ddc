"""Golden datasets, metrics, statistics, replay, comparison and gates.

Names for notebooks and tests; the modules contain the rest. Names are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay_evals.comparison import Comparison
    from assay_evals.dataset import Case, Dataset, read_dataset
    from assay_evals.evaluation import assert_no_regression, evaluate
    from assay_evals.paired import PairedRuns, compare_runs
    from assay_evals.replaying import replay_captured, run_gate
    from assay_evals.runs import Run, read_run
    from assay_evals.verdicts import Rule, Stage, Verdict

_HOME = {
    "comparison": ("Comparison",),
    "dataset": ("Case", "Dataset", "read_dataset"),
    "evaluation": ("assert_no_regression", "evaluate"),
    "paired": ("PairedRuns", "compare_runs"),
    "replaying": ("replay_captured", "run_gate"),
    "runs": ("Run", "read_run"),
    "verdicts": ("Rule", "Stage", "Verdict"),
}
__all__ = [
    "Case", "Comparison", "Dataset", "PairedRuns", "Rule", "Run", "Stage", "Verdict",
    "assert_no_regression", "compare_runs", "evaluate", "read_dataset", "read_run", "replay_captured", "run_gate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"assay_evals.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
