"""Have the judge score a sample of the sessions: `plan_judging`, then `apply`.

Sampling, budget, rate limits and scores are those of answers: a score goes to the stream `scores`, so that it is stored, monitored for
drift and calibrated like theirs. Delivery: a session that was paid for is scored once, also if the process dies between two steps; a
score that is published twice is stored and counted once.
"""

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from assay_operations.actor import Actor
from assay_operations.audit import Attempt, operator_trail, redis_user
from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.sessions.judge_tasks import (
    ItemsTask,
    Judged,
    VerdictsTask,
    Written,
    session_score,
)
from assay_operations.sessions.stored import document_of
from assay_operations.sessions.verdicts import items_of
from assay_operations.time_bounds import moment_ms
from assay_schema.limits import EVENT_AHEAD_MAX_MS as _AHEAD_MS
from assay_schema.scores import RubricItem, Score, ScoreStatus
from assay_schema.settings import Settings
from assay_schema.streams import SCORES, shard_of
from assay_sessions.parts import part_event_id
from assay_sessions.rubric import PROMPT_HASH, SCHEMA_HASH, RubricReplyError
from assay_sessions.rubric_view import View, view_of

if TYPE_CHECKING:
    from assay_judge.api import Calls
    from assay_judge.judge_identity import JudgeIdentity
    from assay_judge.sampling import Draw
    from assay_judge.task_runner import TaskRunner
    from assay_runtime.connection import Client as Redis
    from assay_runtime.store import Client as Store


