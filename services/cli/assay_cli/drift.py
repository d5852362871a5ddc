"""`assay drift`: what the drift service watches, what it found, and what it would find."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from assay_cli.errors import FINDING, CommandError
from assay_cli.options import DataDirectory
from assay_cli.terminal import echo, emit, ends_quietly, printable
from assay_operations.clients import DEFAULT_DATA, Identity, open_store, settings_and_source, settings_for
from assay_operations.drift.explain import episode_named, explained
from assay_operations.time_bounds import moment_ms
from assay_schema.settings import DriftSettings, Settings

if TYPE_CHECKING:
    from assay_drift.charts import Chart, Span
    from assay_drift.monitor import Monitor
    from assay_runtime.connection import Client
    from assay_runtime.store import Client as Store

#: How long `acknowledge` waits for the service to take note, in seconds.
_WAIT_S = 15.0

Result = TypeVar("Result")
Svg = Annotated[Path | None, typer.Option("--svg", help="Write the chart to this file as SVG.")]
Png = Annotated[Path | None, typer.Option("--png", help="Write it as PNG; needs the package resvg-py.")]

drift = typer.Typer(no_args_is_help=True, help="Drift of quality: what is watched, what was found, and why.")


@drift.command()
def explain(
    alert_id: Annotated[str, typer.Argument(metavar="ALERT_ID", help="The episode, as its alert names it.")],
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Say which services, models, sources and so on moved in an episode, or whether the mix of traffic did."""
    identity = episode_named(alert_id)
    settings = settings_for("sre", data)
    with ends_quietly(), open_store(settings.store) as store:
        for line in explained(store, identity, settings.drift):
            echo(printable(line))


