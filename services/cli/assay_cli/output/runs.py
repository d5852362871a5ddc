"""Runs, for people and programs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from assay_cli.output.target_errors import ERRORS_SHOWN
from assay_cli.output.terminal import echo, emit, printable
from assay_operations.evaluations.rules import as_json as floors_as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay_evals.floors import FloorCheck
    from assay_evals.runs import Run
    from assay_evals.slices import SliceCheck


def summary_of(found: "Run") -> str:
    """A run in a screenful."""
    config = found.config
    lines = [
        f"{found.run_id}: {len(found.results):,} cases of {config.dataset} {config.dataset_version}, {len(found.errored)} errored",
        *(
            f"  {name:20} {each.mean:.3f}  [{each.low:.3f}, {each.high:.3f}]  n={each.n}"
            for name, each in found.summary().items()
        ),
        *(f"  {name:20} {value:,.1f}" for name, value in found.latency().items()),
    ]
    if (cached := found.judge_cache).get("calls"):
        saved = f"{cached['hits']:,} of {cached['calls']:,} verdicts kept from before, which saved ${cached['saved_usd']:.4f}"
        lines.append(f"  judge cache: {saved}")
    lines += [f"  errored: {result.case_id}: {result.error}" for result in found.errored[:ERRORS_SHOWN]]
    if (more := len(found.errored) - ERRORS_SHOWN) > 0:
        lines.append(f"  errored: and {more:,} more")
    return "\n".join(map(printable, lines))


def show_run(
    found: "Run", as_json: bool, floors: "list[FloorCheck] | None" = None, checks: "Sequence[SliceCheck]" = ()
) -> None:
    if as_json:
        held = {} if floors is None else {"floors": floors_as_json(floors)}
        held |= {"slices": [asdict(each) for each in checks]} if checks else {}
        emit(json.dumps(found.as_json() | held, ensure_ascii=False, indent=2))
    else:
        from assay_evals.report import slices_in_words

        echo("\n".join([summary_of(found), *map(printable, slices_in_words(checks))]))
