"""Options for the thresholds of a regression gate."""

from typing import Annotated, Any

import typer


def least(what: str) -> Any:
    """Return the option of a threshold, as text: an absent option differs from every number."""
    return typer.Option(metavar="NUMBER", show_default=False, help=what)


Jaccard = Annotated[str | None, least("Minimum mean Jaccard@k, 0 to 1; default: from the baseline, else 0.85.")]
Top1 = Annotated[
    str | None, least("Minimum share of rows with the same first result; default: from the baseline, else 0.80.")
]
LatencyMultiplier = Annotated[
    str | None,
    least("Maximum ratio to the captured mean latency, above 0; default: from the baseline, else 2."),
]
