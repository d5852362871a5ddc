"""Services and producers with one mechanism switched off: `python -m tests.chaos.sabotage MECHANISM MODULE`.

The proof that the suite can fail. Production code has no such switches: this patches it in memory and then starts the real program.
"""

import asyncio
import hashlib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from assay_capture import capture
from assay_runtime import dead_letter_writer, delivery, finishing, lua, migrate, scripts, store, watermark
from assay_runtime.batcher import Batch
from assay_runtime.clock import RedisClock
from assay_runtime.config import load_settings
from assay_runtime.delivery import Consumer
from assay_runtime.entries import Outcome
from assay_runtime.leases import Leases
from assay_runtime.reclaimer import Reclaimer
from assay_runtime.service import Service
from assay_writer import app as writer_app
from assay_writer import sink
from tests.chaos import load

_EVENTS_FINAL = re.compile(r"\b(?!watermarks|schema_migrations)(\w+) FINAL\b")


def ack_before_insert() -> None:
    """The writer acknowledges a batch before it is stored."""
    work = Consumer._outcomes

    async def acknowledged_first(self: Consumer, batch: Batch) -> Sequence[Outcome]:
        if self.group == "writer":
            await self._client.xack(self.key, self.group, *[entry.id for entry in batch.entries])
        return await work(self, batch)

    Consumer._outcomes = acknowledged_first  # type: ignore[method-assign]


def no_reclaim() -> None:
    """Nobody takes over what a dead consumer, or an earlier run, left pending."""

    async def nothing(self: Reclaimer, **_: Any) -> None:
        await asyncio.sleep(0)

    Reclaimer.take_over = nothing  # type: ignore[method-assign, assignment]


def no_idempotence() -> None:
    """Tables that keep every copy."""
    found = migrate.migrations

    def plain() -> list[migrate.Migration]:
        return [
            replace(step, text=_EVENTS_FINAL.sub(r"\1", step.text.replace("ReplacingMergeTree(ver)", "MergeTree")))
            for step in found()
        ]

    migrate.migrations = plain


def insert_tokens() -> None:
    """The tables recognise an insert that is repeated, by a token that its rows give it."""
    found = migrate.migrations

    def with_windows() -> list[migrate.Migration]:
        return [replace(step, text=re.sub(r"(deduplication_window =) 0", r"\1 1000", step.text)) for step in found()]

    def named(client: store.Client, table: str, payload: bytes, rows: int, columns: Sequence[str] = ()) -> None:
        token = hashlib.blake2b(payload).hexdigest()
        with patch.dict(store.INSERT_SETTINGS, {"insert_deduplication_token": token}):
            store.insert_json_rows(client, table, payload, rows, columns)

    migrate.migrations = with_windows
    sink.insert_json_rows = named


def complete_too_early() -> None:
    """A session is shown as complete when its first part is stored."""
    found = migrate.migrations

    def with_any_part() -> list[migrate.Migration]:
        return [
            replace(step, text=step.text.replace("i.parts = i.parts_stored", "i.parts >= i.parts_stored"))
            for step in found()
        ]

    migrate.migrations = with_any_part


def trim_by_maxlen() -> None:
    """The events stream is cut to a length, read or not."""
    finishing.FORWARD = scripts.FORWARD.replace(
        "redis.call('XADD', events, '*'", "redis.call('XADD', events, 'MAXLEN', '1000', '*'"
    )


def eager_watermark() -> None:
    """The watermark says that what was scrubbed is stored."""
    watermark.WATERMARK = scripts.WATERMARK.replace("field(stored) or 0)", "low)")


def blame_outages() -> None:
    """A delivery counts against an entry whatever ended it: nothing is taken back, neither of a batch nor of a suspect by itself."""

    async def nothing(*_: object) -> None:
        await asyncio.sleep(0)

    Leases.acquit = nothing  # type: ignore[method-assign]
    delivery._prove = nothing


def late_look() -> None:
    """A scrubber looks how far behind the writer is when it has begun to work."""
    Service.gate = Service.every_tick  # type: ignore[method-assign]


def local_clock() -> None:
    """Arrivals are dated by the clock of the host."""
    RedisClock.set = lambda *_: None  # type: ignore[method-assign]


def numbers_forgotten() -> None:
    """A Redis that lost the end of its log goes on numbering where that ends, and the writer tells it nothing."""
    finishing.FORWARD = scripts.FORWARD.replace("if here ~= '' and last ~= here", "if false")
    watermark.WATERMARK = scripts.WATERMARK.replace(" or tonumber(low) < stands or here ~= ARGV[4] then", " then")


def any_redis() -> None:
    """Entries are finished by their id alone, whichever Redis gave it."""
    for module, name in (
        (finishing, "FORWARD"),
        (finishing, "SETTLE"),
        (finishing, "DEAD_LETTER"),
        (dead_letter_writer, "DEAD_LETTER"),
    ):
        setattr(module, name, getattr(scripts, name).replace(lua.fragment("assay_runtime", "refuse_others"), ""))


def one_spool_for_all() -> None:
    """Whatever waits in a spool is sent by whoever finds it."""
    capture.destination = lambda _: "whichever"


MECHANISMS: dict[str, Callable[[], None]] = {
    "ack-before-insert": ack_before_insert,
    "no-reclaim": no_reclaim,
    "no-idempotence": no_idempotence,
    "insert-tokens": insert_tokens,
    "complete-too-early": complete_too_early,
    "trim-by-maxlen": trim_by_maxlen,
    "eager-watermark": eager_watermark,
    "blame-outages": blame_outages,
    "late-look": late_look,
    "local-clock": local_clock,
    "one-spool-for-all": one_spool_for_all,
    "numbers-forgotten": numbers_forgotten,
    "any-redis": any_redis,
}


def main(mechanism: str, module: str, order: str = "") -> None:
    """Switch it off and run: `migrate`, `assay_scrubber`, `assay_writer`, or a producer with its order."""
    MECHANISMS[mechanism]()
    if module == "migrate":
        migrate.migrate(load_settings())
    elif module == "tests.chaos.load":
        load.main(order)
    elif module == "assay_writer":
        writer_app.run()
    else:
        from assay_scrubber import app as scrubber_app

        scrubber_app.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
