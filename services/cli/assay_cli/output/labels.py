"""How far people agree, in a line."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay_operations.judging.labels import Confusion


def people(found: "Confusion") -> str:
    """How far two people agree, in a line."""
    if found.kappa is None:
        return f"agreement {found.agreement:.3f}; Cohen's kappa unknown: all labels are alike"
    return f"agreement {found.agreement:.3f}, Cohen's kappa {found.kappa:.3f} (at least {found.kappa_low:.3f})"
