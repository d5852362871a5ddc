"""State and alerts in Redis, changed atomically with the acknowledgement of their entries.

Every commit names the version of the state it is based on. A commit based on an older version changes nothing: the
state is read again, and the entries are counted again unless another replica has finished them meanwhile. An entry
therefore counts once, and a transition is published once, however often entries are redelivered and however many
replicas run.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from assay_drift.embedding import Embed
from assay_drift.monitor import Monitor
from assay_runtime import metrics
from assay_runtime.connection import Client
from assay_runtime.entries import Outcome
from assay_runtime.lua import script
from assay_runtime.same_redis import guarded
from assay_schema.settings import DriftSettings
from assay_schema.streams import (
    ALERTS,
    FAILURES,
    Stream,
    acknowledged_key,
    calibration_key,
    drift_key,
    drift_seen_key,
)

GROUP = "drift"
VERSION = b"version"
#: Samples that are remembered, so that a sample published twice counts once.
SEEN = 200_000
#: Commits lost to another replica before the entries are left for redelivery.
_TRIES = 50

#: Count entries, publish their transitions and acknowledge them, unless another replica committed first.
COMMIT = script("assay_drift", "commit")


@dataclass(frozen=True, slots=True)
class Sample(Outcome):
    """An entry with its sample. `key` identifies the sample, whichever entry it comes in."""

    key: bytes = b""
    at_ms: float = 0.0
    content: Any = None


Work = Callable[[Monitor, Sequence[Sample]], None]


class ShardState:
    """State of one shard, cached in memory until another replica changes it."""

    def __init__(
        self, client: Client, settings: DriftSettings, shard: int, shards: int, embed: tuple[str, Embed]
    ) -> None:
        self._client = client
        self._settings = settings
        self._shard = shard
        self._shards = shards
        self._embed = embed
        self._script = guarded(client, COMMIT)
        self._lock = asyncio.Lock()
        self._monitor: Monitor | None = None
        self._version = b"0"
        self._redis = ""
        self._calibration: Mapping[bytes, bytes] = {}

    async def finish(self, stream: Stream, outcomes: Sequence[Outcome], redis: str, work: Work) -> int:
        """Count and acknowledge entries from this Redis server.

        Returns the number of entries that were still ours to finish. Raises `OtherRedisError`.
        """
        async with self._lock:
            # a server that lost the end of its log may reach the same version with a different state
            if redis != self._redis:
                self._monitor, self._redis = None, redis
            left = list(outcomes)
            for _ in range(_TRIES):
                if not left:
                    return 0
                monitor = await self._loaded()
                samples = await self._unseen(left)
                self._monitor = None  # until the next write is confirmed
                work(monitor, samples)
                answer = await self._commit(monitor, stream.key(self._shard), redis, left, samples, ())
                if answer[0] == b"ok":
                    return len(left)
                gone = {found.decode() for found in answer[1:]}
                left = [outcome for outcome in left if outcome.entry_id not in gone]
            return 0  # they stay pending and are redelivered

    async def tick(self, work: Callable[[Monitor], None], wall_ms: float) -> None:
        """Apply the work that needs no entries: the passing of time and acknowledgements."""
        async with self._lock:
            asked = await self._client.hgetall(acknowledged_key(self._shard))
            names = {name.decode(): _actor_in(value) for name, value in asked.items()}
            self._calibration = await self._client.hgetall(calibration_key(self._shard))
            for _ in range(_TRIES):
                monitor = await self._loaded()
                self._monitor = None
                done = monitor.acknowledge(names, wall_ms, names) if names else []
                work(monitor)
                answer = await self._commit(monitor, drift_key(self._shard), "", (), (), done)
                if answer[0] == b"ok":
                    shown: dict[tuple[str, str], float] = {}
                    for (project, metric), evidence in monitor.evidence().items():
                        labels = metrics.project_label(project), metric
                        shown[labels] = max(evidence, shown.get(labels, evidence))
                    for labels, evidence in shown.items():
                        metrics.EVIDENCE.labels(*labels).set(evidence)
                    return

    async def _loaded(self) -> Monitor:
        if self._monitor is None:
            fields = await self._client.hgetall(drift_key(self._shard))
            self._version = fields.pop(VERSION, b"0")
            self._monitor = Monitor(
                self._settings,
                {name.decode(): data for name, data in fields.items()},
                calibrated=self._is_calibrated,
                embed=self._embed,
                shard=self._shard,
                shards=self._shards,
            )
        return self._monitor

    def _is_calibrated(self, project: str, fingerprint: str, metric: str) -> bool:
        stored = self._calibration.get(f"{project}/{fingerprint}/{metric}".encode())
        if stored is None:
            return False
        try:
            told, settings = orjson.loads(stored), self._settings
            return bool(
                told["labels"] >= settings.calibration_labels
                and told["bad"] >= settings.calibration_bad
                and told["kappa_low"] >= settings.kappa_min
                and told["tnr_low"] >= settings.tnr_min
            )
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return False

    async def _unseen(self, outcomes: Sequence[Outcome]) -> list[Sample]:
        samples = {each.key: each for each in outcomes if isinstance(each, Sample) and each.content is not None}
        if not samples:
            return []
        scores = await self._client.zmscore(drift_seen_key(self._shard), list(samples))
        return [sample for sample, score in zip(samples.values(), scores, strict=True) if score is None]

    async def _commit(
        self,
        monitor: Monitor,
        stream_key: str,
        redis: str,
        outcomes: Sequence[Outcome],
        samples: Sequence[Sample],
        acknowledged: Sequence[str],
    ) -> list[bytes]:
        changes, alerts = monitor.changes(), monitor.take_alerts()
        if not (changes or alerts or outcomes or acknowledged):
            self._monitor = monitor
            return [b"ok"]
        arguments: list[Any] = [redis, self._version, GROUP, SEEN, len(outcomes)]
        for outcome in outcomes:
            arguments += [outcome.entry_id, outcome.failure.model_dump_json() if outcome.failure else ""]
        arguments.append(len(changes))
        for name, data in changes.items():
            arguments += [name, "0" if data is None else "1", data or b""]
        arguments.append(len(samples))
        for sample in samples:
            arguments += [sample.key, sample.at_ms]
        arguments += [len(alerts), *(each.model_dump_json() for each in alerts), len(acknowledged), *acknowledged]
        keys = [
            drift_key(self._shard),
            drift_seen_key(self._shard),
            acknowledged_key(self._shard),
            ALERTS.key(self._shard),
            FAILURES.key(self._shard),
            stream_key,
        ]
        answer: list[bytes] = await self._script(keys=keys, args=arguments)
        if answer[0] == b"ok":
            self._monitor, self._version = monitor, b"%d" % (int(self._version) + 1)
            for each in alerts:
                metrics.TRANSITIONS.labels(each.kind.value, each.state.value).inc()
        return answer


def _actor_in(value: bytes) -> str:
    """Return who acknowledged an episode, and why; '' for a record of an earlier version, which has only a time."""
    try:
        stored = orjson.loads(value)
        comment = f" ({stored['comment']})" if stored["comment"] else ""
        return f"{stored['actor']}{comment}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""
