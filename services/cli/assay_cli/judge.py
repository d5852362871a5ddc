"""`assay judge`: what judging does, what it costs, how far it can be trusted, and judging again."""

import asyncio
import shutil
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from assay_cli.errors import FINDING, CommandError
from assay_cli.labelling import agreement, label, of_two, people, read_labels
from assay_cli.options import DataDirectory
from assay_cli.terminal import echo, emit, printable
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.doctor.checks import JUDGE_ERRORS_MOST
from assay_operations.time_bounds import moment_ms
from assay_schema.scores import Metric, ScoreStatus
from assay_schema.settings import Settings
from assay_schema.streams import SCORES, calibration_key, shard_of

if TYPE_CHECKING:
    from assay_judge.calibration import Confusion, Estimate, Floats, Mean
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client as Store

judge = typer.Typer(
    no_args_is_help=True, help="Judged answers: status, cost, calibration against people, judging again."
)

Project = Annotated[str, typer.Option("--project", help="The tenant.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
_STATUS = """
SELECT project, backend, model, fingerprint, countIf(status != 'not_sampled') AS sampled, countIf(status = 'scored') AS scored,
    countIf(status = 'abstained') AS abstained, countIf(status = 'no_context') AS no_context,
    countIf(status = 'judge_error') AS judge_error, countIf(status = 'skipped_budget') AS skipped_budget,
    countIf(status = 'not_sampled') AS not_sampled, round(avgIf(metrics['faithfulness'], base AND status = 'scored'), 4) AS faithfulness,
    max(judged_at) AS last_judged
FROM scores WHERE judged_at >= fromUnixTimestamp64Milli({since:Int64}) GROUP BY project, backend, model, fingerprint ORDER BY project
"""
_COST = """
SELECT day, project, backend, model, judged, skipped_budget, round(cost_usd, 6) AS cost_usd, input_tokens, output_tokens
FROM judge_spend WHERE day >= toDate(fromUnixTimestamp64Milli({since:Int64})) ORDER BY day DESC, project
"""
_EVIDENCE = """
SELECT s.event_id AS event_id, s.project AS project, s.status AS status, s.detail AS detail, s.fingerprint AS fingerprint,
    s.model AS model, s.judged_at AS judged_at, s.metrics AS metrics, s.checks AS checks, s.claims AS claims, s.verdicts AS verdicts,
    a.answer AS answer, a.contexts AS contexts, a.event_id = s.event_id AS stored
FROM scores AS s LEFT JOIN (SELECT event_id, answer, contexts FROM answers WHERE event_id = {event_id:UUID}) AS a ON a.event_id = s.event_id
WHERE s.event_id = {event_id:UUID} AND ({fingerprint:String} = '' OR s.fingerprint = {fingerprint:String})
ORDER BY s.judged_at DESC LIMIT 1
"""


@judge.command()
def status(
    since: Annotated[str, typer.Option(help="From when on: a duration ago or an ISO 8601 time.")] = "1d",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """How answers were judged: states by project and judge. Exit code 1 when more than 5 % of the sampled ended in an error."""
    rows = _rows(settings_for("sre", data), _STATUS, since)
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
    _show(_rows(settings_for("sre", data), _COST, since), as_json, "nothing was spent")


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

    row = _judged_answer(settings_for("sre", data), event_id, fingerprint)
    shown = sentences_of(row)
    if as_json:
        kept = {
            name: row[name] for name in ("event_id", "project", "status", "fingerprint", "detail", "claims", "metrics")
        }
        emit(orjson.dumps(kept | {"sentences": shown}, default=str).decode())
    else:
        echo(as_text(row, shown))


def _judged_answer(settings: Settings, event_id: str, fingerprint: str) -> dict[str, Any]:
    try:
        wanted = str(uuid.UUID(event_id))
    except ValueError:
        raise CommandError(
            f"{event_id!r} is not an event_id; it looks like 019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d"
        ) from None
    with open_store(settings.store) as store:
        found = store.query(_EVIDENCE, parameters={"event_id": wanted, "fingerprint": fingerprint})
        rows = [dict(row) for row in found.named_results()]
    if not rows:
        raise CommandError(f"no score of answer {wanted} is stored; see assay judge status")
    if not rows[0]["stored"]:
        raise CommandError(f"the score of answer {wanted} is stored, the answer itself is not (any more)")
    return rows[0]


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
    import numpy as np

    from assay_judge.calibration import Confusion, rectifier

    given = read_labels(labels)
    raters = of_two(given, read_labels(second)) if second else None
    owner = settings_for("owner", data)
    with open_store(owner.store, database=owner.store.database) as store:
        who = fingerprint or _last_judge(store, project)
        known = _values(store, project, who, metric, list(given))
        if len(known) < 2:
            raise CommandError(
                f"{len(known)} of {len(given)} labelled answers are of the base stream of project {project} and have a {metric} by {who};"
                " nothing to compare"
            )
        people, verdicts = [given[each] for each in known], [value >= threshold for value, _ in known.values()]
        confusion = Confusion.of(people, verdicts)
        weights = np.array([weight for _, weight in known.values()])
        correction = rectifier(np.array(people, dtype=np.float64), np.array(verdicts, dtype=np.float64), weights)
        live = _live(store, project, who, metric, threshold)
        row = _calibration_row(confusion, correction, project, metric, who, threshold)
        lacks = confusion.lacks(owner.drift)
        row["pages"] = not lacks
        rates = _rates(live, correction, confusion, np.array(people, dtype=np.float64), weights)
        _report(row, confusion, rates, len(live), len(given), lacks, raters, as_json=as_json)
        if not dry_run:
            _keep(store, owner, row)
            asyncio.run(_tell_drift(settings_for("judge", data), row, confusion))
    if lacks:
        raise typer.Exit(FINDING)


def _last_judge(store: "Store", project: str) -> str:
    found = store.query(
        "SELECT fingerprint FROM scores WHERE project = {project:String} AND status = 'scored' ORDER BY judged_at DESC LIMIT 1",
        parameters={"project": project},
    ).result_rows
    if not found:
        raise CommandError(f"no answer of project {project} was scored yet; see --project")
    return str(found[0][0])


def _values(
    store: "Store", project: str, fingerprint: str, metric: str, event_ids: list[str]
) -> dict[str, tuple[float, float]]:
    """By labelled answer of the base stream, the metric and what the answer counts: the inverse of the probability it was drawn with."""
    rows = store.query(
        "SELECT toString(event_id), metrics[{metric:String}], 1 / base_probability FROM scores WHERE project = {project:String} AND base"
        " AND status = 'scored' AND fingerprint = {fingerprint:String} AND mapContains(metrics, {metric:String})"
        " AND event_id IN {ids:Array(UUID)}",
        parameters={"project": project, "fingerprint": fingerprint, "metric": metric, "ids": event_ids},
    ).result_rows
    return {str(event_id): (float(value), float(weight)) for event_id, value, weight in rows}


def _live(store: "Store", project: str, fingerprint: str, metric: str, threshold: float) -> list[tuple[bool, float]]:
    """Verdicts on the base stream of the last 30 days, and what each counts."""
    rows = store.query(
        "SELECT metrics[{metric:String}] >= {threshold:Float64}, 1 / base_probability FROM scores WHERE project = {project:String} AND base"
        " AND status = 'scored' AND fingerprint = {fingerprint:String} AND mapContains(metrics, {metric:String})"
        " AND event_time >= now() - INTERVAL 30 DAY",
        parameters={"project": project, "fingerprint": fingerprint, "metric": metric, "threshold": threshold},
    ).result_rows
    return [(bool(good), float(weight)) for good, weight in rows]


def _calibration_row(
    confusion: "Confusion", correction: "Mean", project: str, metric: Metric, fingerprint: str, threshold: float
) -> dict[str, Any]:
    def ends(name: str, found: "Estimate | None") -> dict[str, float | None]:
        values = found or (None, None, None)
        return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))

    return {
        "calibration_id": str(uuid.uuid4()),
        "calibrated_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "project": project,
        "metric": metric.value,
        "fingerprint": fingerprint,
        "threshold": threshold,
        "labels": confusion.n,
        "true_positives": confusion.true_positives,
        "false_negatives": confusion.false_negatives,
        "false_positives": confusion.false_positives,
        "true_negatives": confusion.true_negatives,
        "kappa": confusion.kappa,
        **ends("tpr", confusion.tpr),
        **ends("tnr", confusion.tnr),
        "rectifier": correction.value,
        "rectifier_variance": correction.variance * confusion.n,
    }


def _rates(
    live: list[tuple[bool, float]], correction: "Mean", confusion: "Confusion", labels: "Floats", weights: "Floats"
) -> dict[str, "Estimate | None"]:
    """The share of good answers, by how it is estimated; empty without answers to estimate it of."""
    import numpy as np

    from assay_judge.calibration import human, ppi, raw, rogan_gladen

    if len(live) < 2:
        return {}
    judged, drawn = (np.array(each, dtype=np.float64) for each in zip(*live, strict=True))
    return {
        "raw": raw(judged, drawn),
        "ppi": ppi(judged, correction, drawn),
        "rogan_gladen": rogan_gladen(judged, confusion, drawn),
        "human": human(labels, weights),
    }


def _report(
    row: dict[str, Any],
    confusion: "Confusion",
    rates: dict[str, "Estimate | None"],
    live: int,
    given: int,
    lacks: list[str],
    raters: "Confusion | None",
    *,
    as_json: bool,
) -> None:
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


def _keep(store: "Store", settings: Settings, row: dict[str, Any]) -> None:
    from assay_runtime.store import insert_json_rows

    insert_json_rows(store, f"{settings.store.base_database}.calibrations", orjson.dumps(row), 1)


async def _tell_drift(settings: Settings, row: dict[str, Any], confusion: "Confusion") -> None:
    """Where the drift service looks before it pages."""
    from assay_runtime.connection import connect

    client = connect(settings.redis)
    told = {name: row[name] for name in ("kappa", "tnr", "tnr_low", "labels", "calibrated_at")}
    told |= {"kappa_low": confusion.kappa_low, "bad": confusion.bad}
    try:
        for shard in range(settings.redis.shards):
            field = f"{row['project']}/{row['fingerprint']}/{row['metric']}"
            await client.hset(calibration_key(shard), field, orjson.dumps(told))
    finally:
        await client.aclose()


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
    wanted = [ScoreStatus(each).value for each in only or ()] if _known(only) else []
    reader, writer = settings_for("sre", data), settings_for("judge", data)
    with open_store(reader.store) as store:
        answers = _answers(store, project, wanted, since, limit, negative_feedback=negative_feedback)
    if dry_run:
        echo(f"{len(answers)} answer(s) would be judged")
        return
    counts = asyncio.run(_rejudge(writer, answers))
    echo(", ".join(f"{state} {count}" for state, count in sorted(counts.items())) or "no such answer")


def _known(only: list[str] | None) -> bool:
    if unknown := [each for each in only or () if each not in set(ScoreStatus)]:
        raise CommandError(f"--status: {unknown[0]!r} is not one of {', '.join(ScoreStatus)}")
    return bool(only)


def _answers(
    store: "Store", project: str, only: list[str], since: str, limit: int, *, negative_feedback: bool
) -> list[dict[str, Any]]:
    conditions = ["a.project = {project:String}", "a.event_time >= fromUnixTimestamp64Milli({since:Int64})"]
    parameters: dict[str, Any] = {"project": project, "since": _since(since), "limit": limit, "only": only}
    if negative_feedback:
        conditions.append("a.event_id IN (SELECT target_event_id FROM feedback WHERE verdict = 'negative')")
    if only:
        conditions.append("s.status IN {only:Array(String)}")
    question = (
        "SELECT toString(a.event_id) AS event_id, a.id AS id, a.service AS service, a.query AS query, a.answer AS answer,"
        " a.contexts AS contexts, a.citations AS citations, a.model AS model, a.latency_ms AS latency_ms, a.occurred_at AS occurred_at,"
        " a.created_at AS created_at, a.policy AS policy, s.base AS base, s.inclusion_probability AS inclusion_probability,"
        " s.base_probability AS base_probability, s.checks AS checks, s.boosts AS boosts"
        " FROM answers AS a"
        " INNER JOIN (SELECT * FROM scores ORDER BY judged_at DESC LIMIT 1 BY event_id) AS s ON s.event_id = a.event_id"
        " WHERE {conditions} ORDER BY a.event_time LIMIT {limit:UInt32}"
    ).replace("{conditions}", " AND ".join(conditions))
    rows = store.query(question, parameters=parameters)
    return [dict(row) | {"project": project} for row in rows.named_results()]


async def _rejudge(settings: Settings, answers: list[dict[str, Any]]) -> dict[str, int]:
    from assay_judge.again import judge_again
    from assay_runtime.connection import connect

    client: Redis = connect(settings.redis)
    counts: dict[str, int] = {}
    try:
        async for score in judge_again(client, settings, answers):
            shard = shard_of(score.project, settings.redis.shards)
            await client.xadd(SCORES.key(shard), {"data": score.model_dump_json()})
            counts[score.status.value] = counts.get(score.status.value, 0) + 1
    finally:
        await client.aclose()
    return counts


def _since(text: str) -> int:
    return moment_ms(text, int(time.time() * 1000), "--since")


def _rows(settings: Settings, sql: str, since: str) -> list[dict[str, Any]]:
    with open_store(settings.store) as store:
        return [dict(row) for row in store.query(sql, parameters={"since": _since(since)}).named_results()]


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
