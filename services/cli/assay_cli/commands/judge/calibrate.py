"""`assay judge calibrate`: how far the judge can be trusted."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import DataDirectory
from assay_cli.output.labels import people
from assay_cli.output.terminal import echo, emit
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.judging.calibrate import Calibration, calibration, keep, tell_drift
from assay_operations.judging.labels import of_two, read_labels
from assay_schema.scores import Metric

if TYPE_CHECKING:
    from assay_operations.judging.labels import Confusion

Project = Annotated[str, typer.Option("--project", help="The tenant.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


def calibrate(
    labels: Annotated[Path, typer.Option("--labels", help="NDJSON or CSV with event_id and label (good or bad).")],
    metric: Annotated[Metric, typer.Option(help="Which metric the labels are about.")] = Metric.FAITHFULNESS,
    threshold: Annotated[float, typer.Option(min=0, max=1, help="The judge calls an answer good from here on.")] = 1.0,
    project: Project = "default",
    fingerprint: Annotated[str, typer.Option(help="The judge; unset: the one that judged last.")] = "",
    second: Annotated[
        Path | None, typer.Option("--second", help="Another person's labels, to see how far people agree themselves.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show.")] = False,
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Hold the judge against people's labels of a random subset of what it scored, and keep the result.

    Only labels of the base stream count: what a rule boosted is not what people mostly get. Exit code 1 when there are too few of them, or
    the judge agrees too little, for alerts on this metric to be critical.
    """
    given = read_labels(labels)
    raters = of_two(given, read_labels(second)) if second else None
    owner = settings_for("owner", data)
    with open_store(owner.store, database=owner.store.database) as store:
        found = calibration(store, owner, given, project, metric, fingerprint, threshold)
        _report(found, len(given), raters, as_json=as_json)
        if not dry_run:
            keep(store, owner, found)
            asyncio.run(tell_drift(settings_for("judge", data), found))
    if found.lacks:
        raise typer.Exit(FINDING)


def _report(found: Calibration, given: int, raters: "Confusion | None", *, as_json: bool) -> None:
    row, confusion, rates, live, lacks = found.row, found.confusion, found.rates, found.live, found.lacks
    if as_json:
        shown = {name: estimate and estimate._asdict() for name, estimate in rates.items()}
        emit(
            orjson.dumps(
                row
                | {"kappa_low": confusion.kappa_low, "lacks": lacks, "rates": shown, "live": live}
                | ({"people": {"n": raters.n, "kappa": raters.kappa, "kappa_low": raters.kappa_low}} if raters else {})
            ).decode()
        )
        return

    def of(estimate: Any) -> str:
        return "unknown" if estimate is None else f"{estimate.value:.3f}  [{estimate.low:.3f}, {estimate.high:.3f}]"

    kappa = (
        f"{confusion.kappa:.3f}  (at least {confusion.kappa_low:.3f})"
        if confusion.kappa is not None
        else "unknown (all alike)"
    )
    lines = [
        f"{row['metric']} >= {row['threshold']:g} by judge {row['fingerprint']}, project {row['project']}",
        f"{confusion.n} of {given} labelled answers are of the base stream and were scored by it",
        "",
        "               judge: good   judge: bad",
        f"people: good   {confusion.true_positives:11d}   {confusion.false_negatives:10d}",
        f"people: bad    {confusion.false_positives:11d}   {confusion.true_negatives:10d}",
        "",
        f"Cohen's kappa          {kappa}",
        f"TPR (good found good)  {of(confusion.tpr)}",
        f"TNR (bad found bad)    {of(confusion.tnr)}",
        *([f"people, each other     {people(raters)}, {raters.n} answers"] if raters else []),
    ]
    if rates:
        names = {
            "raw": "raw (the judge's own)",
            "ppi": "PPI (published)",
            "rogan_gladen": "Rogan-Gladen",
            "human": "labels alone",
        }
        lines += ["", f"share of good answers, base stream of 30 days ({live} answers), with 95 % intervals:"]
        lines += [f"  {label:22} {of(rates[name])}" for name, label in names.items()]
    gate = "stay warnings:" if lacks else "may be critical"
    echo(
        "\n".join(
            [
                *lines,
                "",
                f"alerts on {row['metric']} of project {row['project']} {gate}",
                *(f"  {each}" for each in lacks),
            ]
        )
    )
