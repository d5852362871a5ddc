"""Budgets, rate limits and call records in Redis, shared by all judges and correct after any crash.

Before a call its upper bound is reserved; afterwards the actual cost replaces it. Both are atomic steps, so the day's
spend including all reservations never exceeds the cap. The reservation of a dead judge stays spent, because its call
may have been billed.
"""

import asyncio
import secrets
import uuid
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

import orjson

from assay_judge.pricing import NANO
from assay_judge.sampling import REMEMBERED_DAYS
from assay_judge.scripts import FORGET, KEEP, LEARN, PUBLISH, PUBLISH_SESSION, RELEASE, RENEW, RESERVE, SETTLE, TAKE
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_runtime.entries import Outcome
from assay_runtime.finishing import Finish
from assay_runtime.same_redis import guarded
from assay_schema.scores import Score, ScoreStatus
from assay_schema.settings import Settings
from assay_schema.streams import EVENTS, PREFIX, SCORES, shard_of

DAY_MS = 86_400_000
#: Seconds for which a judge without heartbeat counts as working, and between heartbeats.
LEASE_S, RENEW_S = 30.0, 8.0
#: Longest pause that is accepted from a reply's header: an hour would look like a hang.
PAUSE_MOST_S = 60.0
#: More nano-dollars than anyone spends; still exact in Lua.
_UNLIMITED = 2**52
#: Paid answers needed to estimate the cost of one.
PAID_MIN = 20


class Reservation(NamedTuple):
    """Reply to a reservation.

    `score`: of an answer already judged. `nano`: reserved by an interrupted call.
    """

    what: Literal["ok", "budget", "all_budgets", "done", "busy", "interrupted"]
    score: bytes = b""
    nano: int = 0
    wait_s: float = 0.0


