"""`assay bench publish`: freeze what the regression gate compares with."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo
from assay_cli.threshold_options import Jaccard, LatencyMultiplier, Top1
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations.baselines import publish as publish_baseline
from assay_operations.evaluations.baselines import thresholds_of

bench = typer.Typer(no_args_is_help=True, help="Baselines for `assay gate`: publish captured rows under a hash.")


@bench.callback()
def _bench() -> None:
    """Keep `publish` a command of its own."""


@bench.command()
def publish(
    source: Annotated[
        Path, typer.Option("--from", help="Captured rows: what `assay export --kind retrieval` printed.")
    ],
    to: Annotated[Path, typer.Option(help="The baseline to write, such as main.baseline.ndjson.")],
    label: Annotated[str | None, typer.Option(help="Its name; default: the file's.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a baseline that is there.")] = False,
    deduplicate: Annotated[
        bool, typer.Option("--deduplicate", help="Keep the first row of a question that was captured several times.")
    ] = False,
    threshold_jaccard: Jaccard = None,
    threshold_top1: Top1 = None,
    threshold_latency_multiplier: LatencyMultiplier = None,
    data: DataDirectory = DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="What was published, as JSON on stdout.")] = False,
) -> None:
    """Freeze captured rows as a baseline. A hash covers all that a gate reads, so that nothing can be changed in it unseen.

    Each attempt is a line in audit/bench-publish-YEAR-Wweek.jsonl of the data directory.
    """
    from assay_evals.baseline import Thresholds

    limits = thresholds_of(Thresholds(), threshold_jaccard, threshold_top1, threshold_latency_multiplier)
    made = publish_baseline(
        data, source, to, label=label, limits=limits, force=force, deduplicate=deduplicate,
        tell=lambda text: echo(text, err=True),
    )  # fmt: skip
    metadata = made.metadata
    if as_json:
        shown = ("label", "source_hash", "content_hash", "row_count", "baseline_mean_latency_ms", "thresholds")
        echo(json.dumps({"schema_version": 1, "output_path": os.fspath(to)} | {key: metadata[key] for key in shown}))
    else:
        echo(f"published {metadata['row_count']:,} row(s) as {metadata['label']} to {to}")
    for count, what in (
        (made.blank, "have an empty question, which cannot be asked"),
        (made.repeated, "ask the same again"),
    ):
        if count:
            echo(f"left out {count:,} row(s) that {what}", err=True)
    if made.scrubbed:
        echo(f"personal data was taken out of {made.scrubbed:,} row(s): a gate counts those apart", err=True)
