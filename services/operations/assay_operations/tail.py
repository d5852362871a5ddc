"""Follow scrubbed events live, from the stream."""

import asyncio
import heapq
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from assay_schema.settings import RedisSettings
from assay_schema.streams import EVENTS, FIELD

if TYPE_CHECKING:
    from assay_runtime.connection import Client


#: Entries per read; also the maximum number in memory per shard.
_PAGE = 8
#: Timeout of the first read in seconds; it takes milliseconds.
_FIRST_ANSWER_S = 5.0
#: Timeout of a blocking read in milliseconds; also the time within which a departed reader is noticed.
_BLOCK_MS = 1_000
_RETRY_FIRST_S, _RETRY_MAX_S = 0.1, 2.0
Entry = tuple[bytes, dict[bytes, bytes]]
Answer = TypeVar("Answer")


async def follow(
    settings: RedisSettings,
    from_ms: int,
    *,
    kind: str | None,
    project: str | None,
    live: bool,
    caught_up: Callable[[], None],
    tell: Callable[[str], None],
    still_read: Callable[[], None],
) -> AsyncGenerator[tuple[bytes, dict[str, Any]]]:
    """Yield events of a kind and project (None is any), as stored and parsed.

    `live`: new ones too. See `entries`.
    """
    from assay_runtime.connection import connect

    keys = [EVENTS.key(shard) for shard in range(settings.shards)]
    await _first_answer(settings, keys[0])
    client = connect(settings)
    raw_events = entries(client, keys, from_ms, follow=live, caught_up=caught_up, tell=tell, still_read=still_read)
    try:
        async for raw in raw_events:
            event = event_of(raw)
            if event is not None and wanted(event, kind, project):
                yield raw, event
    finally:
        await raw_events.aclose()
        await client.aclose()


async def _first_answer(settings: RedisSettings, key: str) -> None:
    """Read once, without retries: a Redis that is away, hangs or refuses this user is reported at once. Raises `RedisError`."""
    from assay_runtime.connection import connect

    hurry = min(settings.command_timeout_s, _FIRST_ANSWER_S)
    client = connect(settings.model_copy(update={"command_timeout_s": hurry}), attempts=0)
    try:
        await client.xrange(key, count=1)
    finally:
        await client.aclose()


def wanted(event: Mapping[str, Any], kind: str | None, project: str | None) -> bool:
    """Return True if an event has the given kind and project; None is any."""
    return kind in (None, event.get("kind")) and project in (None, event.get("project"))


def event_of(raw: bytes) -> dict[str, Any] | None:
    """Parse the event of an entry; None if it is not one."""
    try:
        event = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return event if isinstance(event, dict) else None


async def entries(
    client: "Client",
    keys: list[str],
    from_ms: int,
    *,
    follow: bool,
    caught_up: Callable[[], None],
    tell: Callable[[str], None],
    still_read: Callable[[], None],
) -> AsyncGenerator[bytes]:
    """Yield the `data` of entries, oldest first, then of new ones. Calls `caught_up` in between.

    Yields each entry once, in the order of its shard, with bounded memory. If Redis is unavailable, reads wait for it and continue after
    the last entry; `tell` gets a line about that. `still_read` raises when the reader is gone.
    """
    last = dict.fromkeys(keys, f"{from_ms}-0")

    async def patiently(ask: Callable[[], Awaitable[Any]]) -> Any:
        return await _patiently(ask, tell, still_read)

    async def page(key: str, start: str) -> list[Entry]:
        answer: list[Entry] = await patiently(lambda: client.xrange(key, min=start, count=_PAGE))
        return answer

    waiting = {key: await page(key, last[key]) for key in keys}
    heap = [(_place(entries[0][0]), key) for key, entries in waiting.items() if entries]
    heapq.heapify(heap)
    while heap:
        _, key = heapq.heappop(heap)
        entry_id, fields = waiting[key].pop(0)
        last[key] = entry_id.decode()
        yield fields.get(FIELD.encode(), b"")
        if not waiting[key]:
            waiting[key] = await page(key, f"({last[key]}")
        if waiting[key]:
            heapq.heappush(heap, (_place(waiting[key][0][0]), key))
    caught_up()
    if not follow:
        return

    # One read per shard, since the shards of a Redis Cluster are on several servers.
    async def news(key: str) -> list[Entry]:
        answer = await patiently(lambda: client.xread({key: last[key]}, count=_PAGE, block=_BLOCK_MS))
        return answer[0][1] if answer else []

    asked = {asyncio.ensure_future(news(key)): key for key in keys}
    try:
        while True:
            still_read()
            done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            for question in done:
                key = asked.pop(question)
                for entry_id, fields in question.result():
                    last[key] = entry_id.decode()
                    yield fields.get(FIELD.encode(), b"")
                asked[asyncio.ensure_future(news(key))] = key
    finally:
        for question in asked:
            question.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


def _place(entry_id: bytes) -> tuple[int, int]:
    ms, _, sequence = entry_id.partition(b"-")
    return int(ms), int(sequence)


async def _patiently(
    ask: Callable[[], Awaitable[Answer]], tell: Callable[[str], None], still_read: Callable[[], None]
) -> Answer:
    """Retry until Redis answers, and report an outage once."""
    from assay_runtime.connection import PASSING_ERRORS

    delay, reported = _RETRY_FIRST_S, False
    while True:
        try:
            answer = await ask()
        except PASSING_ERRORS as error:
            if not reported:
                tell(f"Redis is unavailable ({type(error).__name__}); waiting for it")
            reported = True
            await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_MAX_S)
            still_read()
        else:
            if reported:
                tell("Redis is available again")
            return answer
