"""Money, limits and what is known of each answer, in Redis: shared by all judges, right whatever dies in between.

Before a call its upper bound is set aside; after it the real cost takes that place. Both are one atomic step, so the day's spend, with
everything that is set aside, is never above the cap. What a dead judge had set aside stays spent: its call may have been billed.
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
from assay_judge.scripts import KEEP, LEARN, PUBLISH, RELEASE, RENEW, RESERVE, SETTLE, TAKE
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_runtime.delivery import Finish
from assay_runtime.entries import Outcome
from assay_runtime.same_redis import guarded
from assay_schema.scores import ScoreStatus
from assay_schema.settings import Settings
from assay_schema.streams import EVENTS, PREFIX, SCORES, shard_of

DAY_MS = 86_400_000
#: How long a judge that shows no life is taken to be at work, and how often it shows that it lives.
LEASE_S, RENEW_S = 30.0, 8.0
#: Longest pause that a reply's header may ask for: an hour's would look like a hang.
PAUSE_MOST_S = 60.0
#: More nano-dollars than anybody spends; still exact in Lua.
_UNLIMITED = 2**52
#: Paid answers that tell what one costs.
PAID_MIN = 20


class Answered(NamedTuple):
    """What came of asking for money. `score`: of an answer that is judged already; `nano`: what an interrupted call had set aside."""

    what: Literal["ok", "budget", "all_budgets", "done", "busy", "interrupted"]
    score: bytes = b""
    nano: int = 0
    wait_s: float = 0.0


class Ledger:
    """The books of one judge process. `cap_nano`: of a project; `total_nano`: of all projects, of which each shard has its part."""

    def __init__(
        self, client: Client, shards: int, *, cap_nano: int, record_days: float, total_nano: int | None = None
    ) -> None:
        self._client, self._shards, self._cap = client, shards, cap_nano
        self._total = _UNLIMITED if total_nano is None else total_nano // shards
        self._keep_ms = int(record_days * DAY_MS)
        self._keep = client.register_script(KEEP)
        scripts = (RESERVE, RENEW, SETTLE, RELEASE, TAKE, LEARN)
        self._reserve, self._renew, self._settle, self._release, self._take, self._learn = (
            client.register_script(script) for script in scripts
        )

    def _key(self, project: str, *parts: str) -> str:
        return ":".join((f"{PREFIX}:{{{shard_of(project, self._shards)}}}:judge", *parts))

    def record_key(self, project: str, event_id: str, fingerprint: str) -> str:
        """The key of an answer's call record."""
        return self._key(project, "call", event_id, fingerprint)

    def spend_key(self, project: str, day: date) -> str:
        """The key of a project's spend on a day."""
        return self._key(project, "spend", project, day.isoformat())

    async def salt(self) -> str:
        """What the sample is drawn with: drawn by the first judge that asks, and the same for all from then on. Raises `RedisError`."""
        key = f"{PREFIX}:{{0}}:judge:salt"
        await self._client.set(key, secrets.token_hex(16), nx=True)
        kept: bytes = await self._client.get(key)
        return kept.decode()

    async def reserve(
        self, call: "Call", attempt: int, nano: int, lease_s: float | None = None, waits: "Waits | None" = None
    ) -> Answered:
        """Set money aside for a try of a call, and in the same step let its answer wait for a batch. Raises `RedisError`."""
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
                return Answered("done", score=rest[0])
            case b"busy":
                return Answered("busy", wait_s=rest[0] / 1000)
            case b"interrupted":
                return Answered("interrupted", nano=int(rest[0]))
            case b"all_budgets":
                return Answered("all_budgets")
        return Answered("ok" if what == b"ok" else "budget")

    def call(self, project: str, event_id: str, fingerprint: str) -> "Call":
        """A call to be made now, by this process."""
        today = clock.now().date()
        return Call(self.record_key(project, event_id, fingerprint), self.spend_key(project, today), uuid.uuid4().hex)

    @staticmethod
    def today(call: "Call") -> "Call":
        """A call that waited, perhaps over midnight: it counts to the day in which its money is set aside."""
        return call._replace(spend=f"{call.spend.rpartition(':')[0]}:{clock.now().date().isoformat()}")

    async def pays_for(self, project: str) -> float | None:
        """How many answers a day's budget of a project pays for, by what they cost today and yesterday; None while few were paid."""
        today = clock.now().date()
        days = [self.call_on(project, day) for day in (today - timedelta(days=1), today)]
        found = await asyncio.gather(*(self._client.get(key) for day in days for key in (day.spend, day.paid)))
        spent, paid = (sum(int(each or 0) for each in found[place::2]) for place in (0, 1))
        return self._cap / (spent / paid) if paid >= PAID_MIN and spent > 0 else None

    def call_on(self, project: str, day: date) -> "Call":
        """The books of a project and day, as a call of nobody's."""
        return Call("", self.spend_key(project, day), "")

    async def renew(self, calls: Sequence["Call"]) -> None:
        """Show that calls are still at work."""
        for call in calls:
            await self._renew(keys=[call.record], args=[call.owner, int(LEASE_S * 1000)])

    async def settle(self, call: "Call", nano: int, score: bytes) -> bool:
        """Put the cost in the place of what was set aside, and keep the score. False if another judge took the answer over."""
        keys = [call.record, call.spend, call.total, call.paid]
        return bool(await self._settle(keys=keys, args=[call.owner, nano, score, self._keep_ms, 10 * DAY_MS]))

    async def keep(self, call: "Call", score: bytes) -> bool:
        """Keep the score of an answer that cost nothing. False if another judge is at it, or has judged it."""
        return bool(await self._keep(keys=[call.record], args=[score, self._keep_ms]))

    async def release(self, call: "Call") -> None:
        """Give back what was set aside."""
        await self._release(keys=[call.record, call.spend, call.total], args=[call.owner])

    async def known(self, project: str, event_id: str, fingerprint: str) -> bytes | None:
        """The score of an answer that is judged already."""
        score: bytes | None = await self._client.hget(self.record_key(project, event_id, fingerprint), "score")
        return score

    async def forget(self, project: str, event_id: str, fingerprint: str) -> None:
        """Let an answer be judged anew."""
        await self._client.delete(self.record_key(project, event_id, fingerprint))

    async def spent(self, project: str, day: date) -> int:
        """Nano-dollars spent and set aside."""
        return int(await self._client.get(self.spend_key(project, day)) or 0)

    @property
    def _window(self) -> list[str]:
        return [f"{PREFIX}:{{0}}:judge:window", f"{PREFIX}:{{0}}:judge:window:tokens"]

    async def take(self, call_id: str, tokens: int, requests_per_minute: int, tokens_per_minute: int) -> float:
        """0 when a call may begin now, else seconds after which to ask again."""
        waits = await self._take(keys=self._window, args=[call_id, tokens, requests_per_minute, tokens_per_minute])
        return int(waits) / 1000

    async def learn(
        self, call_id: str, *, tokens: int | None = None, pause_s: float = 0.0, limit: int | None = None
    ) -> None:
        """Tell all judges what a reply said: tokens used, a pause it asked for, the limit of requests."""
        pause_ms = int(min(pause_s, PAUSE_MOST_S) * 1000)
        arguments = [call_id, "" if tokens is None else tokens, pause_ms, "" if limit is None else limit]
        await self._learn(keys=self._window[1:], args=arguments)

    async def traffic(self, project: str, added: dict[date, int]) -> dict[date, int]:
        """Count answers of a project by day; returns how many each of the last days had before."""
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
    """An answer that waits for its batch: the hash it waits in, its field and its value."""

    key: str
    event_id: str
    data: bytes


class Call(NamedTuple):
    """One answer's call: its record, the spend it counts to, and who makes it."""

    record: str
    spend: str
    owner: str

    @property
    def total(self) -> str:
        """The key of what all projects spend on its day."""
        return f"{self.spend.partition(':spend:')[0]}:total:{self.spend.rpartition(':')[2]}"

    @property
    def paid(self) -> str:
        """The key of how many answers of the project were paid on its day."""
        before, _, after = self.spend.partition(":spend:")
        return f"{before}:paid:{after}"


#: States whose answers were sampled: each is published once.
_RECORDED = frozenset(status.value for status in ScoreStatus if status is not ScoreStatus.NOT_SAMPLED)


def publish_finish(client: Client, ledger: Ledger, group: str, shard: int) -> Finish:
    """Finish entries of `events`: acknowledge them and publish their scores, atomically and each score once."""
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
                    # A copy that comes when the share is lower may not be sampled: it must not replace the score of the first.
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
