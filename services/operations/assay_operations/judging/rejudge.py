"""Judge stored answers again: `plan_rejudge`, then `apply`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, operator_trail, redis_user
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.judging.status import since_ms
from assay_schema.scores import ScoreStatus
from assay_schema.settings import Settings
from assay_schema.streams import SCORES, shard_of

if TYPE_CHECKING:
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client as Store


def statuses_of(only: list[str] | None) -> list[str]:
    """Parse statuses. Raises `OperationError` for an unknown one."""
    if unknown := [status for status in only or () if status not in set(ScoreStatus)]:
        raise OperationError("invalid", f"--status: {unknown[0]!r} is not one of {', '.join(ScoreStatus)}")
    return [ScoreStatus(status).value for status in only or ()]


#: Answers that are read at a time.
_PAGE = 200
_COLUMNS = (
    "toString(a.event_id) AS event_id, a.id AS id, a.service AS service, a.query AS query, a.answer AS answer,"
    " a.contexts AS contexts, a.citations AS citations, a.model AS model, a.latency_ms AS latency_ms, a.occurred_at AS occurred_at,"
    " a.traceparent AS traceparent, a.origin AS origin,"
    " a.created_at AS created_at, a.policy AS policy, s.base AS base, s.inclusion_probability AS inclusion_probability,"
    " s.base_probability AS base_probability, s.checks AS checks, s.boosts AS boosts"
)


@dataclass(frozen=True)
class Plan:
    """The answers to judge, by `event_id`: no text of theirs."""

    #: Data directory of the settings.
    data: Path
    project: str
    answers: tuple[str, ...]
    #: The selection, for the audit record.
    target: dict[str, Any]


def plan_rejudge(
    data: Path,
    *,
    project: str = "default",
    only: Sequence[str] = (),
    since: str = "1d",
    limit: int = 100,
    negative_feedback: bool = False,
) -> Plan:
    """Find the selected answers."""
    conditions = ["a.project = {project:String}", "a.event_time >= fromUnixTimestamp64Milli({since:Int64})"]
    parameters: dict[str, Any] = {"project": project, "since": since_ms(since), "limit": limit, "only": list(only)}
    if negative_feedback:
        conditions.append("a.event_id IN (SELECT target_event_id FROM feedback WHERE verdict = 'negative')")
    if only:
        conditions.append("s.status IN {only:Array(String)}")
    question = (
        "SELECT toString(a.event_id) FROM answers AS a"
        " INNER JOIN (SELECT * FROM scores ORDER BY judged_at DESC LIMIT 1 BY event_id) AS s ON s.event_id = a.event_id"
        " WHERE {conditions} ORDER BY a.event_time LIMIT {limit:UInt32}"
    ).replace("{conditions}", " AND ".join(conditions))
    with open_store(settings_for("sre", data).store) as store:
        found = tuple(str(event_id) for (event_id,) in store.query(question, parameters=parameters).result_rows)
    target = {"project": project, "status": list(only), "since_ms": parameters["since"], "limit": limit}
    if negative_feedback:
        target["negative_feedback"] = True
    return Plan(data, project, found, target)


def apply(plan: Plan, actor: Actor) -> dict[str, int]:
    """Judge the planned answers that still exist, and publish their scores, which replace earlier ones.

    Return the counts by status.
    """
    if not plan.answers:
        return {}
    reader, settings = settings_for("sre", plan.data), settings_for("judge", plan.data)
    attempt = operator_trail(plan.data, otherwise=reader.store).attempt(
        "judge rejudge", actor, identity=redis_user(settings.redis), target=plan.target, planned=len(plan.answers)
    )
    counts: dict[str, int] = {}
    with open_store(reader.store) as store, attempt:
        for start in range(0, len(plan.answers), _PAGE):
            answers = _read(store, plan.project, plan.answers[start : start + _PAGE])
            asyncio.run(_judge(settings, answers, attempt, counts))
    return counts


def _read(store: "Store", project: str, event_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Read answers, with the sampling probabilities of their last score."""
    question = (
        "SELECT {columns} FROM answers AS a INNER JOIN"
        " (SELECT * FROM scores WHERE event_id IN {ids:Array(UUID)} ORDER BY judged_at DESC LIMIT 1 BY event_id) AS s"
        " ON s.event_id = a.event_id"
        " WHERE a.project = {project:String} AND a.event_id IN {ids:Array(UUID)} ORDER BY a.event_time"
    ).replace("{columns}", _COLUMNS)
    rows = store.query(question, parameters={"project": project, "ids": list(event_ids)})
    return [dict(row) | {"project": project} for row in rows.named_results()]


async def _judge(settings: Settings, answers: list[dict[str, Any]], attempt: Attempt, counts: dict[str, int]) -> None:
    from assay_judge.rejudge import rejudge_answers
    from assay_runtime.connection import connect

    client: Redis = connect(settings.redis)
    try:
        async for score in rejudge_answers(client, settings, answers):
            shard = shard_of(score.project, settings.redis.shards)
            await client.xadd(SCORES.key(shard), {"data": score.model_dump_json()})
            counts[score.status.value] = counts.get(score.status.value, 0) + 1
            attempt.changed += 1
    finally:
        await client.aclose()
