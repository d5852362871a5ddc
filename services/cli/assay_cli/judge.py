"""`assay judge`: what judging does, what it costs, how far it can be trusted, and judging again."""

import asyncio
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from assay_cli.errors import FINDING
from assay_cli.labelling import agreement, label, people
from assay_cli.options import DataDirectory
from assay_cli.terminal import echo, emit, printable
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.doctor.checks import JUDGE_ERRORS_MOST
from assay_operations.judging.answer import judged_answer
from assay_operations.judging.calibrate import Calibration, calibration, keep, tell_drift
from assay_operations.judging.labels import of_two, read_labels
from assay_operations.judging.rejudge import answers_to_judge, statuses_of
from assay_operations.judging.rejudge import rejudge as rejudge_answers
from assay_operations.judging.status import COST, STATUS, rows_since
from assay_schema.scores import Metric

if TYPE_CHECKING:
    from assay_judge.calibration import Confusion

judge = typer.Typer(
    no_args_is_help=True, help="Judged answers: status, cost, calibration against people, judging again."
)

Project = Annotated[str, typer.Option("--project", help="The tenant.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


@judge.command()
def status(
    since: Annotated[str, typer.Option(help="From when on: a duration ago or an ISO 8601 time.")] = "1d",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """How answers were judged: states by project and judge. Exit code 1 when more than 5 % of the sampled ended in an error."""
    rows = rows_since(settings_for("sre", data), STATUS, since)
    _show(rows, as_json, "no answer was judged yet; the judge runs as: python -m assay_judge")
    if any(row["judge_error"] > JUDGE_ERRORS_MOST * row["sampled"] for row in rows):
        raise typer.Exit(FINDING)


@judge.command()
def cost(
    since: Annotated[str, typer.Option(help="From when on: a duration ago or an ISO 8601 time.")] = "30d",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """What judging cost, by day, project and model."""
    _show(rows_since(settings_for("sre", data), COST, since), as_json, "nothing was spent")


@judge.command()
def show(
    event_id: Annotated[str, typer.Argument(help="The answer's event_id.")],
    fingerprint: Annotated[str, typer.Option(help="The judge; unset: the one that judged last.")] = "",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show an answer sentence by sentence: which has support, where in the passages it stands, and which has none."""
    from assay_cli.output.evidence import as_text
    from assay_operations.judging.evidence import sentences_of

    row = judged_answer(settings_for("sre", data), event_id, fingerprint)
    shown = sentences_of(row)
    if as_json:
        kept = {
            name: row[name] for name in ("event_id", "project", "status", "fingerprint", "detail", "claims", "metrics")
        }
        emit(orjson.dumps(kept | {"sentences": shown}, default=str).decode())
    else:
        echo(as_text(row, shown))


@judge.command()
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


@judge.command()
def rejudge(
    project: Project = "default",
    only: Annotated[
        list[str] | None,
        typer.Option("--status", help="Answers that ended so: skipped_budget, judge_error, ...; may be repeated."),
    ] = None,
    negative_feedback: Annotated[
        bool, typer.Option("--negative-feedback", help="Answers that people disliked.")
    ] = False,
    since: Annotated[str, typer.Option(help="From when on: a duration ago or an ISO 8601 time.")] = "1d",
    limit: Annotated[int, typer.Option(min=1, help="Most answers.")] = 100,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Judge stored answers again, or for the first time, within the same budget. Their scores replace the earlier ones."""
    wanted = statuses_of(only)
    reader, writer = settings_for("sre", data), settings_for("judge", data)
    with open_store(reader.store) as store:
        answers = answers_to_judge(store, project, wanted, since, limit, negative_feedback=negative_feedback)
    if dry_run:
        echo(f"{len(answers)} answer(s) would be judged")
        return
    counts = asyncio.run(rejudge_answers(writer, answers))
    echo(", ".join(f"{state} {count}" for state, count in sorted(counts.items())) or "no such answer")


def _show(rows: list[dict[str, Any]], as_json: bool, nothing: str) -> None:
    if as_json:
        for row in rows:
            emit(orjson.dumps(row, default=str).decode())
        return
    if not rows:
        echo(nothing, err=True)
        return
    from assay_cli.query import print_table

    if sys.stdout.isatty() and width(rows) > shutil.get_terminal_size().columns:
        echo(stacked(rows))
        return
    print_table(list(rows[0]), ([_plain(value) for value in row.values()] for row in rows), null="")


def width(rows: list[dict[str, Any]]) -> int:
    """Columns of a terminal that the rows need as a table. Pure."""
    return sum(3 + max(len(str(each)) for each in (name, *(row[name] for row in rows))) for name in rows[0])


def stacked(rows: list[dict[str, Any]]) -> str:
    """Rows one below the other, a value a line, for a terminal on which their table would be torn apart. Pure."""
    longest = max(map(len, rows[0]))
    return "\n\n".join(
        "\n".join(f"{name:{longest}}  {printable('' if value is None else str(value))}" for name, value in row.items())
        for row in rows
    )


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float) else str(value)


judge.command()(label)
judge.command()(agreement)
