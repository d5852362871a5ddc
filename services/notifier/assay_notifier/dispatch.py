"""Delivers each transition to each channel once, in order; retries; gives up after a day.

Channels are independent: one that is down does not delay another. An accepted notice is recorded before its entry is
acknowledged, so neither a restart nor a second replica repeats it. One gap remains that no protocol can close: if the
notifier dies between the acceptance and the record, the receiver gets the notice again. The repeated notice has the
same id (`webhook-id`, or the labels in Alertmanager), so the receiver can recognize it.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import stamina
from pydantic import ValidationError
from redis.exceptions import RedisError

from assay_notifier.channel import Channel, NotDeliveredError
from assay_notifier.disarm import disarmed
from assay_notifier.notice import Notice
from assay_notifier.records import Pair, Records
from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.entries import Entry, Outcome, Process, acquit, failure_of
from assay_schema.alerts import Alert
from assay_schema.failures import Failure, Reason
from assay_schema.ids import entry_parts

log = logging.getLogger(__name__)

T = TypeVar("T")

STAGE = "notifier"
#: Immediate attempts before a channel is paused.
TRIES = 3
#: The first and the longest pause of a channel, in seconds; each is twice the previous one.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
#: Seconds that Redis may be away before entries are left pending.
REDIS_PATIENCE_S = 20.0
#: Notices remembered by this process in case Redis loses its last second: more than can be unacknowledged.
REMEMBERED = 10_000


@dataclass(frozen=True)
class Waiting:
    """A transition to be sent, and its position in the stream."""

    entry: Entry
    notice: Notice

    @property
    def alert(self) -> Alert:
        return self.notice.alert

    @property
    def place(self) -> tuple[int, int]:
        return entry_parts(self.entry.id)


@dataclass
class Way:
    """State of a channel."""

    channel: Channel
    #: Reason of its last failure; empty while it is healthy.
    trouble: str = ""
    pause_s: float = FIRST_PAUSE_S
    next_try: float = 0.0
    #: Entries it has not accepted, by shard and position, with the time they were last seen here; later ones wait for
    #: them.
    behind: dict[tuple[int, tuple[int, int]], float] = field(default_factory=dict)


class Dispatcher:
    """Delivers the alerts of all shards."""

    def __init__(
        self,
        channels: Iterable[Channel],
        *,
        give_up_s: float,
        forget_behind_s: float,
        time_s: Callable[[], float] = lambda: clock.now_ms() / 1_000,
    ) -> None:
        # we log once when a channel's state changes, not at every attempt
        stamina.instrumentation.set_on_retry_hooks([])
        self.ways = [Way(channel) for channel in channels]
        for way in self.ways:
            metrics.CHANNEL_UP.labels(way.channel.name).set(1)
        self._give_up_s = give_up_s
        self._forget_behind_s = forget_behind_s
        self._time_s = time_s
        self._remembered: dict[Pair, None] = {}

    def process(self, shard: int, records: Records) -> Process:
        """Return the handler of one shard."""

        async def notify(entries: Sequence[Entry]) -> list[Outcome]:
            alerts, outcomes = _parsed(entries)
            await acquit()  # a receiver may be slow
            try:
                waiting = await _patiently(lambda: _noted(records, alerts))
                pairs = await _patiently(lambda: self._taken(records, waiting))
                # A restarted publisher may have published a transition twice.
                distinct = list({each.alert.transition_id: each for each in reversed(waiting)}.values())[::-1]
                unsent = {
                    way.channel.name: [each for each in distinct if _pair(each.alert, way) not in pairs]
                    for way in self.ways
                }
                given_up = await asyncio.gather(
                    *(self._serve(way, unsent[way.channel.name], shard, records) for way in self.ways)
                )
            except RedisError as error:
                log.warning("redis is away; notices are waiting", extra={"error_class": type(error).__name__})
                return outcomes
            hopeless: dict[str, list[str]] = {}
            for way, ids in zip(self.ways, given_up, strict=True):
                for entry_id in ids:
                    hopeless.setdefault(entry_id, []).append(way.channel.name)
            for each in waiting:
                left = {way.channel.name for way in self.ways if _pair(each.alert, way) not in self._remembered}
                if not left:
                    outcomes.append(Outcome(each.entry.id))
                elif left <= set(hopeless.get(each.entry.id, ())):
                    outcomes.append(Outcome(each.entry.id, failure=_given_up(each.entry, sorted(left))))
            return outcomes

        return notify

    async def _taken(self, records: Records, waiting: Sequence[Waiting]) -> set[Pair]:
        """Return the notices that were already accepted, by this process or another."""
        wanted = [_pair(each.alert, way) for each in waiting for way in self.ways]
        accepted = await records.taken(wanted)
        self._remember(accepted)
        ours = {pair for pair in wanted if pair in self._remembered}
        if lost := ours - accepted:
            await records.take(lost)  # Redis died before it stored them
        return ours

    async def _serve(self, way: Way, waiting: Sequence[Waiting], shard: int, records: Records) -> list[str]:
        """Send the pending notices of one channel. Returns the entries that are given up for it."""
        by_alert = {each.alert.transition_id: each for each in waiting}
        given_up = []
        for group in way.channel.groups([each.notice for each in waiting]):
            members = [by_alert[notice.alert.transition_id] for notice in group]
            places = [(shard, each.place) for each in members]
            if time.monotonic() < way.next_try or self._must_wait(way, min(places)):
                way.behind |= dict.fromkeys(places, time.monotonic())
                continue
            try:
                await _told(way.channel, group)
            except NotDeliveredError as error:
                self._failed(way, error)
                way.behind |= dict.fromkeys(places, time.monotonic())
                old = [each for each in members if self._time_s() - each.place[0] / 1000 > self._give_up_s]
                given_up += [each.entry.id for each in old]
                for each in old:
                    way.behind.pop((shard, each.place), None)
                metrics.NOTICES.labels(way.channel.name, "given_up").inc(len(old))
                continue
            pairs = [_pair(notice.alert, way) for notice in group]
            self._remember(pairs)
            self._took(way, group)
            for place in places:
                way.behind.pop(place, None)
            await _patiently(partial(records.take, pairs))
        return given_up

    def _must_wait(self, way: Way, place: tuple[int, tuple[int, int]]) -> bool:
        """True if an earlier entry must be sent first.

        An entry that was not seen for a long time belongs to another replica by now.
        """
        now = time.monotonic()
        way.behind = {each: seen for each, seen in way.behind.items() if now - seen < self._forget_behind_s}
        shard = place[0]
        return any(each < place for each in way.behind if each[0] == shard)

    def _failed(self, way: Way, error: NotDeliveredError) -> None:
        name = way.channel.name
        metrics.NOTICES.labels(name, "failed").inc()
        metrics.CHANNEL_UP.labels(name).set(0)
        if error.why != way.trouble:
            log.error("%s does not accept notices: %s; they wait and will be retried", name, error.why)
        way.trouble = error.why
        pause = max(error.retry_after_s, way.pause_s * random.uniform(0.5, 1))  # noqa: S311  # jitter, not a secret
        way.next_try = time.monotonic() + pause
        way.pause_s = min(LONGEST_PAUSE_S, way.pause_s * 2)

    def _took(self, way: Way, group: Sequence[Notice]) -> None:
        name = way.channel.name
        metrics.NOTICES.labels(name, "sent").inc()
        metrics.CHANNEL_UP.labels(name).set(1)
        for notice in group:
            metrics.ALERT_TO_NOTICE.labels(name).observe(max(0.0, self._time_s() - notice.alert.at.timestamp()))
        if way.trouble:
            log.info("%s accepts notices again", name)
        way.trouble, way.pause_s, way.next_try = "", FIRST_PAUSE_S, 0.0

    def _remember(self, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            self._remembered.pop(pair, None)
            self._remembered[pair] = None
        while len(self._remembered) > REMEMBERED:
            del self._remembered[next(iter(self._remembered))]


async def _patiently(step: Callable[[], Awaitable[T]]) -> T:
    """Retry a step in Redis for a while; notices sent meanwhile are remembered here.

    Raises the last `RedisError`.
    """
    deadline = time.monotonic() + REDIS_PATIENCE_S
    while True:
        try:
            return await step()
        except RedisError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(random.uniform(0.1, 0.5))  # noqa: S311


async def _told(channel: Channel, group: Sequence[Notice]) -> None:
    """Send a notice, with a few immediate retries if a retry may help."""
    async for attempt in stamina.retry_context(
        on=lambda error: isinstance(error, NotDeliveredError) and error.passing and not error.retry_after_s,
        attempts=TRIES,
        timeout=15.0,
        wait_initial=0.1,
        wait_max=2.0,
    ):
        with attempt:
            await channel.send(group)


def _parsed(entries: Sequence[Entry]) -> tuple[list[tuple[Entry, Alert]], list[Outcome]]:
    """Parse alerts in the stream's order, and return invalid entries separately."""
    alerts, refused = [], []
    for entry in sorted(entries, key=lambda each: entry_parts(each.id)):
        try:
            alerts.append((entry, disarmed(Alert.model_validate_json(entry.data))))
        except ValidationError as error:
            problem = error.errors(include_input=False, include_context=False, include_url=False)[0]
            where = ".".join(str(part) for part in problem["loc"])
            detail = f"not an alert: {where} {problem['type']}"
            failure = failure_of(entry, STAGE, Reason.CHECK_VIOLATION, problem["type"], detail)
            refused.append(Outcome(entry.id, failure=failure))
    return alerts, refused


async def _noted(records: Records, alerts: Sequence[tuple[Entry, Alert]]) -> list[Waiting]:
    """Record all alerts before any is sent, so that a renewed alert is never older than a sent one."""
    return [Waiting(entry, await records.note(alert)) for entry, alert in alerts]


def _given_up(entry: Entry, channels: Sequence[str]) -> Failure:
    return failure_of(
        entry,
        STAGE,
        Reason.OTHER,
        "NotDelivered",
        f"{', '.join(channels)} did not accept the notice within notifier.give_up_h; see assay dead list --stage notifier",
    )


def _pair(alert: Alert, way: Way) -> Pair:
    return str(alert.transition_id), way.channel.name
