"""Floors of a run: those that were missed, and the exit code of the command."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay_cli.exit_codes import FINDING, INCONCLUSIVE
from assay_cli.output.terminal import echo, printable

if TYPE_CHECKING:
    from assay_evals.compare.floors import FloorCheck
    from assay_evals.compare.slices import SliceCheck
    from assay_evals.run.model import Run


def exit_code(run: "Run", floors: "Sequence[FloorCheck]", checks: "Iterable[SliceCheck]") -> int:
    """Return the exit code of a run.

    1 if a case ended in an error or a floor was missed, 3 if a slice or a floor has too few cases for a verdict.
    """
    from assay_evals.compare.slices import worst
    from assay_evals.compare.verdicts import Verdict

    verdict = worst(Verdict.PASS, checks)
    if run.errored or any(floor.blocks for floor in floors) or verdict is Verdict.FAIL:
        return FINDING
    return INCONCLUSIVE if verdict is Verdict.INCONCLUSIVE or any(floor.undecided for floor in floors) else 0


def tell_floors(floors: "Iterable[FloorCheck]") -> None:
    """Print the floors that were missed, and whether they block."""
    from assay_evals.compare.verdicts import Stage, Verdict

    for floor in floors:
        if floor.verdict is not Verdict.PASS:
            stage = "" if floor.stage is Stage.BLOCK else f" ({floor.stage.value})"
            echo(printable(f"floor{stage}: {floor}"), err=True)
