"""`assay drift explain`: which service, model or source moved when a series did, from the stored scores and answers."""

from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from assay_cli.connect import DEFAULT_DATA, DataDirectory, open_store, settings_for
from assay_cli.errors import CommandError
from assay_cli.terminal import echo, ends_quietly, printable

if TYPE_CHECKING:
    from assay_drift.attribution import Split
    from assay_runtime.store import Client as Store

#: Days before the change that it is compared with, in the length of day in use.
_BEFORE_DAYS = 14
_DIMENSIONS = ("service", "model", "source")
_EPISODE = """
SELECT project, metric, series, toUnixTimestamp64Milli(since), toString(kind),
  (SELECT min(toUnixTimestamp64Milli(at)) FROM alerts WHERE alert_id = {id:UUID} AND state IN ('recovering', 'resolved')) AS until
FROM alerts WHERE alert_id = {id:UUID} AND state IN ('warn', 'critical') ORDER BY sequence DESC LIMIT 1
"""
_GROUPS = """
SELECT late, part.1, part.2, count(), sum(v), sum(v * v) FROM (
  SELECT s.late AS late, s.v AS v, arrayJoin([
    ('service', toString(s.service)), ('model', toString(a.model)), ('source', a.source)
  ]) AS part
  FROM (
    SELECT event_id, service, VALUE AS v, event_time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AS late FROM scores
    WHERE project = {project:String} AND fingerprint = {series:String} AND base AND HAS_ONE
      AND event_time >= fromUnixTimestamp64Milli({start:Int64}, 'UTC') AND event_time < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
  ) AS s
  INNER JOIN (
    SELECT event_id, model, ifNull(toString(contexts.source_id[1]), '') AS source FROM answers
    WHERE project = {project:String}
      AND event_time >= fromUnixTimestamp64Milli({start:Int64}, 'UTC') AND event_time < fromUnixTimestamp64Milli({end:Int64}, 'UTC')
  ) AS a ON s.event_id = a.event_id
) GROUP BY late, part ORDER BY count() DESC LIMIT 5000
"""
#: Far in the future, for an episode that goes on.
_NEVER_MS = 4_000_000_000_000


def episode_named(alert_id: str) -> str:
    """An alert's id as it is stored. Raises `CommandError` for what is none."""
    try:
        return str(UUID(alert_id))
    except ValueError:
        raise CommandError(
            f"{printable(alert_id)!r} is not an alert's id; `assay alerts list` shows those that are open"
        ) from None


def explain(
    alert_id: Annotated[str, typer.Argument(metavar="ALERT_ID", help="The episode, as its alert names it.")],
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Say which services, models and sources moved in an episode, or whether the mix of traffic did."""
    identity = episode_named(alert_id)
    settings = settings_for("sre", data)
    with ends_quietly(), open_store(settings.store) as store:
        for line in explained(store, identity, settings.drift.day_minutes * 60_000):
            echo(printable(line))


def explained(store: "Store", alert_id: str, day_ms: float) -> list[str]:
    """What is known of an episode's parts, a line each."""
    from assay_schema.alert_actions import samples_of
    from assay_schema.scores import is_amount

    rows = store.query(_EPISODE, parameters={"id": alert_id}).result_rows
    if not rows:
        raise CommandError(f"no episode {alert_id} is stored; `assay alerts list` shows those that are open")
    project, metric, series, since_ms, kind, until_ms = rows[0]
    if kind != "score_drift" or is_amount(metric or ""):
        raise CommandError("only episodes of scores and of shares of answers can be explained by their parts")
    value, has_one = samples_of(str(metric))
    named = {
        "project": project,
        "series": series,
        "since": since_ms,
        "start": round(since_ms - _BEFORE_DAYS * day_ms),
        "end": until_ms or _NEVER_MS,
    }
    statement = _GROUPS.replace("VALUE", value).replace("HAS_ONE", has_one)
    splits = _splits(store.query(statement, parameters=named).result_rows)
    if not splits:
        return [f"{metric} of {project}: too few stored answers, or only one service, model and source"]
    told = [f"  {line}" for each in splits for line in each.told()]
    change = f"{metric} of {project}: {splits[0].change:+.3g} since the change"
    return [change, *(told or ["  no service, model or source stands out beyond chance, nor does their mix"])]


def _splits(rows: Any) -> "list[Split]":
    from assay_drift.attribution import groups, split

    found = []
    for dimension in _DIMENSIONS:
        times = [
            groups((str(name), int(n), float(total), float(squares)) for late, of, name, n, total, squares in rows
                   if of == dimension and bool(late) is after)
            for after in (False, True)
        ]  # fmt: skip
        if made := split(dimension, times[0], times[1]):
            found.append(made)
    return found
