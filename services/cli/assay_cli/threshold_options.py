"""Options for the thresholds of a regression gate."""

from typing import Annotated, Any

import typer


def least(what: str) -> Any:
    """A threshold, as text: what is not given is not the same as any number."""
    return typer.Option(metavar="NUMBER", show_default=False, help=what)


Jaccard = Annotated[str | None, least("Least mean Jaccard@k, 0 to 1; default: what a baseline says, else 0.85.")]
Top1 = Annotated[
    str | None, least("Least share of rows with the same first result; default: what a baseline says, else 0.80.")
]
LatencyMultiplier = Annotated[
    str | None, least("Most times the captured mean latency, above 0; default: what a baseline says, else 2.")
]
