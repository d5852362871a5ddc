"""The judge of an evaluation, from options."""

from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.evaluations.judge_spending import SPENDING_FILE
from assay_operations.evaluations.run_judge import REPEATS_MOST, RunJudge
from assay_operations.numbers import a_number

if TYPE_CHECKING:
    from assay_evals.run.folder import RunFolder


def judge_named(
    name: str | None,
    budget: str | None,
    *,
    cached_in: Path | None = None,
    repeats: int | None = None,
    reference: bool = False,
) -> RunJudge | None:
    """Return the judge of the options; None without one. Raises `OperationError`."""
    if repeats is not None and not 2 <= repeats <= REPEATS_MOST:
        raise OperationError("invalid", f"--repeats must be 2 to {REPEATS_MOST}")
    if name is None:
        if repeats is not None:
            raise OperationError("invalid", "--repeats needs --judge")
        if reference:
            raise OperationError("invalid", "--reference needs a model: pass --judge anthropic or openai")
        return None
    cap = a_number(budget, "--judge-budget")
    if cap is not None and cap < 0:
        raise OperationError("invalid", "--judge-budget: below 0")
    budget_usd = 1.0 if cap is None else cap
    return RunJudge(name, budget_usd, cached_in=cached_in, repeats=repeats or 1, reference=reference)


def with_spending(judge: RunJudge | None, folder: "RunFolder", spending: Path | None = None) -> "RunFolder":
    """Record the cost of judging in a run's folder. Raises `OperationError`."""
    if judge is not None:
        try:
            judge.go_on((spending or folder.folder) / SPENDING_FILE, folder)
            folder.judge_cache = judge.cache_use
        except OperationError:
            folder.close()
            raise
    return folder
