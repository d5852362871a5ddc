"""The floors of a run: which were not reached, and what the command ends with."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from assay_cli.exit_codes import FINDING, INCONCLUSIVE
from assay_cli.output.terminal import echo, printable

if TYPE_CHECKING:
    from assay_evals.floors import FloorCheck
    from assay_evals.runs import Run
    from assay_evals.slices import SliceCheck


def exit_code(run: "Run", floors: "Sequence[FloorCheck]", checks: "Iterable[SliceCheck]") -> int:
    """What a run ends with: 1 if a case ended in an error or a floor is not reached, 3 if a slice has too few cases to tell, or a floor too
    few scores.
    """
    from assay_evals.slices import worst
    from assay_evals.verdicts import Verdict

    found = worst(Verdict.PASS, checks)
    if run.errored or any(each.blocks for each in floors) or found is Verdict.FAIL:
        return FINDING
    return INCONCLUSIVE if found is Verdict.INCONCLUSIVE or any(each.undecided for each in floors) else 0


def tell_floors(found: "Iterable[FloorCheck]") -> None:
    """Say which floors were not reached, and whether that decides."""
    from assay_evals.verdicts import Stage, Verdict

    for each in found:
        if each.verdict is not Verdict.PASS:
            stage = "" if each.stage is Stage.BLOCK else f" ({each.stage.value})"
            echo(printable(f"floor{stage}: {each}"), err=True)
