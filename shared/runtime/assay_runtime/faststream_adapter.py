"""Adapter to FastStream, kept for the lifecycle of a service and its AsyncAPI document.

FastStream starts and stops the readers on signals, restarts one that fails, and generates the document that other teams
read. Assay does the rest itself, because delivery must be exact: reads bounded in bytes, groups that start at the
beginning of a stream, batches, and acknowledgement in the step that finishes an entry. So a subscriber here has its own
read (`Reader`) and passes raw entries to a `Consumer`: no envelope, no decoding per message, no acknowledgement.

This is the only file that uses private names of FastStream: `_make_connection_state`, `_client` and `_xreadgroup`.
FastStream is pinned, and contract tests run this against a real Redis.
"""

import asyncio
import logging
from typing import Any

from faststream import AckPolicy
from faststream.exceptions import StopConsume
from faststream.redis import RedisBroker, StreamSub
from faststream.redis.configs import ConnectionState
from faststream.redis.message import FAKE_CONSUMER, RedisBatchStreamMessage
from redis.exceptions import ResponseError

from assay_runtime.connection import Client, connect, refusal_of
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Entry
from assay_runtime.reading import READ_MOST, Reader
from assay_schema.settings import RedisSettings
from assay_schema.streams import Stream

log = logging.getLogger(__name__)

#: Milliseconds that one read waits for entries; also the longest time that a stop waits for the reader.
POLL_MS = 1_000
#: Seconds that the reader waits after a refusal.
REFUSED_PAUSE_S = 1.0


class OwnClient(ConnectionState[Any]):
    """Gives a broker Assay's own client, so that all connections find a master in the same way."""

    def __init__(self, settings: RedisSettings) -> None:
        super().__init__()
        self._settings = settings

    async def connect(self) -> Client:
        """Connect at the first command; retry transient errors without limit."""
        self._client, self._connected = connect(self._settings, attempts=-1), True
        return self._client


class Broker(RedisBroker):
    """FastStream's broker over Assay's own client."""

    def __init__(self, settings: RedisSettings, **rest: Any) -> None:
        self._settings = settings
        super().__init__(**rest)

    def _make_connection_state(self, *_: Any) -> ConnectionState[Any]:
        return OwnClient(self._settings)


def make_broker(settings: RedisSettings) -> RedisBroker:
    """Create a broker that reconnects without limit and does not log each message."""
    logger = logging.getLogger("assay.faststream")
    logger.setLevel(logging.WARNING)
    return Broker(settings, logger=logger, apply_types=False, graceful_timeout=10)


async def leave_groups_alone(broker: RedisBroker) -> None:
    """Stop FastStream from creating groups: `Consumer.prepare` does.

    FastStream would create them at the end of a stream, and fail to start while Redis is full.
    """

    async def made_already(**_: Any) -> None:
        pass

    client: Any = await broker.connect()
    client.xgroup_create = made_already


def subscribe(broker: RedisBroker, consumer: Consumer, document: Any) -> None:
    """Feed a consumer from its stream, in reads of bounded size.

    `document` is the entry's model, for the AsyncAPI document.
    """

    async def parse(message: Any) -> RedisBatchStreamMessage:
        return RedisBatchStreamMessage(
            raw_message=message,
            body=b"",
            consumer=FAKE_CONSUMER,
            group=consumer.group,
            message_id=message["message_ids"][0].decode(),
        )

    async def decode(message: Any) -> list[Entry]:
        return list(message.raw_message["data"])

    async def offer(batch: Any) -> None:
        if not await consumer.offer(batch):
            raise StopConsume

    offer.__annotations__["batch"] = list[document]
    stream = StreamSub(
        consumer.key,
        group=consumer.group,
        consumer=consumer.name,
        batch=True,
        max_records=READ_MOST,
        polling_interval=POLL_MS,
    )
    title, purpose = f"{consumer.stream.name}.{consumer.shard}", consumer.stream.purpose
    subscriber: Any = broker.subscriber(
        stream=stream, parser=parse, decoder=decode, ack_policy=AckPolicy.MANUAL, title=title, description=purpose
    )
    subscriber(offer)
    reader: Reader | None = None

    # FastStream always asks for the same number of entries, regardless of their size.
    async def read_within_bounds(
        **_: Any,
    ) -> Any:
        nonlocal reader
        try:
            reader = reader or Reader(subscriber._client, consumer.key, consumer.group, consumer.name)  # noqa: SLF001
            entries = await reader.read(POLL_MS)
            return ((consumer.key.encode(), [(entry.id.encode(), entry) for entry in entries]),)
        except ResponseError as error:
            # The stream was deleted or moved to another server during the read. FastStream would end the application.
            if str(error).startswith(("NOGROUP", "UNBLOCKED")):
                log.warning("the stream or its group is gone; creating it again", extra={"stream": consumer.key})
                await consumer.prepare()
                return ()
            # A server may refuse for a long time (a hanging script, a revoked right). FastStream would restart the
            # reader at once, again and again, and keep each failed one.
            log.warning(
                "redis refuses to be read; retrying",
                extra={"stream": consumer.key, "error_class": refusal_of(error)},
            )
            await asyncio.sleep(REFUSED_PAUSE_S)
            return ()

    subscriber._xreadgroup = read_within_bounds  # noqa: SLF001


def publish_document(broker: RedisBroker, stream: Stream, shard: int, document: Any) -> None:
    """Document a stream that a service writes to. The consumers' atomic scripts do the writing."""
    broker.publisher(
        stream=stream.key(shard), title=f"{stream.name}.{shard}", description=stream.purpose, schema=document
    )
