"""Split the stored samples of an episode by dimension: SQL over the views, for `assay drift explain`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay_drift.attribution import Split
    from assay_drift.topics import Query
    from assay_runtime.store import Client as Store
    from assay_schema.settings import DriftSettings

#: Days before the change to compare with, in the configured length of a day.
BEFORE_DAYS = 14
#: Far in the future, for an episode that is open.
NEVER_MS = 4_000_000_000_000
#: Maximum groups of a dimension that are read by name (the largest; the rest is one group), and queries per period.
_NAMES, _QUERIES = 100, 3_000

_WITHIN = """project = {project:String}
      AND event_time >= fromUnixTimestamp64Milli({start:Int64}, 'UTC') AND event_time < fromUnixTimestamp64Milli({end:Int64}, 'UTC')"""
_DAY = "toInt32(floor((toUnixTimestamp64Milli(event_time) - {since:Int64}) / {day:Float64}))"
_SOURCE_OF_ANSWER = "ifNull(toString(contexts.source_id[1]), '')"
#: The parts of answers and of sessions: SQL over their tables.
_ANSWER_PARTS = {"service": "toString(service)", "model": "toString(model)", "source": _SOURCE_OF_ANSWER}
_SESSION_PARTS = {
    "service": "toString(service)",
    "model": "ifNull(toString(any(model)), '')",
    "source": "toString(any(source))",
}
_RETRIEVAL_PARTS = {
    "service": "toString(service)",
    "operation": "toString(tool_name)",
    "source": "toString(source_ids[1])",
    "embedding model": "ifNull(toString(embedding_model), '')",
    "detail": "ifNull(toString(detail_resolved), '')",
    "caller": "if(remote, 'remote', 'local')",
    "expansion": "if(expansion_applied, 'applied', 'none')",
}
#: The series of an episode of retrieval scores: the embedding model.
_EMBEDDED = "if(ifNull(embedding_model, '') = '', '-', toString(embedding_model)) = {series:String} AND notEmpty(retrieved_scores)"
#: Metrics of retrieval scores.
TOP = {"top_1": "retrieved_scores[1]", "mean_of_k": "arrayAvg(retrieved_scores)"}


@dataclass(frozen=True, slots=True)
class Episode:
    """A stored episode, with times in Unix milliseconds."""

    alert_id: str
    project: str
    metric: str
    series: str
    kind: str
    summary: str
    since_ms: int
    until_ms: int | None

    def named(self, day_ms: float) -> dict[str, Any]:
        """Return the parameters of a statement about the episode and the days before."""
        return {
            "project": self.project,
            "series": self.series,
            "since": self.since_ms,
            "start": round(self.since_ms - BEFORE_DAYS * day_ms),
            "end": self.until_ms or NEVER_MS,
            "day": float(day_ms),
        }


_EPISODE = """
SELECT project, ifNull(metric, ''), ifNull(series, ''), toString(kind), summary, toUnixTimestamp64Milli(since),
  (SELECT min(toUnixTimestamp64Milli(at)) FROM alerts WHERE alert_id = {id:UUID} AND state IN ('recovering', 'resolved')) AS until
