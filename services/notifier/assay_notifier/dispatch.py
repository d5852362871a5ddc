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
from assay_notifier.delivery_log import DeliveryKey, DeliveryLog
from assay_notifier.disarm import disarmed
from assay_notifier.log_channel import LogChannel
from assay_notifier.notice import Notice
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
ATTEMPTS = 3
#: The first and the longest pause of a channel, in seconds; each is twice the previous one.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
#: Seconds that Redis may be away before entries are left pending.
REDIS_WAIT_S = 20.0
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
class ChannelState:
    """State of a channel."""

    channel: Channel
    #: Reason of its last failure; empty while it is healthy.
    error: str = ""
    pause_s: float = FIRST_PAUSE_S
    next_try: float = 0.0
    #: Entries it has not accepted, by shard and position, with the time they were last seen here; later ones wait for
    #: them.
    behind: dict[tuple[int, tuple[int, int]], float] = field(default_factory=dict)

    @property
    def is_healthy(self) -> bool:
        """True unless the last notice was not accepted."""
        return not self.error


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
        self.states = [ChannelState(channel) for channel in channels]
        for state in self.states:
            metrics.CHANNEL_UP.labels(state.channel.name).set(1)
        self._give_up_s = give_up_s
        self._forget_behind_s = forget_behind_s
        self._time_s = time_s
        self._remembered: dict[DeliveryKey, None] = {}

    def notes(self) -> list[str]:
        """Return what to fix: channels that do not accept notices, or that only the log is there."""
        found = [f"{state.channel.name} does not accept notices: {state.error}" for state in self.states if state.error]
        if all(isinstance(state.channel, LogChannel) for state in self.states):
            found.append("no channel is configured under [notifier]: alerts are in the log only")
        return found

    def process(self, shard: int, delivery_log: DeliveryLog) -> Process:
        """Return the handler of one shard."""

        async def notify(entries: Sequence[Entry]) -> list[Outcome]:
            alerts, outcomes = _parsed(entries)
            await acquit()  # a receiver may be slow
            try:
                waiting = await _retry_redis(lambda: _stored(delivery_log, alerts))
                keys = await _retry_redis(lambda: self._already_accepted(delivery_log, waiting))
                # A restarted publisher may have published a transition twice.
                distinct = list({each.alert.transition_id: each for each in reversed(waiting)}.values())[::-1]
                unsent = {
                    state.channel.name: [each for each in distinct if _key_of(each.alert, state) not in keys]
                    for state in self.states
                }
                given_up = await asyncio.gather(
                    *(self._serve(state, unsent[state.channel.name], shard, delivery_log) for state in self.states)
                )
            except RedisError as error:
                log.warning("redis is away; notices are waiting", extra={"error_class": type(error).__name__})
                return outcomes
            hopeless: dict[str, list[str]] = {}
            for state, ids in zip(self.states, given_up, strict=True):
                for entry_id in ids:
                    hopeless.setdefault(entry_id, []).append(state.channel.name)
            for each in waiting:
                left = {
                    state.channel.name for state in self.states if _key_of(each.alert, state) not in self._remembered
                }
                if not left:
                    outcomes.append(Outcome(each.entry.id))
                elif left <= set(hopeless.get(each.entry.id, ())):
                    outcomes.append(Outcome(each.entry.id, failure=_given_up(each.entry, sorted(left))))
            return outcomes

        return notify

    async def _already_accepted(self, delivery_log: DeliveryLog, waiting: Sequence[Waiting]) -> set[DeliveryKey]:
        """Return the notices that were already accepted, by this process or another."""
        wanted = [_key_of(each.alert, state) for each in waiting for state in self.states]
        accepted = await delivery_log.accepted(wanted)
        self._remember(accepted)
        ours = {key for key in wanted if key in self._remembered}
        if lost := ours - accepted:
            await delivery_log.mark_accepted(lost)  # Redis died before it stored them
        return ours

    async def _serve(
        self, state: ChannelState, waiting: Sequence[Waiting], shard: int, delivery_log: DeliveryLog
    ) -> list[str]:
        """Send the pending notices of one channel. Returns the entries that are given up for it."""
        by_alert = {each.alert.transition_id: each for each in waiting}
        given_up = []
        for group in state.channel.groups([each.notice for each in waiting]):
            members = [by_alert[notice.alert.transition_id] for notice in group]
            places = [(shard, each.place) for each in members]
            if time.monotonic() < state.next_try or self._must_wait(state, min(places)):
                state.behind |= dict.fromkeys(places, time.monotonic())
                continue
            try:
                await _send(state.channel, group)
            except NotDeliveredError as error:
                self._rejected(state, error)
                state.behind |= dict.fromkeys(places, time.monotonic())
                old = [each for each in members if self._time_s() - each.place[0] / 1000 > self._give_up_s]
                given_up += [each.entry.id for each in old]
                for each in old:
                    state.behind.pop((shard, each.place), None)
                metrics.NOTICES.labels(state.channel.name, "given_up").inc(len(old))
                continue
            keys = [_key_of(notice.alert, state) for notice in group]
            self._remember(keys)
            self._accepted(state, group)
            for place in places:
                state.behind.pop(place, None)
            await _retry_redis(partial(delivery_log.mark_accepted, keys))
        return given_up

    def _must_wait(self, state: ChannelState, place: tuple[int, tuple[int, int]]) -> bool:
        """True if an earlier entry must be sent first.

        An entry that was not seen for a long time belongs to another replica by now.
        """
        now = time.monotonic()
        state.behind = {each: seen for each, seen in state.behind.items() if now - seen < self._forget_behind_s}
        shard = place[0]
        return any(each < place for each in state.behind if each[0] == shard)

    def _rejected(self, state: ChannelState, error: NotDeliveredError) -> None:
        name = state.channel.name
        metrics.NOTICES.labels(name, "failed").inc()
        metrics.CHANNEL_UP.labels(name).set(0)
        if error.why != state.error:
            log.error("%s does not accept notices: %s; they wait and will be retried", name, error.why)
        state.error = error.why
        pause = max(error.retry_after_s, state.pause_s * random.uniform(0.5, 1))  # noqa: S311  # jitter, not a secret
        state.next_try = time.monotonic() + pause
        state.pause_s = min(LONGEST_PAUSE_S, state.pause_s * 2)

    def _accepted(self, state: ChannelState, group: Sequence[Notice]) -> None:
        name = state.channel.name
        metrics.NOTICES.labels(name, "sent").inc()
        metrics.CHANNEL_UP.labels(name).set(1)
        for notice in group:
            metrics.ALERT_TO_NOTICE.labels(name).observe(max(0.0, self._time_s() - notice.alert.at.timestamp()))
        if not state.is_healthy:
            log.info("%s accepts notices again", name)
        state.error, state.pause_s, state.next_try = "", FIRST_PAUSE_S, 0.0

    def _remember(self, keys: Iterable[DeliveryKey]) -> None:
        for key in keys:
            self._remembered.pop(key, None)
            self._remembered[key] = None
        while len(self._remembered) > REMEMBERED:
            del self._remembered[next(iter(self._remembered))]


