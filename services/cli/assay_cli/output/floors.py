"""Floors of a run: those that were missed, the verdict, and the exit code of the command."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay_cli.exit_codes import FINDING, INCONCLUSIVE
from assay_cli.output.terminal import echo, printable

if TYPE_CHECKING:
    from assay_evals.compare.floors import FloorCheck
    from assay_evals.compare.slices import SliceCheck
    from assay_evals.run.model import Run


def tell_floors(run: "Run", floors: "Sequence[FloorCheck]", checks: "Sequence[SliceCheck]") -> int:
    """Print the floors that were missed and the verdict. Return the exit code."""
    from assay_evals.compare.verdicts import Stage, Verdict
    from assay_evals.report.wording import run_verdict

    for floor in floors:
        if floor.verdict is not Verdict.PASS:
            stage = "" if floor.stage is Stage.BLOCK else f" ({floor.stage.value})"
            echo(printable(f"floor{stage}: {floor}"), err=True)
    verdict, words = run_verdict(run, floors, checks)
    if floors or any(check.verdict for check in checks) or verdict is not Verdict.PASS:
        echo(printable(words), err=True)
    return {Verdict.PASS: 0, Verdict.FAIL: FINDING, Verdict.INCONCLUSIVE: INCONCLUSIVE}[verdict]