# The newest revision of each session of a person that has an answer, and its latest score by this judge.
_CHOSEN = """
SELECT s.session_id, s.revision, s.digest, s.service, toUnixTimestamp64Milli(s.began),
    ifNull(j.status, ''), j.revision, toUnixTimestamp64Milli(j.judged_at), j.base, j.base_probability, j.inclusion_probability, j.boosts,
    j.rubric, j.cost_usd, j.input_tokens, j.output_tokens
FROM
(
    SELECT session_id, revision, digest, toString(any(service)) AS service, toDateTime64(min(created), 3, 'UTC') AS began,
        max(updated) AS changed, any(status) AS status, any(parent_session_id) AS parent, uniqExact(part) = max(parts) AS complete
    FROM session_parts
    WHERE project = {project:String}
    GROUP BY session_id, revision, digest
    ORDER BY revision DESC, max(id) DESC
    LIMIT 1 BY session_id
) AS s
LEFT JOIN
(
    SELECT session_id, toNullable(toString(status)) AS status, revision, judged_at, base, base_probability, inclusion_probability, boosts,
        rubric, cost_usd, input_tokens, output_tokens
    FROM scores
    WHERE project = {project:String} AND fingerprint = {fingerprint:String} AND session_id IS NOT NULL
    ORDER BY judged_at DESC
    LIMIT 1 BY session_id
) AS j ON j.session_id = s.session_id
WHERE s.complete AND s.status = 'answered' AND s.parent IS NULL
  AND s.changed >= fromUnixTimestamp64Milli({since:Int64}) AND s.changed <= fromUnixTimestamp64Milli({until:Int64})
  AND (empty({sessions:Array(String)}) OR s.session_id IN {sessions:Array(String)})
ORDER BY s.began, s.session_id
"""
_PER_DAY = """
SELECT toDate(began, 'UTC') AS day, count() FROM
(
    SELECT session_id, min(created) AS began, any(status) AS status, any(parent_session_id) AS parent FROM session_parts
    WHERE project = {project:String} GROUP BY session_id
)
WHERE status = 'answered' AND parent IS NULL GROUP BY day
"""


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

    A session that changed within `settled` may go on: it waits. Sessions that are named are judged whether they are in the sample or not,
    but count for rates only if they are. With `again`, scored ones and errors are judged again, by the same rubric. Raises
    `OperationError`, `SettingsError`.
    """
    now_ms = time.time_ns() // 1_000_000
    until_ms = now_ms + _AHEAD_MS if session_ids else moment_ms(settled, now_ms, "--settled")
    reader, settings = settings_for("sre", data), settings_for("judge", data)
    judge = _judge(settings)
    selection = {
        "project": project,
        "fingerprint": judge.fingerprint,
        "since": 0 if session_ids else moment_ms(since, now_ms, "--since"),
        "until": until_ms,
        "sessions": list(session_ids),
    }
    with open_store(reader.store) as store:
        rows = store.query(_CHOSEN, parameters=selection).result_rows
        per_day = {day: int(n) for day, n in store.query(_PER_DAY, parameters={"project": project}).result_rows}
    if missing := set(session_ids) - {str(row[0]) for row in rows}:
        raise OperationError(
            "not_found",
            f"no session {min(missing)[:100]!r} of project {project} that is complete and has an answer; "
            "see assay sessions list",
        )
    draws = _Draws(settings, per_day, asyncio.run(_salt(settings)), named=bool(session_ids))
    found = [_read(row, project, draws, again=again) for row in rows]
    wanted = [each for each in found if each is not None]
    sampled = [each for each in wanted if each.judged.draw.sampled][:limit]
    # Those after the last one that is judged now wait for the next time.
    last = sampled[-1].judged.event_id if len(sampled) == limit else None
    left = [each for each in wanted if not each.judged.draw.sampled and (last is None or each.judged.event_id < last)]
    target = {name: value for name, value in selection.items() if name in ("project", "fingerprint") or value}
    return Plan(data, project, tuple(sampled), tuple(left), len(rows) - len(wanted), target | {"limit": limit})


def _judge(settings: Settings) -> "JudgeIdentity":
    """Return the judge of sessions: the model of the settings, with the prompts for rubrics. Raises `OperationError`."""
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
    from assay_judge.ledger import ledger_of
    from assay_runtime.connection import connect

    if salt := settings.judge.salt.get_secret_value():
        return salt
    client = connect(settings.redis)
    try:
        return await ledger_of(client, settings).salt()
    finally:
        await client.aclose()


class _Draws:
    """The draws of sessions: as those of answers, with the number of sessions of each day."""

    def __init__(self, settings: Settings, per_day: dict[date, int], salt: str, *, named: bool) -> None:
        self._settings, self._salt = settings.judge, salt
        #: True if the sessions were asked for by name.
        self.named = named
        self._per_day = defaultdict(int, per_day)

    def of(self, event_id: str, began_ms: int) -> "Draw":
        """Return the draw of a session that began at a time."""
        from assay_judge.sampling import base_rate, draw, uniform

        day = datetime.fromtimestamp(began_ms / 1000, UTC).date()
        rate = base_rate(self._per_day, day, self._settings.base_rate, self._settings.base_floor_per_day)
        return draw(uniform(event_id, self._salt), rate, [("requested", 1.0)] if self.named else [])


def _read(row: Sequence[Any], project: str, draws: _Draws, *, again: bool) -> SessionToJudge | None:
    """Return the session of a row, if it is to be drawn or judged."""
    from assay_judge.sampling import Draw

    session_id, revision, digest, service, began_ms, status, judged_revision, judged_ms, *scored = row
    base, base_probability, inclusion, boosts, rubric, *spent = scored
    event_id = part_event_id(project, session_id, "score", 0, began_ms)
    draw = draws.of(event_id, began_ms)
    judged = Judged(UUID(event_id), project, service, session_id, revision, draw)
    if not status:
        return SessionToJudge(judged, digest)
    same = judged_revision == revision
    if status == ScoreStatus.NOT_SAMPLED:
        if not draws.named:
            return None
    elif same and status != ScoreStatus.SKIPPED_BUDGET and not again:
        return None
    draw = Draw(
        sampled=True,
        base=bool(base),
        base_probability=base_probability,
        inclusion_probability=1.0 if draws.named else inclusion,
        boosts=tuple(dict.fromkeys((*boosts, *draw.boosts))),
    )
    if not same:
        return SessionToJudge(replace(judged, draw=draw), digest)
    return SessionToJudge(replace(judged, draw=draw, again=str(judged_ms)), digest, _written(rubric, *spent))


def _written(rubric: Sequence[Any], cost_usd: float, input_tokens: int, output_tokens: int) -> Written | None:
    """Return the rubric of an earlier score, with what it cost; None if it has none."""
    from assay_judge.pricing import NANO

    unjudged = tuple(
        RubricItem(dimension=item["dimension"], criterion=item["criterion"], absence=bool(item["absence"]))
        for item in items_of(rubric)
    )
    return (
        Written(ScoreStatus.SCORED, "", unjudged, round(cost_usd * NANO), input_tokens, output_tokens)
        if unjudged
        else None
    )


def apply(plan: Plan, actor: Actor, *, progress: Callable[[Score], None] | None = None) -> Counter[str]:
    """Judge the planned sessions within the judge's budget, and publish their scores.

    Returns the counts by status. Raises `OperationError`, and `SettingsError` if the API refuses the key.
    """
    if not plan.sampled and not plan.not_sampled:
        return Counter()
    reader, settings = settings_for("sre", plan.data), settings_for("judge", plan.data)
    attempt = operator_trail(plan.data, otherwise=reader.store).attempt(
        "sessions judge",
        actor,
        identity=redis_user(settings.redis),
        target=plan.target,
        planned=len(plan.sampled) + len(plan.not_sampled),
    )
    with open_store(reader.store) as store, attempt:
        return asyncio.run(_Judging(store, settings, plan, attempt, progress).run())


class _Judging:
    """Judging the sessions of a plan."""

    def __init__(
        self, store: "Store", settings: Settings, plan: Plan, attempt: Attempt, progress: Callable[[Score], None] | None
    ) -> None:
        from assay_operations.scrub import policies
        from assay_scrubber.engine import Scrubber

        self._store, self._settings, self._plan, self._attempt = store, settings, plan, attempt
        self._progress = progress
        self._judge = _judge(settings)
        self._scrubber = Scrubber(policies(None).of(plan.project))
        self._counts: Counter[str] = Counter()
        self._reading = asyncio.Lock()

    async def run(self) -> Counter[str]:
        """Judge the sessions, several at once, and return the counts by status."""
        from assay_judge.alerts import RaiseWhenStopped
        from assay_judge.backends import api_of, tariff_for
        from assay_judge.breaker import Breaker
        from assay_judge.judge_config import load_judge_config
        from assay_judge.ledger import ledger_of
        from assay_judge.task_runner import TaskRunner
        from assay_runtime.connection import connect

        settings = self._settings.judge
        client = connect(self._settings.redis)
        api = api_of(settings)
        tariff = tariff_for(settings, load_judge_config(settings.rules_file))
        breaker = Breaker(asyncio.get_running_loop().time)
        ledger = ledger_of(client, self._settings)
        runner = TaskRunner(settings, self._judge.fingerprint, tariff, ledger, breaker, RaiseWhenStopped())
        try:
            for session in self._plan.not_sampled:
                await self._publish(
                    client, self._attempt, session_score(self._judge, session.judged, ScoreStatus.NOT_SAMPLED)
                )
            async with _kept_alive(runner):
                for start in range(0, len(self._plan.sampled), settings.concurrency):
                    page = self._plan.sampled[start : start + settings.concurrency]
                    async with asyncio.TaskGroup() as group:
                        for session in page:
                            group.create_task(self._one(client, runner, api, session))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            await api.close()
            await client.aclose()
        return self._counts

    async def _one(self, client: "Redis", runner: "TaskRunner", api: "Calls", session: SessionToJudge) -> None:
        from assay_judge.call_budget import NotJudgedError

        judged = session.judged
        async with self._reading:  # a session may be large, and the store's client serves one query at a time
            document = await asyncio.to_thread(
                document_of, self._store, judged.project, judged.session_id, judged.revision, session.digest
            )
        view = view_of(document, self._settings.judge.max_input_bytes)
        del document
        try:
            score = await self._score(runner, api, session, view)
        except NotJudgedError:  # another process is at work on it
            self._counts["left"] += 1
            return
        await self._publish(client, self._attempt, score)

    async def _score(self, runner: "TaskRunner", api: "Calls", session: SessionToJudge, view: View) -> Score:
        judged, written = session.judged, session.written
        if written is None:
            data = await runner.run(ItemsTask(judged, view, api, self._scrubbed))
            assert data is not None  # only a publication empties a record, and nothing publishes these
            written = Written.of(data)
        if written.status is not ScoreStatus.SCORED:
            return self._unwritten(judged, written)
        data = await runner.run(VerdictsTask(judged, view, api, self._judge, written))
        assert data is not None
        return Score.model_validate_json(data)

    def _scrubbed(self, text: str) -> str:
        from assay_scrubber.engine import ScrubError

        try:
            return self._scrubber.scrub(text).text
        except ScrubError:
            raise RubricReplyError("ReplyUnscrubbed", "items.criterion: could not be scrubbed") from None

    def _unwritten(self, judged: Judged, written: Written) -> Score:
        from assay_judge.pricing import dollars

        return session_score(
            self._judge,
            judged,
            written.status,
            detail=written.detail,
            cost_usd=dollars(written.nano),
            input_tokens=written.input_tokens,
            output_tokens=written.output_tokens,
        )

    async def _publish(self, client: "Redis", attempt: Attempt, score: Score) -> None:
        shard = shard_of(score.project, self._settings.redis.shards)
        await client.xadd(SCORES.key(shard), {"data": score.model_dump_json()})
        self._counts[score.status.value] += 1
        attempt.changed += 1
        if self._progress:
            self._progress(score)


@contextlib.asynccontextmanager
async def _kept_alive(runner: "TaskRunner") -> AsyncIterator[None]:
    """Renew the leases of calls while the block runs."""
    from redis.exceptions import RedisError

    from assay_judge.ledger import RENEW_S

    async def renew() -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            with contextlib.suppress(RedisError):
                await runner.keep_alive()

    alive = asyncio.create_task(renew())
    try:
        yield
    finally:
        alive.cancel()
