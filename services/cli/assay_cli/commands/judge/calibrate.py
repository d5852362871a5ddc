"""`assay judge calibrate`: agreement between the judge and human labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING
from assay_cli.options import AsJson, Comment, DataDirectory
from assay_cli.output.labels import people
from assay_cli.output.terminal import echo, emit, printable
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.judging.calibrate import Calibration, apply, plan_calibration
from assay_operations.judging.labels import of_two, read_labels
from assay_operations.labelling.agreement import labels_of, verdicts_of
from assay_operations.labelling.queues import DEFAULT_QUEUE, Queue
from assay_schema.scores import Metric, things_of

if TYPE_CHECKING:
    from assay_operations.judging.labels import Confusion

Project = Annotated[str, typer.Option("--project", help="Project of the answers or sessions.")]


def calibrate(
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Labels: NDJSON or CSV with event_id and label (good or bad).")
    ] = None,
    stored: Annotated[bool, typer.Option("--stored", help="Read the labels from the store instead of a file.")] = False,
    queue: Annotated[str, typer.Option(help="With --stored: name of the queue that was labelled.")] = DEFAULT_QUEUE,
    labeller: Annotated[
        str, typer.Option(help="With --stored: only this person's labels; default: the majority of all people.")
    ] = "",
    metric: Annotated[Metric, typer.Option(help="Metric that the labels are about.")] = Metric.FAITHFULNESS,
    threshold: Annotated[
        float, typer.Option(min=0, max=1, help="Minimum score at which the judge counts an answer or session as good.")
    ] = 1.0,
    project: Project = "default",
    fingerprint: Annotated[str, typer.Option(help="Fingerprint of the judge; default: the latest.")] = "",
    second: Annotated[
        Path | None, typer.Option("--second", help="Labels of a second person, to measure how far people agree.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the result, and store nothing.")] = False,
    comment: Comment = "",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Compare the judge with human labels of judged answers or sessions, and store the result.

    The labels must be of a random sample. Only labels of the base stream count, because boosted ones are not representative. Exit code 1
    if there are too few labels, or too little agreement, for alerts on this metric to be critical.
    """
    if (labels is None) != stored:
        raise CommandError("name a file with --labels, or take the labels of the store with --stored")
    if stored and second:
        raise CommandError("--second is only for --labels; --labeller compares the judge with one person")
    given = _stored(data, Queue(project, queue), labeller) if labels is None else read_labels(labels)
    actor = local_actor(comment)
    raters = of_two(given, read_labels(second)) if second else None
    result = plan_calibration(data, given, project=project, metric=metric, fingerprint=fingerprint, threshold=threshold)
    _report(result, len(given), raters, as_json=as_json)
    if not dry_run:
        apply(result, actor)
    if result.lacks:
        raise typer.Exit(FINDING)


def _stored(data: Path, queue: Queue, labeller: str) -> dict[str, bool]:
    with open_store(settings_for("owner", data).store) as store:
        found = verdicts_of(labels_of(store, queue), labeller)
    if not found.labels:
        raise CommandError(
            f"no answer is labelled good or bad in the queue {queue.name} of project {queue.project}"
            + (f" by {printable(labeller)}" if labeller else "")
        )
    people = ", ".join(printable(name) for name in found.labellers)
    left_out = f"; left out: {found.tied:,} tied, {found.unsure:,} unsure" if found.tied or found.unsure else ""
    echo(f"{len(found.labels):,} labels of the queue {queue.name} by {people}{left_out}", err=True)
    return found.labels


def _report(result: Calibration, given: int, raters: "Confusion | None", *, as_json: bool) -> None:
    row, confusion, rates, live, lacks = result.row, result.confusion, result.rates, result.live, result.lacks
    if as_json:
        emit(orjson.dumps(result.document(raters)).decode())
        return

    things = things_of(row["metric"])

    def of(estimate: Any) -> str:
        return "unknown" if estimate is None else f"{estimate.value:.3f}  [{estimate.low:.3f}, {estimate.high:.3f}]"

    kappa = (
        f"{confusion.kappa:.3f}  (at least {confusion.kappa_low:.3f})"
        if confusion.kappa is not None
        else "unknown (all labels are equal)"
    )
    lines = [
        f"{row['metric']} >= {row['threshold']:g} by judge {row['fingerprint']}, project {row['project']}",
        f"{confusion.n} of {given} labelled {things} are in the base stream and were scored by this judge",
        "",
        "               judge: good   judge: bad",
        f"people: good   {confusion.true_positives:11d}   {confusion.false_negatives:10d}",
        f"people: bad    {confusion.false_positives:11d}   {confusion.true_negatives:10d}",
        "",
        f"Cohen's kappa          {kappa}",
        f"TPR (good as good)     {of(confusion.tpr)}",
        f"TNR (bad as bad)       {of(confusion.tnr)}",
        *([f"between raters         {people(raters)}, {raters.n} {things}"] if raters else []),
    ]
    if rates:
        names = {
            "raw": "raw (the judge's own)",
            "ppi": "PPI (published)",
            "rogan_gladen": "Rogan-Gladen",
            "human": "labels alone",
        }
        lines += ["", f"share of good {things}, base stream of 30 days ({live} {things}), with 95 % intervals:"]
        lines += [f"  {label:22} {of(rates[name])}" for name, label in names.items()]
    gate = "stay warnings:" if lacks else "can be critical"
    echo(
        "\n".join(
            [
                *lines,
                "",
                f"alerts on {row['metric']} of project {row['project']} {gate}",
                *(f"  {reason}" for reason in lacks),
            ]
        )
    )
