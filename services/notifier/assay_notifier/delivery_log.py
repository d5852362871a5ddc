"""Delivery log of one shard in Redis: the accepted notices, and the latest alert of each episode."""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from assay_notifier.disarm import disarmed
from assay_notifier.notice import SEVERITY, Notice, is_over, noticed
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_runtime.lua import script
from assay_schema.alerts import Alert, Severity
from assay_schema.streams import episodes_key, notices_key

#: The id of a transition, and the name of a channel.
DeliveryKey = tuple[str, str]
#: Days that an accepted notice is remembered: longer than an entry can wait in its stream or as a dead letter.
REMEMBER_DAYS = 30
#: Days that an episode is remembered after its end, so that a late transition does not reopen it.
KEEP_OVER_DAYS = 7
#: Transitions searched for the previous severity.
LOOKED_BACK = 50
_DAY_S = 86_400

#: Store the alert unless a later transition of its episode is stored.
NOTE = script("assay_notifier", "note")


class DeliveryLog:
    """The delivery log of one shard. Every method may raise `RedisError`."""

    def __init__(self, client: Client, shard: int) -> None:
        self._client = client
        self._notices = notices_key(shard)
        self._episodes = episodes_key(shard)
        self._store = client.register_script(NOTE)

    async def accepted(self, keys: Sequence[DeliveryKey]) -> set[DeliveryKey]:
        """Return those of these notices that their channel has accepted."""
        if not keys:
            return set()
        scores = await self._client.zmscore(self._notices, [_member(key) for key in keys])
        return {key for key, score in zip(keys, scores, strict=True) if score is not None}

    async def mark_accepted(self, keys: Iterable[DeliveryKey]) -> None:
        """Record that these notices were accepted."""
        now = clock.now_ms() / 1_000
        await self._client.zadd(self._notices, {_member(key): now for key in keys})

    async def store(self, alert: Alert) -> Notice:
        """Store an alert if it is the latest of its episode. Returns its notice."""
        severity = SEVERITY.get(alert.state, "")
        arguments = [str(alert.alert_id), alert.sequence, alert.model_dump_json(), str(severity)]
        await self._store(keys=[self._episodes], args=arguments)
        return await self._notice(alert)

    async def latest(self) -> list[Notice]:
        """Return the latest transition of every remembered episode."""
        stored = await self._client.hgetall(self._episodes)
        alerts = (_kept(text) for key, text in stored.items() if b"/" not in key)
        return [await self._notice(alert) for alert in alerts if alert]

    async def _notice(self, alert: Alert) -> Notice:
        places = range(max(1, alert.sequence - LOOKED_BACK), alert.sequence)
        kept = (
            await self._client.hmget(self._episodes, [f"{alert.alert_id}/{place}" for place in places])
            if places
            else []
        )
        return noticed(
            alert, {place: Severity(text.decode()) for place, text in zip(places, kept, strict=True) if text}
        )

    async def forget(self) -> None:
        """Remove old records."""
        now = clock.now_ms() / 1_000
        await self._client.zremrangebyscore(self._notices, "-inf", now - REMEMBER_DAYS * _DAY_S)
        for notice in await self.latest():
            alert = notice.alert
            if is_over(alert) and alert.at.timestamp() < now - KEEP_OVER_DAYS * _DAY_S:
                places = [f"{alert.alert_id}/{place}" for place in range(1, alert.sequence + 1)]
                await self._client.hdel(self._episodes, str(alert.alert_id), *places)


def _kept(text: bytes) -> Alert | None:
    """Parse an alert stored by this or an earlier version; None if the contract no longer allows it."""
    try:
        return disarmed(Alert.model_validate_json(text))
    except ValidationError:
        return None


def _member(key: DeliveryKey) -> str:
    return "/".join(key)
