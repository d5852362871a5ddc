"""Agreement between two raters, in one line."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay_operations.judging.labels import Confusion


def people(table: "Confusion") -> str:
    """Format the agreement of two raters."""
    if table.kappa is None:
        return f"agreement {table.agreement:.3f}; Cohen's kappa unknown: all labels are equal"
    return f"agreement {table.agreement:.3f}, Cohen's kappa {table.kappa:.3f} (at least {table.kappa_low:.3f})"
