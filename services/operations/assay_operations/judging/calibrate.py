"""Compare the judge with human labels, and store the result: `plan_calibration`, then `apply`."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, Trail
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.time_bounds import iso
from assay_schema.scores import Metric, things_of
from assay_schema.settings import DriftSettings, Settings
from assay_schema.streams import PREFIX, calibration_key

if TYPE_CHECKING:
    from assay_judge.calibration import Confusion, Estimate, Floats, Mean
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client as Store

#: Seconds that the lock outlives a process that was killed, apart from two time-outs of the store.
_LOCK_S = 60


@dataclass(frozen=True)
class Calibration:
    """The agreement of a judge with people on one metric: a plan to store it."""

    #: Data directory of the settings.
    data: Path
    #: The row of `calibrations`.
    row: dict[str, Any]
    confusion: "Confusion"
    #: Estimates of the share of good answers, by method; empty without answers.
    rates: "dict[str, Estimate | None]"
    #: Answers of the base stream behind the rates.
    live: int
    #: Reasons why alerts on this metric cannot be critical.
    lacks: list[str]
    #: The calibration that it would replace; empty for none.
    replaces: str

    def document(self, raters: "Confusion | None") -> dict[str, Any]:
        """Return the result for programs. `raters`: the agreement of two people."""
        rates = {name: estimate and estimate._asdict() for name, estimate in self.rates.items()}
        facts = {"kappa_low": self.confusion.kappa_low, "lacks": self.lacks, "rates": rates, "live": self.live}
        people = {"n": raters.n, "kappa": raters.kappa, "kappa_low": raters.kappa_low} if raters else None
        return self.row | facts | ({"people": people} if people else {})


def plan_calibration(
    data: Path,
    given: dict[str, bool],
    *,
    project: str = "default",
    metric: Metric = Metric.FAITHFULNESS,
    fingerprint: str = "",
    threshold: float = 1.0,
) -> Calibration:
    """Compare labels by event id with a judge's verdicts on the same answers.

    Without a `fingerprint`, the judge is the latest one.
    """
    owner = settings_for("owner", data)
    with open_store(owner.store, database=owner.store.database) as store:
        return compare(
            store,
            data,
            owner.drift,
            given,
            project=project,
            metric=metric,
            fingerprint=fingerprint,
            threshold=threshold,
        )


def compare(
    store: "Store",
    data: Path,
    drift: DriftSettings,
    given: dict[str, bool],
    *,
    project: str,
    metric: Metric,
    fingerprint: str,
    threshold: float,
) -> Calibration:
    """Compare labels with a judge's verdicts, with an open client of any identity that reads the views.

    `data`: data directory of the settings with which the plan can be applied. Raises `OperationError` for too few labels.
    """
    who = fingerprint or _last_judge(store, project, metric)
    known = _values(store, project, who, metric, list(given))
    if len(known) < 2:
        raise OperationError(
            "invalid",
            f"{len(known)} of {len(given)} labelled {things_of(metric)} are in the base stream of project {project} "
            f"and have a {metric} by {who}; at least 2 are needed",
        )
    live = _live(store, project, who, metric, threshold)
    replaces = _latest(store, {"project": project, "metric": metric.value, "fingerprint": who})
    return _compared(data, drift, given, known, live, replaces, (project, metric, who, threshold))


def _compared(
    data: Path,
    drift: DriftSettings,
    given: dict[str, bool],
    known: dict[str, tuple[float, float]],
    live: list[tuple[bool, float, int]],
    replaces: str,
    about: tuple[str, Metric, str, float],
) -> Calibration:
    import numpy as np

    from assay_judge.calibration import Confusion, rectifier

    threshold = about[-1]
    people, verdicts = [given[name] for name in known], [value >= threshold for value, _ in known.values()]
    confusion = Confusion.of(people, verdicts)
    weights = np.array([weight for _, weight in known.values()])
    correction = rectifier(np.array(people, dtype=np.float64), np.array(verdicts, dtype=np.float64), weights)
    row = _calibration_row(confusion, correction, *about)
    lacks = confusion.lacks(drift)
    row["pages"] = not lacks
    rates = _rates(live, correction, confusion, np.array(people, dtype=np.float64), weights)
    return Calibration(data, row, confusion, rates, sum(count for _, _, count in live), lacks, replaces)


def _latest(store: "Store", row: dict[str, Any]) -> str:
    """Return the id of the calibration in force for the same project, metric and judge; '' for none."""
    found = store.query(
        "SELECT toString(calibration_id) FROM calibrations WHERE project = {project:String} AND metric = {metric:String}"
        " AND fingerprint = {fingerprint:String} ORDER BY calibrated_at DESC, calibration_id LIMIT 1",
        parameters={name: row[name] for name in ("project", "metric", "fingerprint")},
    ).result_rows
    return str(found[0][0]) if found else ""


def _last_judge(store: "Store", project: str, metric: Metric) -> str:
    rows = store.query(
        "SELECT fingerprint FROM scores WHERE project = {project:String} AND status = 'scored' AND mapContains(metrics, {metric:String})"
        " ORDER BY judged_at DESC LIMIT 1",
        parameters={"project": project, "metric": metric},
    ).result_rows
    if not rows:
        raise OperationError(
            "not_found", f"no {metric} of the {things_of(metric)} of project {project} was scored yet; see --project"
        )
    return str(rows[0][0])


def _values(
    store: "Store", project: str, fingerprint: str, metric: str, event_ids: list[str]
) -> dict[str, tuple[float, float]]:
    """Read the metric and the weight (inverse sampling probability) of labelled answers of the base stream."""
    rows = store.query(
        "SELECT if(session_id IS NULL, toString(event_id), concat(toString(event_id), '@', toString(revision))) AS name,"
        " metrics[{metric:String}], 1 / base_probability FROM scores WHERE project = {project:String} AND base"
        " AND status = 'scored' AND fingerprint = {fingerprint:String} AND mapContains(metrics, {metric:String})"
        " AND name IN {ids:Array(String)}",
        parameters={"project": project, "fingerprint": fingerprint, "metric": metric, "ids": event_ids},
    ).result_rows
    return {str(event_id): (float(value), float(weight)) for event_id, value, weight in rows}


def _live(
    store: "Store", project: str, fingerprint: str, metric: str, threshold: float
) -> list[tuple[bool, float, int]]:
    """Read the verdicts on the base stream of the last 30 days: each verdict with its weight, and how many are alike.

    The store counts them, so that the answer is short however many there are: a weight is the inverse of a sampling rate.
    """
    rows = store.query(
        "SELECT metrics[{metric:String}] >= {threshold:Float64} AS good, 1 / base_probability AS weight, count()"
        " FROM scores WHERE project = {project:String} AND base"
        " AND status = 'scored' AND fingerprint = {fingerprint:String} AND mapContains(metrics, {metric:String})"
        " AND event_time >= now() - INTERVAL 30 DAY GROUP BY good, weight ORDER BY good, weight",
        parameters={"project": project, "fingerprint": fingerprint, "metric": metric, "threshold": threshold},
    ).result_rows
    return [(bool(good), float(weight), int(count)) for good, weight, count in rows]


def _calibration_row(
    confusion: "Confusion", correction: "Mean", project: str, metric: Metric, fingerprint: str, threshold: float
) -> dict[str, Any]:
    def ends(name: str, estimate: "Estimate | None") -> dict[str, float | None]:
        values = estimate or (None, None, None)
        return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))

    return {
        "calibration_id": str(uuid.uuid4()),
        "calibrated_at": iso(datetime.now(UTC)),
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
    live: list[tuple[bool, float, int]], correction: "Mean", confusion: "Confusion", labels: "Floats", weights: "Floats"
) -> dict[str, "Estimate | None"]:
    """Estimate the share of good answers, by method; empty without answers."""
    import numpy as np

    from assay_judge.calibration import human, ppi, raw, rogan_gladen

    if sum(count for _, _, count in live) < 2:
        return {}
    judged, drawn, counts = (np.array(column, dtype=np.float64) for column in zip(*live, strict=True))
    return {
        "raw": raw(judged, drawn, counts),
        "ppi": ppi(judged, correction, drawn, counts),
        "rogan_gladen": rogan_gladen(judged, confusion, drawn, counts),
        "human": human(labels, weights),
    }


def apply(plan: Calibration, actor: Actor) -> None:
    """Store a calibration, and publish it to the drift service.

    From then on it decides whether alerts can be critical, and corrects the rates of `quality_by_day`. A lock in Redis surrounds both
    steps, so that of two at once one is refused. Raises `OperationError` of kind `conflict` if another one is being stored, or was
    stored since the plan was made. Repeat it after a failure: it may be stored, but not published.
    """
    row = plan.row
    target = {name: row[name] for name in ("project", "metric", "fingerprint", "threshold", "labels", "calibration_id")}
    owner, publisher = settings_for("owner", plan.data), settings_for("judge", plan.data)
    attempt = Trail(plan.data, owner.store).attempt(
        "judge calibrate", actor, identity=owner.store.user, target=target, planned=1
    )
    with open_store(owner.store, database=owner.store.database) as store, attempt:
        asyncio.run(_publish(store, owner, publisher, plan, attempt))


async def _publish(store: "Store", owner: Settings, publisher: Settings, plan: Calibration, attempt: Attempt) -> None:
    from assay_runtime.connection import connect

    row = plan.row
    what = f"calibration of {row['metric']} of project {row['project']}"
    client = connect(publisher.redis)
    try:
        async with _alone(client, row, what, keep_s=int(_LOCK_S + 2 * owner.store.timeout_s)) as still_alone:
            if await asyncio.to_thread(_latest, store, row) != plan.replaces:
                raise OperationError(
                    "conflict",
                    f"another {what} was stored meanwhile",
                    "nothing was stored; run this again to replace it",
                )
            await still_alone()
            await asyncio.to_thread(_keep, store, owner, plan)
            attempt.changed = 1
            await still_alone()
            await _tell_drift(client, publisher, plan)
    finally:
        await client.aclose()


@asynccontextmanager
async def _alone(
    client: "Redis", row: dict[str, Any], what: str, *, keep_s: int
) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Hold the lock of a project, metric and judge. Yields a check that it is still ours, which renews it.

    It expires after `keep_s`, so a process that was killed holds others back no longer.
    """
    from assay_judge.scripts import LOCK

    key = f"{PREFIX}:{{0}}:judge:calibrating:{row['project']}/{row['fingerprint']}/{row['metric']}"
    token, lock = uuid.uuid4().hex, client.register_script(LOCK)
    if not await client.set(key, token, nx=True, ex=keep_s):
        raise OperationError(
            "conflict",
            f"another {what} is being stored, or its process was killed",
            f"nothing was stored; run this again in {keep_s} s at the latest",
        )

    async def still_alone() -> None:
        if not await lock(keys=[key], args=[token, str(keep_s * 1000)]):
            raise OperationError("conflict", f"storing the {what} took over {keep_s} s", "run this again")

    try:
        yield still_alone
    finally:
        await lock(keys=[key], args=[token, "0"])


def _keep(store: "Store", settings: Settings, result: Calibration) -> None:
    from assay_runtime.store import insert_json_rows

    insert_json_rows(store, f"{settings.store.base_database}.calibrations", orjson.dumps(result.row), 1)


async def _tell_drift(client: "Redis", settings: Settings, result: Calibration) -> None:
    """Publish a calibration to the drift service, which reads it before a critical alert."""
    row, confusion = result.row, result.confusion
    published = {name: row[name] for name in ("kappa", "tnr", "tnr_low", "labels", "calibrated_at")}
    published |= {"kappa_low": confusion.kappa_low, "bad": confusion.bad}
    for shard in range(settings.redis.shards):
        field = f"{row['project']}/{row['fingerprint']}/{row['metric']}"
        await client.hset(calibration_key(shard), field, orjson.dumps(published))
