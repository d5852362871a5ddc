"""FastStream, used where it is strong: subscriptions, lifecycle and AsyncAPI documents. Its few private names are used here only.

The subscriber reads batches of raw entries and hands them to a `Consumer` as they are: no envelope, no per-message decoding, no
acknowledgement. Contract tests run this against a real Redis, and FastStream is pinned.
"""

import logging
from typing import Any

from faststream import AckPolicy
from faststream.redis import RedisBroker, StreamSub
from faststream.redis.message import FAKE_CONSUMER, RedisBatchStreamMessage

from assay_runtime.connection import address, options
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Entry
from assay_schema.settings import RedisSettings
from assay_schema.streams import FIELD, Stream

#: How long one read waits for entries, in milliseconds; also the longest a stop waits for the reader.
POLL_MS = 1_000


def make_broker(settings: RedisSettings) -> RedisBroker:
    """A broker that reconnects for ever and logs nothing per message."""
    logger = logging.getLogger("assay.faststream")
    logger.setLevel(logging.WARNING)
    return RedisBroker(
        address(settings), logger=logger, apply_types=False, graceful_timeout=10, **options(settings, attempts=-1)
    )


def subscribe(broker: RedisBroker, consumer: Consumer, entries: int, document: Any) -> None:
    """Feed a consumer from its stream, `entries` at most a read. `document` is the entry's model, for the AsyncAPI document."""

    async def parse(message: Any) -> RedisBatchStreamMessage:
        return RedisBatchStreamMessage(
            raw_message=message,
            body=b"",
            consumer=FAKE_CONSUMER,
            group=consumer.group,
            message_id=message["message_ids"][0].decode(),
        )

    async def decode(message: Any) -> list[Entry]:
        field, raw = FIELD.encode(), message.raw_message
        return [
            Entry(i.decode(), fields.get(field, b"")) for i, fields in zip(raw["message_ids"], raw["data"], strict=True)
        ]

    async def offer(batch: Any) -> None:
        await consumer.offer(batch)

    offer.__annotations__["batch"] = list[document]
    stream = StreamSub(
        consumer.key,
        group=consumer.group,
        consumer=consumer.name,
        batch=True,
        max_records=entries,
        polling_interval=POLL_MS,
    )
    title, purpose = f"{consumer.stream.name}.{consumer.shard}", consumer.stream.purpose
    broker.subscriber(
        stream=stream, parser=parse, decoder=decode, ack_policy=AckPolicy.MANUAL, title=title, description=purpose
    )(offer)


def publish_document(broker: RedisBroker, stream: Stream, shard: int, document: Any) -> None:
    """Describe a stream that a service writes to; the writing itself is a step of the consumers' atomic scripts."""
    broker.publisher(
        stream=stream.key(shard), title=f"{stream.name}.{shard}", description=stream.purpose, schema=document
    )
