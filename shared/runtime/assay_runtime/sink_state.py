"""State of a consumer's sink: whether it accepts batches, and the incident while it does not."""

import contextlib
import logging
import uuid

from redis.exceptions import RedisError

from assay_runtime import metrics
from assay_runtime.clock import clock
from assay_runtime.connection import Client
from assay_runtime.entries import SinkUnavailableError
from assay_schema.failures import Failure, Reason
from assay_schema.streams import FAILURES, FIELD, Stream

log = logging.getLogger(__name__)


class SinkState:
    """Reports once when the sink of one stream goes away, for each reason, and once when it is back."""

    def __init__(self, client: Client, stream: Stream, shard: int, stage: str) -> None:
        self._client = client
        self._stream = stream
        self._shard = shard
        self._stage = stage
        #: Reasons why the sink is away; empty while it is available.
        self._away_for: set[Reason] = set()

    @property
    def is_up(self) -> bool:
        """True if the sink accepted the last batch."""
        return not self._away_for

    async def went_away(self, error: SinkUnavailableError) -> None:
        """Count a refusal, and record a new reason as an incident."""
        metrics.RETRIES.labels(self._stream.name, error.reason.value).inc()
        if error.reason in self._away_for:
            return  # a new reason is reported: a store that restarts without permissions needs an operator
        self._away_for.add(error.reason)
        metrics.SINK_UP.labels(self._stream.name).set(0)
        log.warning(
            "the sink is away; events wait in Redis",
            extra={"reason": error.reason.value, "error_class": error.error_class},
        )
        incident = Failure(
            failure_id=uuid.uuid4(),
            stage=self._stage,
            reason=error.reason,
            error_class=error.error_class,
            detail="the sink was away; events waited and nothing was lost",
            deliveries=0,
            created_at=clock.now(),
        )
        with contextlib.suppress(RedisError):  # the incident is also logged and counted above
            await self._client.xadd(FAILURES.key(self._shard), {FIELD: incident.model_dump_json()})

    def came_back(self) -> None:
        """Record that the sink accepted a batch."""
        metrics.SINK_UP.labels(self._stream.name).set(1)
        if not self.is_up:
            self._away_for.clear()
            log.info("the sink is back")