FROM alerts WHERE alert_id = {id:UUID} AND state IN ('warn', 'critical') ORDER BY sequence DESC LIMIT 1
"""


def episode_of(store: "Store", alert_id: str) -> Episode | None:
    """Read a stored episode; None if there is none."""
    rows = store.query(_EPISODE, parameters={"id": alert_id}).result_rows
    return Episode(alert_id, *rows[0]) if rows else None


def score_splits(store: "Store", episode: Episode, day_ms: float) -> "list[Split]":
    """Split scores and shares of answers by dimension."""
    from assay_schema.alert_actions import samples_of
    from assay_schema.scores import SESSION_METRICS

    value, has_one = samples_of(episode.metric)
    if episode.metric in SESSION_METRICS:
        return _of_sessions(store, episode, day_ms, value, f"fingerprint = {{series:String}} AND {has_one}")
    return _of_scores(store, episode, day_ms, value, f"fingerprint = {{series:String}} AND {has_one}")


def error_splits(store: "Store", episode: Episode, day_ms: float) -> "list[Split]":
    """Split answers that the judge failed on. The alert is about the 24 hours before it opened."""
    earlier = replace(episode, since_ms=round(episode.since_ms - day_ms))
    judged = "status NOT IN ('not_sampled', 'skipped_budget')"
    return _of_scores(store, earlier, day_ms, "toFloat64(status = 'judge_error')", judged)


def _of_scores(store: "Store", episode: Episode, day_ms: float, value: str, which: str) -> "list[Split]":
    joined = f"""(
      SELECT event_id, event_time, toString(service) AS service, {value} AS sample FROM scores WHERE {_WITHIN} AND base AND {which}
    ) AS s INNER JOIN (
      SELECT event_id, toString(model) AS model, {_SOURCE_OF_ANSWER} AS source FROM answers WHERE {_WITHIN}
    ) AS a ON s.event_id = a.event_id"""  # noqa: S608  # names of ours
    return _splits(store, "sample", joined, {name: name for name in _ANSWER_PARTS}, episode.named(day_ms))


def _of_sessions(store: "Store", episode: Episode, day_ms: float, value: str, which: str) -> "list[Split]":
    joined = f"""(
      SELECT assumeNotNull(t.session_id) AS id, event_time, toString(service) AS service, {value} AS sample FROM scores AS t
      WHERE {_WITHIN} AND base AND {which} AND t.session_id IS NOT NULL
    ) AS s INNER JOIN (
      SELECT session_id AS id, {_SESSION_PARTS["model"]} AS model, {_SESSION_PARTS["source"]} AS source FROM session_parts
      WHERE project = {{project:String}} GROUP BY id
    ) AS p ON s.id = p.id"""  # noqa: S608  # names of ours
    return _splits(store, "sample", joined, {name: name for name in _SESSION_PARTS}, episode.named(day_ms))


def amount_splits(store: "Store", episode: Episode, day_ms: float, limit: float) -> "list[Split]":
    """Split the share of answers or retrievals above the limit."""
    from assay_schema.alert_actions import amount_of

    table, parts, which = _table(episode)
    value = f"toFloat64({amount_of(episode.metric)} > {{limit:Float64}})"
    return _splits(store, value, f"{table} WHERE {_WITHIN}{which}", parts, {**episode.named(day_ms), "limit": limit})


def limit_before(store: "Store", episode: Episode, settings: "DriftSettings", share: float) -> float | None:
    """Recompute the limit from the first stored days before the change; None if they are too few."""
    from assay_drift.amounts import KEPT_SAMPLES, Amount, limit_of
    from assay_drift.series import Calendar
    from assay_schema.alert_actions import amount_of

    day_ms = Calendar.of(settings).day_ms
    table, _, which = _table(episode)
    named = {**episode.named(day_ms), "end": episode.since_ms}
    needed = Amount.samples_needed(settings)
    rows = store.query(
        f"SELECT toUnixTimestamp64Milli(event_time) FROM {table} WHERE {_WITHIN}{which} ORDER BY event_time LIMIT {needed}",  # noqa: S608
        parameters=named,
    ).result_rows
    if len(rows) < needed:
        return None
    named["end"] = max(round(rows[0][0] + Amount.days_needed(settings) * day_ms), rows[-1][0]) + 1
    if named["end"] > episode.since_ms:
        return None
    amounts = store.query(
        f"SELECT toFloat64({amount_of(episode.metric)}) FROM {table} WHERE {_WITHIN}{which} "  # noqa: S608
        f"ORDER BY sipHash64(event_id) LIMIT {KEPT_SAMPLES}",
        parameters=named,
    ).result_rows
    return limit_of([float(amount) for (amount,) in amounts], share)


def _table(episode: Episode) -> tuple[str, Mapping[str, str], str]:
    from assay_schema.alert_actions import RETRIEVALS

    if episode.series in RETRIEVALS:
        return "candidates", _RETRIEVAL_PARTS, " AND toString(tool_name) = {series:String}"
    return "answers", _ANSWER_PARTS, ""


def retrieval_splits(store: "Store", episode: Episode, day_ms: float) -> "list[Split]":
    """Split retrieval scores, each as its rank among those before the change: 0.5 is unchanged."""
    value, named = TOP[episode.metric], episode.named(day_ms)
    rows = f"candidates WHERE {_WITHIN} AND {_EMBEDDED}"
    shares = ", ".join(str(place / 100) for place in range(101))
    found = store.query(
        f"SELECT quantiles({shares})({value}), count() FROM {rows}",  # noqa: S608
        parameters=named | {"end": episode.since_ms},
    ).result_rows
    if not found or not found[0][1]:
        return []
    named["reference"] = [float(each) for each in found[0][0]]
    places = f"(arrayCount(q -> q < {value}, {{reference:Array(Float64)}}) + arrayCount(q -> q <= {value}, {{reference:Array(Float64)}}))"
    return _splits(store, f"{places} / 202", rows, _RETRIEVAL_PARTS, named)


def _splits(store: "Store", value: str, rows: str, parts: Mapping[str, str], named: Mapping[str, Any]) -> "list[Split]":
    """Split a value of some rows by each dimension."""
    from assay_drift.attribution import REST, groups, split

    pairs = ", ".join(f"('{name}', {sql})" for name, sql in parts.items())
    statement = f"""