@drift.command()
def status(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show every series that is watched, its baseline and its evidence. Exit code 1 if an episode is open, 0 if none."""

    from assay_cli.output.drift import line
    from assay_operations.drift.status import rows_of

    async def work(client: "Client", settings: Settings) -> list[dict[str, Any]]:
        return [
            row
            for shard in range(settings.redis.shards)
            for row in rows_of(await _monitor(client, settings, shard), settings.drift)
        ]

    with ends_quietly():
        rows = _run("sre", data, work)
        for row in rows:
            if as_json:
                emit(json.dumps(row))
            else:
                echo(line(row))
        if not rows:
            echo("nothing is watched yet: the drift service has seen no samples", err=True)
        raise typer.Exit(FINDING if any(row["state"] in ("warn", "critical", "recovering") for row in rows) else 0)


@drift.command()
def acknowledge(
    alert_id: Annotated[str, typer.Argument(metavar="ALERT_ID", help="The episode, as its alert names it.")],
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Accept what an episode reports as the new normal: it closes, and the baseline is learned from what came since the change."""
    identity = episode_named(alert_id)

    async def work(client: "Client", settings: Settings) -> bool:
        from assay_schema.streams import acknowledged_key

        keys = [acknowledged_key(shard) for shard in range(settings.redis.shards)]
        for key in keys:
            await client.hset(key, identity, str(int(time.time() * 1000)))
        until = time.monotonic() + _WAIT_S
        while time.monotonic() < until:
            if not any([await client.hexists(key, identity) for key in keys]):
                return True
            await asyncio.sleep(0.2)
        return False

    taken = _run("operator", data, work)
    echo(
        f"acknowledged {identity}"
        if taken
        else f"noted {identity}: the drift service will close it when it runs (assay doctor says what is well)"
    )


@drift.command()
def history(
    project: Annotated[str, typer.Option(help="The project.")] = "default",
    metric: Annotated[str, typer.Option(help="The metric, as `status` names it.")] = "faithfulness",
    series: Annotated[str | None, typer.Option(help="The judge's fingerprint; default: the latest.")] = None,
    since: Annotated[str, typer.Option(help="A duration ago (60d) or an ISO 8601 time.")] = "60d",
    queries: Annotated[
        bool, typer.Option("--queries", help="Instead: clusters of queries that grew, with scrubbed examples.")
    ] = False,
    svg: Svg = None,
    png: Png = None,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Draw a metric: daily means with their interval, the baseline, the evidence, and the episodes."""
    with ends_quietly():
        if queries:
            _show_queries(project, data)
            return
        settings, found_in = settings_and_source("sre", data)
        with open_store(settings.store) as store:
            source = series or _latest(store, project, metric)
            start_ms = moment_ms(since, int(time.time() * 1000), "--since")
            samples = _samples(store, project, metric, source, start_ms)
            spans = _spans(store, project, metric, source)
        from assay_drift.replay import replay

        title = f"{metric} of {project} by {source}"
        _draw(replay(title, metric, samples, settings.drift, spans=spans), svg, png)
        echo(printable(_worked_out_with(settings.drift, found_in)))


def _worked_out_with(watched: DriftSettings, found_in: str) -> str:
    """What a history hangs on: with other settings than the service's, it shows another baseline than `status`."""
    return (
        f"  worked out anew: a day is {watched.day_minutes:g} minutes, a baseline needs {watched.learning_samples} samples "
        f"over {watched.learning_days:g} days; settings of {found_in}"
    )


_SCORES = """
SELECT toUnixTimestamp64Milli(event_time), VALUE FROM scores
WHERE project = {project:String} AND fingerprint = {series:String} AND base AND HAS_ONE
  AND event_time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
ORDER BY event_time, event_id
"""
_LATEST = """
SELECT argMax(fingerprint, event_time) FROM scores WHERE project = {project:String} AND base AND HAS_ONE
"""
_STEPS = """
SELECT toString(alert_id), toString(state), toUnixTimestamp64Milli(at) FROM alerts
WHERE project = {project:String} AND metric = {metric:String} AND series = {series:String} ORDER BY alert_id, sequence
"""
_EXAMPLES = """
SELECT toString(event_id), query FROM candidates WHERE event_id IN {ids:Array(UUID)}
UNION ALL
SELECT toString(event_id), query FROM answers WHERE event_id IN {ids:Array(UUID)}
"""


def _latest(store: "Store", project: str, metric: str) -> str:
    found = str(store.query(_of(_LATEST, metric), parameters={"project": project}).result_rows[0][0])
    if not found:
        raise CommandError(
            f"no scores of {printable(metric)} for {printable(project)}; `assay drift status` shows what there is"
        )
    return found


def _samples(store: "Store", project: str, metric: str, series: str, since_ms: int) -> list[tuple[float, float]]:
    named = {"project": project, "series": series, "since": since_ms}
    rows = store.query(_of(_SCORES, metric), parameters=named).result_rows
    return [(float(at_ms), float(value)) for at_ms, value in rows]


def _of(statement: str, metric: str) -> str:
    """A statement about a metric's samples."""
    from assay_schema.alert_actions import samples_of
    from assay_schema.scores import is_amount

    if is_amount(metric):
        raise CommandError(
            f"--metric: {metric} is not of scores; its alert (assay alerts list) has a query that shows it"
        )
    try:
        value, has_one = samples_of(metric)
    except ValueError:
        raise CommandError(
            f"--metric: {printable(metric)!r} is no metric; `assay drift status` shows those there are"
        ) from None
    return statement.replace("VALUE", value).replace("HAS_ONE", has_one)


def _spans(store: "Store", project: str, metric: str, series: str) -> "list[Span]":
    from assay_drift.charts import Span

    rows = store.query(_STEPS, parameters={"project": project, "metric": metric, "series": series}).result_rows
    now_ms = time.time() * 1000
    spans = []
    for place, (alert_id, state, at_ms) in enumerate(rows):
        following = rows[place + 1] if place + 1 < len(rows) else None
        until = float(following[2]) if following and following[0] == alert_id else now_ms
        spans.append(Span(str(state), float(at_ms), until))
    return spans


def _show_queries(project: str, data: Path) -> None:
    async def work(client: "Client", settings: Settings) -> list[tuple[str, Any]]:
        found = [await _monitor(client, settings, shard) for shard in range(settings.redis.shards)]
        return [
            (key, each.shift) for one in found for key, each in one.queries.items() if key.startswith(f"{project}/")
        ]

    shifts = [(key, shift) for key, shift in _run("sre", data, work) if shift]
    if not shifts:
        echo(f"the queries of {printable(project)} have not been compared yet")
        return
    for key, shift in shifts:
        ids = [identity for _, members in shift.grown for identity in members]
        with open_store(settings_for("sre", data).store) as store:
            rows = store.query(_EXAMPLES, parameters={"ids": ids}).result_rows if ids else []
        texts = {str(identity): str(text) for identity, text in rows}
        echo(
            printable(
                f"{key}: last {shift.days} day(s), {shift.n} queries, {shift.deviations:.1f} deviations, distance {shift.distance:.3f}"
            )
        )
        for cluster, members in shift.grown:
            echo(f"  cluster {cluster} grew:")
            for identity in members:
                echo(f"    {printable(str(texts.get(identity, '(no longer stored)')))[:200]}")


@drift.command()
def simulate(
    drop: Annotated[float, typer.Option(help="Share of the mean that is lost.")] = 0.1,
    ramp: Annotated[bool, typer.Option("--ramp", help="Lose it each day anew, instead of once.")] = False,
    at_day: Annotated[int, typer.Option(help="The day on which it begins.")] = 60,
    days: Annotated[int, typer.Option(min=10, max=730, help="Days in all.")] = 100,
    per_day: Annotated[int, typer.Option(min=10, max=5_000, help="Scores a day.")] = 500,
    mean: Annotated[float, typer.Option(help="Mean of the scores.")] = 0.85,
    deviation: Annotated[float, typer.Option(help="Standard deviation of a score.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Another seed, another year.")] = 0,
    svg: Svg = None,
    png: Png = None,
) -> None:
    """Put scores that never happened through the detector, with your settings: how soon would a drop be found?"""
    if not 0.05 <= mean <= 0.95 or not 0 < deviation**2 < mean * (1 - mean) or not 0 <= drop < 1:
        raise CommandError(
            "no such scores: --mean 0.05 to 0.95, --deviation below sqrt(mean * (1 - mean)), --drop 0 to 1"
        )
    from assay_drift.replay import replay
    from assay_drift.simulation import DAY_MS, Scenario, samples
    from assay_runtime.config import load_settings

    scenario = Scenario(days, per_day, mean, deviation, "ramp" if ramp else "step", drop, at_day)
    times, scores = samples(scenario, seed)
    start_ms = 1_767_225_600_000.0  # 2026-01-01
    watched: DriftSettings = load_settings().drift.model_copy(update={"day_minutes": 1440.0})
    pairs = ((start_ms + at * DAY_MS, score) for at, score in zip(times.tolist(), scores.tolist(), strict=True))
    what = f"{drop:.0%} {'lost each day' if ramp else 'lost'} from day {at_day}"
    chart = replay(f"simulated, {what}, {per_day} scores a day", "faithfulness", pairs, watched)
    with ends_quietly():
        _draw(chart, svg, png)
        for span in chart.spans:
            echo(f"  {span.state} on day {(span.from_ms - start_ms) / DAY_MS:.2f}")
        if not chart.spans:
            echo("  no alert")


def _draw(chart: "Chart", svg: Path | None, png: Path | None) -> None:
    from assay_drift import charts

    echo(charts.terminal(chart).rstrip("\n"))
    picture = charts.svg(chart)
    if svg:
        svg.write_text(picture, encoding="utf-8")
    if png:
        png.write_bytes(_png(picture))


def _png(picture: str) -> bytes:
    import importlib

    try:
        resvg = importlib.import_module("resvg_py")
    except ImportError:
        raise CommandError("--png needs the package resvg-py: pip install resvg-py (or give --svg)") from None
    return bytes(resvg.svg_to_bytes(svg_string=picture))


async def _monitor(client: "Client", settings: Settings, shard: int) -> "Monitor":
    from assay_drift.monitor import Monitor
    from assay_schema.streams import drift_key

    fields = await client.hgetall(drift_key(shard))
    fields.pop(b"version", None)
    return Monitor(
        settings.drift,
        {name.decode(): value for name, value in fields.items()},
        shard=shard,
        shards=settings.redis.shards,
    )


def _run(identity: Identity, data: Path, work: Callable[["Client", Settings], Awaitable[Result]]) -> Result:
    from assay_runtime.connection import connect

    settings = settings_for(identity, data)

    async def run() -> Result:
        client = connect(settings.redis, attempts=0)
        try:
            return await work(client, settings)
        finally:
            await client.aclose()

    return asyncio.run(run())
