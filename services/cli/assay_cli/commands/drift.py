"""`assay drift`: status, history and causes of quality drift, and a simulation of the detector."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import AsJsonLines, Comment, DataDirectory, Yes
from assay_cli.output.confirm import agreed
from assay_cli.output.terminal import echo, emit, ends_quietly, printable
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA, open_store, run_with_redis, settings_and_source, settings_for
from assay_operations.drift.acknowledge import apply, plan_acknowledge
from assay_operations.drift.explain import episode_named, explained, next_command
from assay_operations.drift.history import latest, samples, settings_note, spans_of
from assay_operations.drift.monitor import grown_queries, watched
from assay_operations.time_bounds import moment_ms
from assay_schema.alert_actions import acknowledge_meaning, in_directory

if TYPE_CHECKING:
    from assay_operations.drift.charts import Chart

Svg = Annotated[Path | None, typer.Option("--svg", help="Also write the chart to this file as SVG.")]
Png = Annotated[
    Path | None, typer.Option("--png", help="Also write the chart to this file as PNG; needs the package resvg-py.")
]

drift = typer.Typer(no_args_is_help=True, help="Show the monitored series, their drift and its causes.")


@drift.command()
def explain(
    alert_id: Annotated[str, typer.Argument(metavar="ALERT_ID", help="ID of the episode, as in its alert.")],
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Explain an episode: which services, models and sources changed, or whether the traffic mix did."""
    identity = episode_named(alert_id)
    settings = settings_for("sre", data)
    with ends_quietly(), open_store(settings.store) as store:
        for line in explained(store, identity, settings.drift):
            echo(printable(line))
        if command := next_command(store, identity):
            echo(f"next: {in_directory(command, '' if data == DEFAULT_DATA else str(data))}")


@drift.command()
def status(
    as_json: AsJsonLines = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show every monitored series with its baseline and evidence.

    Exit code 0 if no episode is open, 1 if one is.
    """

    from assay_cli.output.drift import line

    with ends_quietly():
        rows = run_with_redis("sre", data, watched)
        for row in rows:
            if as_json:
                emit(json.dumps(row))
            else:
                echo(line(row))
        if not rows:
            echo("no series yet: the drift service has read no samples", err=True)
        raise typer.Exit(FINDING if any(row["state"] in ("warn", "critical", "recovering") for row in rows) else 0)


@drift.command()
def acknowledge(
    alert_id: Annotated[str, typer.Argument(metavar="ALERT_ID", help="ID of the episode, as in its alert.")],
    yes: Yes = False,
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Accept the current level as the new baseline, and close the episode.

    The baseline is re-learned from the samples since the change, so the same level raises no alert again. To mute an alert while you
    work on it, silence it in Alertmanager instead.
    """
    plan, actor = plan_acknowledge(data, alert_id), local_actor(comment)

    def show() -> None:
        what = f"{plan.kind}{' of ' + plan.metric if plan.metric else ''} in project {plan.project}, {plan.state}"
        echo(f"about to {acknowledge_meaning(plan.kind)}: {what}", err=True)

    if not agreed(show, "Go on?", yes=yes, undone="acknowledged", dry_run=""):
        return
    taken = apply(plan, actor)
    echo(
        f"acknowledged {plan.alert_id}"
        if taken
        else f"noted {plan.alert_id}: the drift service will close it when it runs (to check: assay doctor)"
    )


@drift.command()
def history(
    project: Annotated[str, typer.Option(help="Project to show.")] = "default",
    metric: Annotated[str, typer.Option(help="Metric, as in `assay drift status`.")] = "faithfulness",
    series: Annotated[str | None, typer.Option(help="Fingerprint of the judge; default: the latest.")] = None,
    since: Annotated[str, typer.Option(help="Start of the period: a duration ago (60d) or an ISO 8601 time.")] = "60d",
    queries: Annotated[
        bool, typer.Option("--queries", help="Show the query clusters that grew instead, with scrubbed examples.")
    ] = False,
    svg: Svg = None,
    png: Png = None,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Chart a metric: daily means with intervals, the baseline, the evidence, and the episodes."""
    with ends_quietly():
        if queries:
            _show_queries(project, data)
            return
        settings, settings_source = settings_and_source("sre", data)
        with open_store(settings.store) as store:
            source = series or latest(store, project, metric)
            start_ms = moment_ms(since, int(time.time() * 1000), "--since")
            history = samples(store, project, metric, source, start_ms)
            spans = spans_of(store, project, metric, source)
        from assay_operations.drift.charts import replay

        title = f"{metric} of {project} by {source}"
        _draw(replay(title, metric, history, settings.drift, spans=spans), svg, png)
        echo(printable(settings_note(settings.drift, settings_source)))


def _show_queries(project: str, data: Path) -> None:
    growths = grown_queries(project, data)
    if not growths:
        echo(f"the queries of {printable(project)} have not been compared yet")
    for growth in growths:
        echo(printable(growth.summary))
        for cluster, texts in growth.clusters:
            echo(f"  cluster {cluster} grew:")
            for text in texts:
                echo(f"    {printable(text)[:200]}")


@drift.command()
def simulate(
    drop: Annotated[float, typer.Option(help="Size of the drop, as a share of the mean, 0 to 1.")] = 0.1,
    ramp: Annotated[bool, typer.Option("--ramp", help="Decline gradually, every day, instead of in one step.")] = False,
    at_day: Annotated[int, typer.Option(help="Day on which the drop begins.")] = 60,
    days: Annotated[int, typer.Option(min=10, max=730, help="Length of the simulation in days.")] = 100,
    per_day: Annotated[int, typer.Option(min=10, max=5_000, help="Scores per day.")] = 500,
    mean: Annotated[float, typer.Option(help="Mean of the scores, 0.05 to 0.95.")] = 0.85,
    deviation: Annotated[float, typer.Option(help="Standard deviation of the scores.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Random seed of the simulation.")] = 0,
    svg: Svg = None,
    png: Png = None,
) -> None:
    """Run the detector with your settings on simulated scores, to see how soon it detects a drop."""
    from assay_operations.drift.charts import Scenario, day_of, simulated
    from assay_runtime.config import load_settings

    scenario = Scenario(days, per_day, mean, deviation, "ramp" if ramp else "step", drop, at_day)
    chart = simulated(scenario, seed, load_settings().drift)
    with ends_quietly():
        _draw(chart, svg, png)
        for span in chart.spans:
            echo(f"  {span.state} on day {day_of(span.from_ms):.2f}")
        if not chart.spans:
            echo("  no alert")


def _draw(chart: "Chart", svg: Path | None, png: Path | None) -> None:
    from assay_operations.drift import charts

    echo(charts.terminal(chart).rstrip("\n"))
    charts.save(chart, svg, png)