async def _retry_redis(step: Callable[[], Awaitable[T]]) -> T:
    """Retry a step in Redis for a while; notices sent meanwhile are remembered here.

    Raises the last `RedisError`.
    """
    retrying = stamina.AsyncRetryingCaller(attempts=None, timeout=REDIS_WAIT_S, wait_initial=0.1, wait_max=0.5)
    return await retrying(RedisError, step)


async def _send(channel: Channel, group: Sequence[Notice]) -> None:
    """Send a notice, with a few immediate retries if a retry may help."""
    async for attempt in stamina.retry_context(
        on=lambda error: isinstance(error, NotDeliveredError) and error.passing and not error.retry_after_s,
        attempts=ATTEMPTS,
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


async def _stored(delivery_log: DeliveryLog, alerts: Sequence[tuple[Entry, Alert]]) -> list[Waiting]:
    """Record all alerts before any is sent, so that a renewed alert is never older than a sent one."""
    return [Waiting(entry, await delivery_log.store(alert)) for entry, alert in alerts]


def _given_up(entry: Entry, channels: Sequence[str]) -> Failure:
    return failure_of(
        entry,
        STAGE,
        Reason.OTHER,
        "NotDelivered",
        f"{', '.join(channels)} did not accept the notice within notifier.give_up_h; see assay dead list --stage notifier",
    )


def _key_of(alert: Alert, state: ChannelState) -> DeliveryKey:
    return str(alert.transition_id), state.channel.name
