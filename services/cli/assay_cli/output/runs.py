"""Format evaluation runs for people and programs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from assay_cli.output.target_errors import ERRORS_SHOWN
from assay_cli.output.terminal import echo, emit, printable
from assay_operations.evaluations.rules import as_json as floors_as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay_evals.compare.floors import FloorCheck
    from assay_evals.compare.slices import SliceCheck
    from assay_evals.run.model import Run


def summary_of(run: "Run") -> str:
    """Summarize a run in a screenful."""
    config = run.config
    lines = [
        f"{run.run_id}: {len(run.results):,} cases of {config.dataset} {config.dataset_version}, {len(run.errored)} errored",
        *(
            f"  {name:20} {metric.mean:.3f}  [{metric.low:.3f}, {metric.high:.3f}]  n={metric.n}"
            for name, metric in run.summary().items()
        ),
        *(f"  {name:20} {value:,.1f}" for name, value in run.latency().items()),
    ]
    if (cached := run.judge_cache).get("calls"):
        saved = f"{cached['hits']:,} of {cached['calls']:,} verdicts reused, which saved ${cached['saved_usd']:.4f}"
        lines.append(f"  judge cache: {saved}")
    lines += [f"  errored: {result.case_id}: {result.error}" for result in run.errored[:ERRORS_SHOWN]]
    if (more := len(run.errored) - ERRORS_SHOWN) > 0:
        lines.append(f"  errored: and {more:,} more")
    return "\n".join(map(printable, lines))


def show_run(
    run: "Run", as_json: bool, floors: "list[FloorCheck] | None" = None, checks: "Sequence[SliceCheck]" = ()
) -> None:
    if as_json:
        extra = {} if floors is None else {"floors": floors_as_json(floors)}
        extra |= {"slices": [asdict(check) for check in checks]} if checks else {}
        emit(json.dumps(run.as_json() | extra, ensure_ascii=False, indent=2))
    else:
        from assay_evals.report.wording import slices_in_words

        echo("\n".join([summary_of(run), *map(printable, slices_in_words(checks))]))