class Ledger:
    """Books of one judge process.

    `cap_nano`: per project; `total_nano`: all projects, split over the shards.
    """

    def __init__(
        self, client: Client, shards: int, *, cap_nano: int, record_days: float, total_nano: int | None = None
    ) -> None:
        self._client = client
        self._shards = shards
        self._cap = cap_nano
        self._total = _UNLIMITED if total_nano is None else total_nano // shards
        self._keep_ms = int(record_days * DAY_MS)
        self._forget = client.register_script(FORGET)
        self._keep = client.register_script(KEEP)
        self._reserve = client.register_script(RESERVE)
        self._renew = client.register_script(RENEW)
        self._settle = client.register_script(SETTLE)
        self._release = client.register_script(RELEASE)
        self._take = client.register_script(TAKE)
        self._learn = client.register_script(LEARN)
        self._publish_session = client.register_script(PUBLISH_SESSION)

    def _key(self, project: str, *parts: str) -> str:
        return ":".join((f"{PREFIX}:{{{shard_of(project, self._shards)}}}:judge", *parts))

    def record_key(self, project: str, event_id: str, fingerprint: str) -> str:
        """Return the key of an answer's call record."""
        return self._key(project, "call", event_id, fingerprint)

    def spend_key(self, project: str, day: date) -> str:
        """Return the key of a project's spend on a day."""
        return self._key(project, "spend", project, day.isoformat())

    async def salt(self) -> str:
        """Return the salt of the sample, drawn by the first judge and then the same for all.

        Raises `RedisError`.
        """
        key = f"{PREFIX}:{{0}}:judge:salt"
        await self._client.set(key, secrets.token_hex(16), nx=True)
        kept: bytes = await self._client.get(key)
        return kept.decode()

    async def reserve(
        self, call: "Call", attempt: int, nano: int, lease_s: float | None = None, waits: "Waits | None" = None
    ) -> Reservation:
        """Reserve money for an attempt, and in the same step queue its answer for a batch.

        Raises `RedisError`.
        """
        lease_ms = int((lease_s or LEASE_S) * 1000)
        arguments: list[str | bytes | int] = [
            call.owner,
            attempt,
            nano,
            self._cap,
            lease_ms,
            self._keep_ms,
            10 * DAY_MS,
            self._total,
        ]
        keys = [call.record, call.spend, call.total]
        if waits is not None:
            keys.append(waits.key)
            arguments += [waits.event_id, waits.data]
        what, *rest = await self._reserve(keys=keys, args=arguments)
        match what:
            case b"done":
                return Reservation("done", score=rest[0])
            case b"busy":
                return Reservation("busy", wait_s=rest[0] / 1000)
            case b"interrupted":
                return Reservation("interrupted", nano=int(rest[0]))
            case b"all_budgets":
                return Reservation("all_budgets")
        return Reservation("ok" if what == b"ok" else "budget")

    def call(self, project: str, event_id: str, fingerprint: str) -> "Call":
        """Return a call to be made now, by this process."""
        today = clock.now().date()
        return Call(self.record_key(project, event_id, fingerprint), self.spend_key(project, today), uuid.uuid4().hex)

    @staticmethod
    def today(call: "Call") -> "Call":
        """Return the call for today: a call that waited past midnight counts to the day of its reservation."""
        return call._replace(spend=f"{call.spend.rpartition(':')[0]}:{clock.now().date().isoformat()}")

    async def pays_for(self, project: str) -> float | None:
        """Return the number of answers that a day's budget pays for, at the cost of today and yesterday.

        None while few answers were paid.
        """
        today = clock.now().date()
        days = [self.call_on(project, day) for day in (today - timedelta(days=1), today)]
        amounts = await asyncio.gather(*(self._client.get(key) for day in days for key in (day.spend, day.paid)))
        spent, paid = (sum(int(each or 0) for each in amounts[place::2]) for place in (0, 1))
        return self._cap / (spent / paid) if paid >= PAID_MIN and spent > 0 else None

    def call_on(self, project: str, day: date) -> "Call":
        """Return the books of a project and day as a call without an owner."""
        return Call("", self.spend_key(project, day), "")

    async def renew(self, calls: Sequence["Call"]) -> None:
        """Renew the leases of calls."""
        for call in calls:
            await self._renew(keys=[call.record], args=[call.owner, int(LEASE_S * 1000)])

    async def settle(self, call: "Call", nano: int, score: bytes) -> bool:
        """Replace the reservation by the cost, and store the score.

        False if another judge took over the answer.
        """
        keys = [call.record, call.spend, call.total, call.paid]
        return bool(await self._settle(keys=keys, args=[call.owner, nano, score, self._keep_ms, 10 * DAY_MS]))

    async def keep(self, call: "Call", score: bytes) -> bool:
        """Store the score of an answer that cost nothing.

        False if another judge is working on it or has judged it.
        """
        return bool(await self._keep(keys=[call.record], args=[score, self._keep_ms]))

    async def release(self, call: "Call") -> None:
        """Release a reservation."""
        await self._release(keys=[call.record, call.spend, call.total], args=[call.owner])

    async def publish_session(self, score: Score, calls: Sequence[str]) -> bool:
        """Publish a score of a session, and empty the records of its calls, by name.

        False for a session that is not in the sample if it was judged by name meanwhile: that score stays. Raises `RedisError`.
        """
        about = (score.project, f"session/{score.event_id}", score.fingerprint)
        keys = [SCORES.key(shard_of(score.project, self._shards)), f"{self.record_key(*about)}:judged"]
        keys += [self.record_key(score.project, name, score.fingerprint) for name in calls]
        judged = int(score.status is not ScoreStatus.NOT_SAMPLED)
        return bool(await self._publish_session(keys=keys, args=[score.model_dump_json(), judged, self._keep_ms]))

    async def known(self, project: str, event_id: str, fingerprint: str) -> bytes | None:
        """Return the score of an answer that is already judged."""
        score: bytes | None = await self._client.hget(self.record_key(project, event_id, fingerprint), "score")
        return score

    async def forget(self, project: str, event_id: str, fingerprint: str) -> bool:
        """Delete the record of an answer, so that it can be re-judged.

        False if a judge is at work on it: it is that judge's to finish.
        """
        return bool(await self._forget(keys=[self.record_key(project, event_id, fingerprint)]))

    async def spent(self, project: str, day: date) -> int:
        """Return the nano-dollars spent and reserved."""
        return int(await self._client.get(self.spend_key(project, day)) or 0)

    @property
    def _window(self) -> list[str]:
        return [f"{PREFIX}:{{0}}:judge:window", f"{PREFIX}:{{0}}:judge:window:tokens"]

    async def take(self, call_id: str, tokens: int, requests_per_minute: int, tokens_per_minute: int) -> float:
        """Return 0 if a call may start now, else the seconds until the next check."""
        waits = await self._take(keys=self._window, args=[call_id, tokens, requests_per_minute, tokens_per_minute])
        return int(waits) / 1000

    async def learn(
        self, call_id: str, *, tokens: int | None = None, pause_s: float = 0.0, limit: int | None = None
    ) -> None:
        """Share a reply's limits with all judges: tokens used, a requested pause, the limit of requests."""
        pause_ms = int(min(pause_s, PAUSE_MOST_S) * 1000)
        arguments = [call_id, "" if tokens is None else tokens, pause_ms, "" if limit is None else limit]
        await self._learn(keys=self._window[1:], args=arguments)

    async def traffic(self, project: str, added: dict[date, int]) -> dict[date, int]:
        """Count answers of a project by day. Returns the earlier counts of the last days."""
        key = self._key(project, "traffic", project)
        counts = {date.fromisoformat(day.decode()): int(n) for day, n in (await self._client.hgetall(key)).items()}
        if added:
            pipeline = self._client.pipeline(transaction=False)
            for day, n in added.items():
                pipeline.hincrby(key, day.isoformat(), n)
            oldest = max({*counts, *added}) - timedelta(days=REMEMBERED_DAYS + 7)
            if gone := [day.isoformat() for day in counts if day < oldest]:
                pipeline.hdel(key, *gone)
            await pipeline.execute()
        return counts


