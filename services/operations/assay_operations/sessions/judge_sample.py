"""Draw the sample of sessions for the judge: `plan_judging`.

It reads the store, and pays and writes nothing.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.sessions.judge_cost import Cost
from assay_operations.sessions.judge_tasks import Judged, Written
from assay_operations.sessions.verdicts import items_of
from assay_operations.time_bounds import moment_ms
from assay_schema.limits import EVENT_AHEAD_MAX_MS as _AHEAD_MS
from assay_schema.scores import RubricItem, ScoreStatus
from assay_schema.settings import Settings
from assay_sessions.parts import part_event_id
from assay_sessions.rubric import PROMPT_HASH, SCHEMA_HASH

if TYPE_CHECKING:
    from assay_judge.judge_identity import JudgeIdentity
    from assay_judge.sampling import Draw
    from assay_runtime.store import Client as Store


# The newest revision of each session of a person.
_NEWEST = """
    SELECT session_id, revision, digest, toString(any(service)) AS service, toDateTime64(min(created), 3, 'UTC') AS began,
        max(updated) AS changed, any(status) AS status, any(parent_session_id) AS parent, any(forked_from) AS fork,
        uniqExact(part) = max(parts) AS complete
    FROM session_parts
    WHERE project = {project:String}
    GROUP BY session_id, revision, digest
    ORDER BY revision DESC, max(id) DESC
    LIMIT 1 BY session_id
"""
# With its latest score by this judge, and the id under which any judge knows it: it stays if the start in a log moves.
_CHOSEN = f"""
SELECT s.changed > fromUnixTimestamp64Milli({{until:Int64}}), s.session_id, s.revision, s.digest, s.service,
    toUnixTimestamp64Milli(s.began), e.event_id,
    ifNull(j.status, ''), j.revision, toUnixTimestamp64Milli(j.judged_at), j.base, j.base_probability, j.inclusion_probability, j.boosts,
    j.cost_usd, j.input_tokens, j.output_tokens, j.rubric
FROM ({_NEWEST}) AS s
LEFT JOIN
(
    SELECT session_id, toNullable(toString(status)) AS status, revision, judged_at, base, base_probability, inclusion_probability, boosts,
        rubric, cost_usd, input_tokens, output_tokens
    FROM scores
    WHERE project = {{project:String}} AND fingerprint = {{fingerprint:String}} AND session_id IS NOT NULL
    ORDER BY judged_at DESC
    LIMIT 1 BY session_id
) AS j ON j.session_id = s.session_id
LEFT JOIN
(
    SELECT session_id, toString(argMin(event_id, judged_at)) AS event_id FROM scores
    WHERE project = {{project:String}} AND session_id IS NOT NULL GROUP BY session_id
) AS e ON e.session_id = s.session_id
WHERE s.complete AND s.status = 'answered' AND s.parent IS NULL AND (s.fork IS NULL OR notEmpty({{sessions:Array(String)}}))
  AND s.changed >= fromUnixTimestamp64Milli({{since:Int64}})
  AND (empty({{sessions:Array(String)}}) OR s.session_id IN {{sessions:Array(String)}})