SELECT dimension, if(place <= {_NAMES}, name, '{REST}') AS shown, day, sum(n), sum(total), sum(squares) FROM (
  SELECT *, dense_rank() OVER (PARTITION BY dimension ORDER BY size DESC, name) AS place FROM (
    SELECT *, sum(n) OVER (PARTITION BY dimension, name) AS size FROM (
      SELECT part.1 AS dimension, part.2 AS name, day, count() AS n, sum(v) AS total, sum(v * v) AS squares FROM (
        SELECT {_DAY} AS day, {value} AS v, arrayJoin([{pairs}]) AS part FROM {rows}
      ) GROUP BY dimension, name, day
    )
  )
) GROUP BY dimension, shown, day"""  # noqa: S608
    cells = [
        (str(of), (str(name), int(day), int(n), float(total), float(squares)))
        for of, name, day, n, total, squares in store.query(statement, parameters=dict(named)).result_rows
    ]
    splits = []
    for dimension in parts:
        times = [
            groups(row for of, row in cells if of == dimension and (row[1] >= 0) is after) for after in (False, True)
        ]
        if made := split(dimension, times[0], times[1]):
            splits.append(made)
    return splits


def queries_of(store: "Store", episode: Episode, day_ms: float) -> "tuple[list[Query], list[str]]":
    """Sample the queries before and since the change, without bias, with their scrubbed texts."""
    from assay_drift.embedding import LONGEST
    from assay_drift.topics import Query

    of_day = (
        f"SELECT toString(event_id), {_DAY} AS day, substringUTF8(query, 1, {LONGEST}), toString(service) AS service"
    )
    both = f"""
  {of_day}, toString(tool_name) AS operation, event_id FROM candidates WHERE {_WITHIN}
  UNION ALL
  {of_day}, 'answer' AS operation, event_id FROM answers WHERE {_WITHIN} AND retrieval_event_id IS NULL"""
    rows: list[Sequence[Any]] = []
    for when in ("day < 0", "day >= 0"):
        statement = f"SELECT * FROM ({both}) WHERE {when} ORDER BY sipHash64(event_id) LIMIT {_QUERIES}"  # noqa: S608
        rows += store.query(statement, parameters=episode.named(day_ms)).result_rows
    rows.sort(key=lambda row: str(row[0]))
    queries = [Query(str(row[0]), int(row[1]), {"service": str(row[3]), "operation": str(row[4])}) for row in rows]
    return queries, [str(row[2]) for row in rows]
