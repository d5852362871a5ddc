"""Give up entries that fail too often: each moves to `dead`, and a failure records it."""

import logging
import uuid

from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_runtime.entries import Entry
from assay_runtime.same_redis import guarded
from assay_runtime.scripts import DEAD_LETTER
from assay_schema.failures import GIVEN_UP, Failure, Reason
from assay_schema.streams import DEAD, FAILURES, Stream
from assay_schema.validation import identity_of

log = logging.getLogger(__name__)

#: Reply of `DEAD_LETTER` if `dead` is full.
NO_ROOM = -1


class DeadLetterWriter:
    """Writes the dead letters of one group on one shard of one stream."""

    def __init__(self, client: Client, stream: Stream, shard: int, group: str, max_bytes: int) -> None:
        self._script = guarded(client, DEAD_LETTER)
        self._stream = stream
        self._key = stream.key(shard)
        self._keys = [self._key, DEAD.key(shard), FAILURES.key(shard)]
        self._group = group
        self._max_bytes = max_bytes
        #: True if an entry could not be given up because the dead letters are full.
        self.is_full = False

    async def write(self, entry: Entry, deliveries: int) -> None:
        """Give up an entry, unless the dead letters are full. Raises `OtherRedisError`, `RedisError`."""
        failure = self._failure(entry, deliveries)
        arguments = [
            entry.redis,
            self._group,
            entry.id,
            self._group,
            failure.reason.value,
            failure.error_class,
            deliveries,
            failure.model_dump_json(),
            self._max_bytes,
        ]
        written = await self._script(keys=self._keys, args=arguments)
        self.is_full = written == NO_ROOM
        if self.is_full:
            log.error(
                "no room for another dead letter; the entry stays unfinished: raise delivery.dead_bytes, requeue or drop some",
                extra={"entry_id": entry.id},
            )
        elif written:
            metrics.ENTRIES.labels(self._stream.name, "buried").inc()
            log.error(
                "entry given up after too many deliveries", extra={"entry_id": entry.id, "deliveries": deliveries}
            )

    def _failure(self, entry: Entry, deliveries: int) -> Failure:
        event_id, project, service = identity_of(entry.data)
        return Failure(
            # Derived from the entry, not the event: one that is requeued and fails again has failed twice.
            failure_id=uuid.uuid5(uuid.NAMESPACE_OID, f"{self._key}/{entry.id}"),
            event_id=event_id,
            entry_id=entry.id,
            project=project,
            service=service,
            stage=self._group,
            reason=Reason.OTHER,
            error_class=GIVEN_UP,
            detail="kept as a dead letter for a while; see assay dead list",
            deliveries=deliveries,
            created_at=clock.now(),
        )
