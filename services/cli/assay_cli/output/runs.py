"""Print an evaluation run for people or programs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from assay_cli.output.terminal import echo, emit, printable
from assay_operations.evaluations.rules import as_json as floors_as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay_evals.compare.floors import FloorCheck
    from assay_evals.compare.slices import SliceCheck
    from assay_evals.run.model import Run
    from assay_operations.evaluations.run_store import Stored


def show_run(
    run: "Run", as_json: bool, floors: "list[FloorCheck] | None" = None, checks: "Sequence[SliceCheck]" = ()
) -> None:
    """Print an evaluation run as JSON or as text, with the results of its floors and slices."""
    if as_json:
        extra = {} if floors is None else {"floors": floors_as_json(floors)}
        extra |= {"slices": [asdict(check) for check in checks]} if checks else {}
        emit(json.dumps(run.as_json() | extra, ensure_ascii=False, indent=2))
    else:
        from assay_evals.report.text import run_text
        from assay_evals.report.wording import slices_in_words

        echo("\n".join([run_text(run), *map(printable, slices_in_words(checks))]))


def tell_replaced(stored: "Stored") -> None:
    """Report on stderr how many stored rows of a run were replaced."""
    if stored.replaced:
        echo(f"replaced {stored.replaced:,} row(s) of this run in the store, which is recorded", err=True)
