"""Judge stored answers again: `plan_rejudge`, then `apply`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay_operations.actor import Actor
from assay_operations.audit import Trail, redis_user
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


@dataclass(frozen=True)
class Plan:
    """The answers to judge, with the sampling probabilities of their last score."""

    answers: list[dict[str, Any]]
    #: The selection, for the audit record.
    target: dict[str, Any]


def plan_rejudge(
    store: "Store", project: str, only: list[str], since: str, limit: int, *, negative_feedback: bool
) -> Plan:
    """Read the selected answers."""
    conditions = ["a.project = {project:String}", "a.event_time >= fromUnixTimestamp64Milli({since:Int64})"]
    parameters: dict[str, Any] = {"project": project, "since": since_ms(since), "limit": limit, "only": only}
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
    target = {"project": project, "status": only, "since_ms": parameters["since"], "limit": limit}
    if negative_feedback:
        target["negative_feedback"] = True
    return Plan([dict(row) | {"project": project} for row in rows.named_results()], target)


async def apply(settings: Settings, plan: Plan, actor: Actor, trail: Trail) -> dict[str, int]:
    """Judge the planned answers, and publish their scores, which replace earlier ones.

    Return the counts by status.
    """
    from assay_judge.rejudge import rejudge_answers
    from assay_runtime.connection import connect

    counts: dict[str, int] = {}
    if not plan.answers:
        return counts
    attempt = trail.attempt(
        "judge rejudge", actor, identity=redis_user(settings.redis), target=plan.target, planned=len(plan.answers)
    )
    client: Redis = connect(settings.redis)
    try:
        async with attempt:
            async for score in rejudge_answers(client, settings, plan.answers):
                shard = shard_of(score.project, settings.redis.shards)
                await client.xadd(SCORES.key(shard), {"data": score.model_dump_json()})
                counts[score.status.value] = counts.get(score.status.value, 0) + 1
                attempt.changed += 1
    finally:
        await client.aclose()
    return counts
