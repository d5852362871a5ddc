"""Atomic steps that finish entries: acknowledge, and forward, record or dead-letter them."""

from collections.abc import Awaitable, Callable, Sequence

from redis.exceptions import RedisError

from assay_runtime.connection import Client
from assay_runtime.entries import Outcome
from assay_runtime.lua import NUMBERS_UNKNOWN
from assay_runtime.same_redis import guarded
from assay_runtime.scripts import DEAD_LETTER, FORWARD, SETTLE
from assay_schema.ids import row_id
from assay_schema.settings import DeliverySettings
from assay_schema.streams import (
    CAPTURE,
    DEAD,
    EVENTS,
    FAILURES,
    Stream,
    numbered_key,
    overflow_key,
    scrubbed_low_watermark_key,
)

#: Finishes outcomes of entries from this Redis server, and returns the number that were still ours to finish. Raises
#: `OtherRedisError` if another server gave them.
Finish = Callable[[Sequence[Outcome], str], Awaitable[int]]
#: Maximum bytes of dead letters, unless the settings set another limit.
DEAD_BYTES = DeliverySettings().dead_bytes
#: Entries finished in one step: short scripts keep Redis responsive.
PAGE = 500


class NumbersUnknownError(RedisError):
    """Redis has lost all data or is new: no `id` may be issued until a writer reports the store's ids."""


def forward_finish(client: Client, group: str, shard: int, shards: int, *, await_writer: bool = False) -> Finish:
    """Return the step that finishes entries of `capture`: acknowledge, delete and forward, atomically.

    With `await_writer`, a Redis without a watermark issues no ids, and the step raises `NumbersUnknownError`.
    """
    script = guarded(client, FORWARD)
    keys = [CAPTURE.key(shard), EVENTS.key(shard), FAILURES.key(shard)]
    keys += [overflow_key(shard), scrubbed_low_watermark_key(shard), numbered_key(shard)]

    async def finish(outcomes: Sequence[Outcome], redis: str) -> int:
        arguments: list[str | bytes | int] = [redis, group, shard, shards, int(await_writer)]
        for outcome in outcomes:
            if outcome.failure is not None:
                arguments += (outcome.entry_id, "f", outcome.failure.model_dump_json())
            elif outcome.event is not None:
                row = row_id(outcome.entry_id, shard, shards)
                named = outcome.event if row is None else b'{"id":%d,' % row + outcome.event[1:]
                arguments += (outcome.entry_id, "o" if row is None else "e", named)
        done = int(await script(keys=keys, args=arguments))
        if done == NUMBERS_UNKNOWN:
            raise NumbersUnknownError("waiting for a writer; start one, or check its log")
        return done

    return finish


def settle_finish(client: Client, stream: Stream, group: str, shard: int, dead_bytes: int = DEAD_BYTES) -> Finish:
    """Return the step that finishes entries of a stream with a history: acknowledge and record failures.

    It is atomic, and keeps dead letters.
    """
    script, dead_letter = guarded(client, SETTLE), dead_letter_finish(client, stream, group, shard, dead_bytes)
    keys = [stream.key(shard), FAILURES.key(shard)]

    async def finish(outcomes: Sequence[Outcome], redis: str) -> int:
        kept = [outcome for outcome in outcomes if outcome.keep]
        done = await dead_letter(kept, redis)
        outcomes = [outcome for outcome in outcomes if not outcome.keep] if kept else outcomes
        for start in range(0, len(outcomes), PAGE):  # short scripts keep Redis responsive
            arguments = [redis, group]
            for outcome in outcomes[start : start + PAGE]:
                arguments += [outcome.entry_id, outcome.failure.model_dump_json() if outcome.failure else ""]
            done += int(await script(keys=keys, args=arguments))
        return done

    return finish


def dead_letter_finish(client: Client, stream: Stream, group: str, shard: int, dead_bytes: int = DEAD_BYTES) -> Finish:
    """Return the step that finishes a service's own entries: acknowledge, or dead-letter on failure.

    It is atomic, and records a failure for each dead letter.
    """
    settle, dead_letter = guarded(client, SETTLE), guarded(client, DEAD_LETTER)
    keys = [stream.key(shard), DEAD.key(shard), FAILURES.key(shard)]

    async def finish(outcomes: Sequence[Outcome], redis: str) -> int:
        done = 0
        for outcome in outcomes:
            if outcome.failure is None:
                done += int(await settle(keys=[keys[0], keys[2]], args=[redis, group, outcome.entry_id, ""]))
                continue
            failure = outcome.failure
            why = [failure.reason.value, failure.error_class, failure.deliveries, failure.model_dump_json(), dead_bytes]
            done += max(0, int(await dead_letter(keys=keys, args=[redis, group, outcome.entry_id, group, *why])))
        return done

    return finish
