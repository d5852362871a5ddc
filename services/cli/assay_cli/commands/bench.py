"""`assay bench publish`: freeze what the regression gate compares with."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from assay_cli.errors import CommandError
from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo
from assay_cli.threshold_options import Jaccard, LatencyMultiplier, Top1
from assay_operations import audit
from assay_operations.clients import DEFAULT_DATA
from assay_operations.errors import OperationError, explain
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
    from assay_evals.errors import EvalsError

    if to.exists() and source.exists() and to.samefile(source):
        raise CommandError(f"--to: {to} is the file that --from reads: name another")
    if to.exists() and not force:
        raise CommandError(f"--to: {to} is there already; write over it with --force")
    limits = thresholds_of(Thresholds(), threshold_jaccard, threshold_top1, threshold_latency_multiplier)
    label = label or to.name.removesuffix(".ndjson").removesuffix(".baseline")
    attempt = {
        "label": label,
        "source_hash": None,
        "content_hash": None,
        "row_count": 0,
        "output_path": os.fspath(to),
        "thresholds": asdict(limits),
    }
    try:
        metadata, blank, again, scrubbed = publish_baseline(source, to, label, limits, deduplicate=deduplicate)
    except (OperationError, EvalsError, OSError) as error:
        _record(data, "bench-publish", attempt | {"success": False, "failure_reason": explain(error)})
        raise
    attempt |= {key: metadata[key] for key in attempt if key in metadata}
    _record(data, "bench-publish", attempt | {"success": True})
    if as_json:
        shown = ("label", "source_hash", "content_hash", "row_count", "baseline_mean_latency_ms", "thresholds")
        echo(json.dumps({"schema_version": 1, "output_path": os.fspath(to)} | {key: metadata[key] for key in shown}))
    else:
        echo(f"published {metadata['row_count']:,} row(s) as {metadata['label']} to {to}")
    for count, what in ((blank, "have an empty question, which cannot be asked"), (again, "ask the same again")):
        if count:
            echo(f"left out {count:,} row(s) that {what}", err=True)
    if scrubbed:
        echo(f"personal data was taken out of {scrubbed:,} row(s): a gate counts those apart", err=True)


def _record(data: Path, kind: str, entry: dict[str, Any]) -> None:
    if problem := audit.record(data, kind, entry):
        echo(problem, err=True)
