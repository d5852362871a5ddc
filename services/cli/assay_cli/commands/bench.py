"""`assay bench publish`: freeze a baseline for the regression gate."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.options import Comment, DataDirectory
from assay_cli.output.terminal import echo
from assay_cli.threshold_options import Jaccard, LatencyMultiplier, Top1
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations.baselines import apply, heading_of, plan_publish, thresholds_of

bench = typer.Typer(no_args_is_help=True, help="Publish captured rows as a baseline for `assay gate`.")


@bench.callback()
def _bench() -> None:
    """Keep `publish` a separate subcommand."""


@bench.command()
def publish(
    source: Annotated[
        Path,
        typer.Option("--from", help="Captured rows, as printed by `assay export --kind retrieval`, or a baseline."),
    ],
    to: Annotated[Path, typer.Option(help="Baseline file to write, for example main.baseline.ndjson.")],
    label: Annotated[
        str | None,
        typer.Option(help="Name of the baseline; default: that of the baseline in --from, else the name of the file."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing baseline.")] = False,
    deduplicate: Annotated[
        bool, typer.Option("--deduplicate", help="Keep only the first row of each question.")
    ] = False,
    threshold_jaccard: Jaccard = None,
    threshold_top1: Top1 = None,
    threshold_latency_multiplier: LatencyMultiplier = None,
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print the metadata of the baseline as JSON.")] = False,
) -> None:
    """Freeze captured rows as a baseline.

    A hash covers everything that a gate reads, so that a change to it is detected. A baseline in --from, also one by gbrain, keeps its
    label and thresholds.

    Every attempt is recorded in audit/bench-publish-YEAR-Wweek.jsonl of the data directory: its start, and its end. If the start cannot
    be written, nothing is published.
    """
    from assay_evals.replay.baseline import Thresholds

    heading = heading_of(source)
    default = heading.thresholds if heading else Thresholds()
    limits = thresholds_of(default, threshold_jaccard, threshold_top1, threshold_latency_multiplier)
    actor = local_actor(comment)
    label = label or (heading.label if heading else None)
    plan = plan_publish(data, source, to, label=label, limits=limits, force=force, deduplicate=deduplicate)
    made = apply(plan, actor)
    metadata = made.metadata
    if as_json:
        shown = ("label", "source_hash", "content_hash", "row_count", "baseline_mean_latency_ms", "thresholds")
        echo(json.dumps({"schema_version": 1, "output_path": os.fspath(to)} | {key: metadata[key] for key in shown}))
    else:
        echo(f"published {metadata['row_count']:,} row(s) as {metadata['label']} to {to}")
    for count, what in (
        (made.blank, "have an empty question, which cannot be asked"),
        (made.repeated, "repeat a question"),
    ):
        if count:
            echo(f"left out {count:,} row(s) that {what}", err=True)
    if made.unrecorded:
        echo(f"the end of this attempt was {made.unrecorded}", err=True)
    if made.scrubbed:
        echo(f"personal data was removed from {made.scrubbed:,} row(s): a gate counts those separately", err=True)