class Waits(NamedTuple):
    """A queued answer: the hash, the field and the value."""

    key: str
    event_id: str
    data: bytes


class Call(NamedTuple):
    """Call for one answer: its record, the spend that it counts to, and its owner."""

    record: str
    spend: str
    owner: str

    @property
    def total(self) -> str:
        """Key of the spend of all projects on its day."""
        return f"{self.spend.partition(':spend:')[0]}:total:{self.spend.rpartition(':')[2]}"

    @property
    def paid(self) -> str:
        """Key of the number of paid answers of the project on its day."""
        before, _, after = self.spend.partition(":spend:")
        return f"{before}:paid:{after}"


#: Statuses of sampled answers: each is published once.
_RECORDED = frozenset(status.value for status in ScoreStatus if status is not ScoreStatus.NOT_SAMPLED)


def publish_finish(client: Client, ledger: Ledger, group: str, shard: int) -> Finish:
    """Return the step that acknowledges entries of `events` and publishes each score once, atomically."""
    script = guarded(client, PUBLISH)

    async def finish(outcomes: Sequence[Outcome], redis: str) -> int:
        done = 0
        for start in range(0, len(outcomes), 100):
            keys = [EVENTS.key(shard), SCORES.key(shard)]
            arguments: list[str | bytes | int] = [redis, group, ledger._keep_ms]  # noqa: SLF001
            for outcome in outcomes[start : start + 100]:
                place = 0
                if outcome.event is not None:
                    score = orjson.loads(outcome.event)
                    keys.append(ledger.record_key(score["project"], score["event_id"], score["fingerprint"]))
                    # A copy that arrives when the share is lower might not be sampled; it must not replace the first
                    # score.
                    place = len(keys) if score["status"] in _RECORDED else -len(keys)
                arguments += [outcome.entry_id, outcome.event or b"", place]
            done += int(await script(keys=keys, args=arguments))
        return done

    return finish


def ledger_of(client: Client, settings: Settings) -> Ledger:
    """The books, by the settings."""
    return Ledger(
        client,
        settings.redis.shards,
        cap_nano=int(settings.judge.budget_usd_per_day * NANO),
        record_days=settings.judge.record_days,
        total_nano=int(settings.judge.budget_usd_per_day_all_projects * NANO),
    )