ORDER BY s.began, s.session_id
"""  # noqa: S608  # a statement of ours
_PER_DAY = f"""
SELECT toDate(began, 'UTC') AS day, count() FROM ({_NEWEST})
WHERE status = 'answered' AND parent IS NULL AND fork IS NULL GROUP BY day
"""  # noqa: S608  # a statement of ours


@dataclass(frozen=True)
class SessionToJudge:
    """A session, and what its last score by this judge left."""

    judged: Judged
    digest: str
    #: The rubric that was written for this revision, if any.
    written: Written | None = None


@dataclass(frozen=True)
class Plan:
    """The sessions to judge, and those to record as not sampled: no text of theirs."""

    #: Data directory of the settings.
    data: Path
    project: str
    sampled: tuple[SessionToJudge, ...]
    not_sampled: tuple[SessionToJudge, ...]
    #: Sessions that this judge has scored, or failed to.
    done: int
    #: Sessions that changed so lately that they may go on.
    unsettled: int
    #: The selection, for the audit record.
    target: dict[str, Any]


def plan_judging(
    data: Path,
    *,
    project: str = "default",
    since: str = "7d",
    settled: str = "10m",
    session_ids: Sequence[str] = (),
    again: bool = False,
    limit: int = 100,
) -> Plan:
    """Draw the sample of the sessions that changed in a period, and that this judge has not scored.

    A session that changed within `settled` may go on: it waits. Forks repeat another session, so they are judged only if they are named.
    Sessions that are named are judged whether they are in the sample or not, but count for rates only if they are. With `again`, errors are
    judged again, and named sessions also if they were scored; by the same rubric. Raises `OperationError`, `SettingsError`.
    """
    now_ms = time.time_ns() // 1_000_000
    until_ms = now_ms + _AHEAD_MS if session_ids else moment_ms(settled, now_ms, "--settled")
    reader, settings = settings_for("sre", data), settings_for("judge", data)
    judge = judge_of_sessions(settings)
    selection = {
        "project": project,
        "fingerprint": judge.fingerprint,
        "since": 0 if session_ids else moment_ms(since, now_ms, "--since"),
        "until": until_ms,
        "sessions": list(session_ids),
    }
    with open_store(reader.store) as store:
        found = store.query(_CHOSEN, parameters=selection).result_rows
        rows = [row for unsettled, *row in found if not unsettled]
        per_day = {day: int(n) for day, n in store.query(_PER_DAY, parameters={"project": project}).result_rows}
        if missing := set(session_ids) - {str(row[0]) for row in rows}:
            raise OperationError("not_found", "; ".join(_why_not(store, project, each) for each in sorted(missing)))
    draws = _Draws(settings, per_day, asyncio.run(_salt(settings)), named=bool(session_ids))
    wanted = [each for row in rows if (each := _read(row, project, draws, again=again)) is not None]
    sampled = [each for each in wanted if each.judged.draw.sampled][:limit]
    # Those after the last one that is judged now wait for the next time.
    last = sampled[-1].judged.event_id if len(sampled) == limit else None
    left = [each for each in wanted if not each.judged.draw.sampled and (last is None or each.judged.event_id < last)]
    target = {name: value for name, value in selection.items() if name in ("project", "fingerprint") or value}
    return Plan(
        data,
        project,
        tuple(sampled),
        tuple(left),
        len(rows) - len(wanted),
        len(found) - len(rows),
        target | {"limit": limit},
    )


def _why_not(store: "Store", project: str, session_id: str) -> str:
    """Return why a session cannot be judged."""
    named = {"project": project, "session": session_id}
    rows = store.query(
        f"SELECT complete, toString(status), parent IS NOT NULL FROM ({_NEWEST}) WHERE session_id = {{session:String}}",  # noqa: S608
        parameters=named,
    ).result_rows
    shown = f"session {session_id[:100]!r} of project {project}"
    if not rows:
        return f"no {shown} was imported; list them with assay sessions list --json (the whole id is needed)"
    complete, status, subagent = rows[0]
    if not complete:
        return f"parts of {shown} have not arrived yet"
    return f"{shown} is of a sub-agent" if subagent else f"{shown} has no answer: it is {status}"


def judge_of_sessions(settings: Settings) -> "JudgeIdentity":
    """Return the judge of sessions: the model of the settings, with the prompts for rubrics.

    Raises `OperationError`.
    """
    from assay_judge.backends import judge_of

    judge = judge_of(settings.judge)
    if judge.backend == "lexical":
        raise OperationError(
            "invalid",
            "judging sessions needs a model: set judge.api_key_file (ASSAY_JUDGE_API_KEY_FILE), "
            'or judge.backend = "openai" with judge.model; assay sessions check needs none',
        )
    if judge.backend == "anthropic-batch":  # sessions are judged by single calls, at their price
        judge = replace(judge, backend="anthropic")
    return replace(judge, prompt_hash=PROMPT_HASH, schema_hash=SCHEMA_HASH)


async def _salt(settings: Settings) -> str:
    from redis.exceptions import RedisError

    from assay_judge.ledger import ledger_of
    from assay_runtime.connection import connect

    if salt := settings.judge.salt.get_secret_value():
        return salt
    client = connect(settings.redis)
    try:
        return await ledger_of(client, settings).salt()
    except RedisError as error:
        raise OperationError("unavailable", f"redis: {type(error).__name__}; see redis.url") from None
    finally:
        await client.aclose()


class _Draws:
    """The draws of sessions: as those of answers, with the number of sessions of each day."""

    def __init__(self, settings: Settings, per_day: dict[date, int], salt: str, *, named: bool) -> None:
        self._settings, self._salt = settings.judge, salt
        #: True if the sessions were asked for by name.
        self.named = named
        self._per_day = per_day

    def of(self, event_id: str, began_ms: int) -> "Draw":
        """Return the draw of a session that began at a time."""
        from assay_judge.sampling import draw, uniform

        # Unlike answers, which come one by one, the sessions of a day are known: no traffic has to be expected.
        count = max(1, self._per_day.get(datetime.fromtimestamp(began_ms / 1000, UTC).date(), 0))
        rate = max(self._settings.base_rate, min(1.0, self._settings.base_floor_per_day / count))
        return draw(uniform(event_id, self._salt), rate, [("requested", 1.0)] if self.named else [])


def _read(row: Sequence[Any], project: str, draws: _Draws, *, again: bool) -> SessionToJudge | None:
    """Return the session of a row, if it is to be drawn or judged."""
    from assay_judge.pricing import NANO
    from assay_judge.sampling import Draw

    session_id, revision, digest, service, began_ms, known_id, status, judged_revision, judged_ms, *scored = row
    base, base_probability, inclusion, boosts, cost_usd, read, written, rubric = scored
    event_id = known_id or part_event_id(project, session_id, "score", 0, began_ms)
    draw = draws.of(event_id, began_ms)
    spent = Cost(round(cost_usd * NANO), int(read), int(written))
    judged = Judged(UUID(event_id), project, service, session_id, revision, draw, spent)
    if not status:
        return SessionToJudge(judged, digest)
    same = judged_revision == revision
    if status == ScoreStatus.NOT_SAMPLED:
        if not draws.named:
            return None
    elif same and not _repeats(status, again=again, named=draws.named):
        return None
    draw = Draw(
        sampled=True,
        base=bool(base),
        base_probability=base_probability,
        inclusion_probability=1.0 if draws.named else inclusion,
        boosts=tuple(dict.fromkeys((*boosts, *draw.boosts))),
    )
    judged = replace(judged, draw=draw)
    if not same or status == ScoreStatus.NOT_SAMPLED:
        return SessionToJudge(judged, digest)
    return SessionToJudge(replace(judged, again=str(judged_ms)), digest, _written(rubric))


def _repeats(status: str, *, again: bool, named: bool) -> bool:
    """Return whether a session with this score is judged again."""
    return status == ScoreStatus.SKIPPED_BUDGET or (again and (named or status == ScoreStatus.JUDGE_ERROR))


def _written(rubric: Sequence[Any]) -> Written | None:
    """Return the rubric of an earlier score, which is paid for; None if it has none."""
    items = tuple(
        RubricItem(dimension=item["dimension"], criterion=item["criterion"], absence=bool(item["absence"]))
        for item in items_of(rubric)
    )
    return Written(ScoreStatus.SCORED, items=items) if items else None
