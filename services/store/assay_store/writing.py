"""An INSERT whose rows follow it: check it, and pass its rows to the engine as they arrive."""

from __future__ import annotations

import asyncio
import functools

from assay_store import statements
from assay_store.engine import Handle, quote
from assay_store.errors import NOT_IMPLEMENTED, SOCKET_TIMEOUT, StoreError
from assay_store.exchange import Exchange
from assay_store.execute import Rows, Summary
from assay_store.reading import require_written
from assay_store.sql_policy import ROWS, Verdict, refuse_on_get

_HOP_BYTES = 1 << 20


async def run_insert(exchange: Exchange, text: bytearray, insert: statements.Insert) -> None:
    """Write the rows and answer. `text` begins with the statement. Raises StoreError."""
    request, runtime, lane, user = exchange.request, exchange.runtime, exchange.lane, exchange.user
    if exchange.only_reads:
        refuse_on_get(Verdict("MUTATING", reads_only=False, keeps_state=False), "INSERT")
    if request.externals:
        raise StoreError(NOT_IMPLEMENTED, "An INSERT with external tables is not supported")
    head = insert.head.decode("utf-8", "surrogateescape")
    input_format = insert.format or (request.default_format if request.default_format != "TabSeparated" else "Values")
    gathered = bytearray(text[insert.data_at :])
    text.clear()
    # Before its rows are read: users without the right to insert take no slot from those with it.
    await exchange.run(lambda: _check(exchange, head, input_format))

    def prepare() -> Handle:
        if input_format.lower() == "values":
            if not exchange.body.ended:
                raise StoreError(NOT_IMPLEMENTED, "INSERT ... VALUES is too long: insert with FORMAT JSONEachRow")
            runtime.sql_policy.check_values(user.role, bytes(gathered))
        return exchange.take(request.settings | {f"param_{name}": value for name, value in request.params.items()})

    async with lane.uploads:
        await _gather(exchange, gathered, runtime.options.insert_buffer_bytes)
        async with lane.inserts, lane.slot():
            summary = await _write(exchange, await exchange.run(prepare), head, input_format, gathered)
        await exchange.run(lambda: require_written(runtime, user.role))
    await exchange.lease.settle()
    runtime.metrics.written_rows.inc(summary.written_rows)
    await exchange.answer.whole(summary, None)


def _check(exchange: Exchange, head: str, input_format: str) -> None:
    exchange.check(statements.from_file(head, quote(ROWS), input_format), ROWS)
    if "log_comment" in head.lower():
        # It identifies an interrupted upload, which is cancelled before its first half is stored.
        raise StoreError(NOT_IMPLEMENTED, "An INSERT cannot set log_comment here")


async def _gather(exchange: Exchange, gathered: bytearray, at_least: int) -> None:
    """Read rows until there are `at_least` bytes of them, or all."""
    while len(gathered) < at_least and (piece := await exchange.body.next()) is not None:
        gathered += piece


async def _write(exchange: Exchange, handle: Handle, head: str, input_format: str, gathered: bytearray) -> Summary:
    runtime, seconds = exchange.runtime, exchange.runtime.options.body_timeout_seconds
    rows = await exchange.run(lambda: Rows(handle, head, input_format, runtime.engine.kill, exchange.check))
    try:
        while True:
            data = bytes(gathered)
            gathered.clear()
            runtime.metrics.received_bytes.inc(len(data))
            if exchange.body.ended:
                return await exchange.run(functools.partial(_last, rows, data))
            if data:
                await exchange.run(functools.partial(rows.append, data))
            try:
                # Others wait for this INSERT, so a client must not delay it indefinitely with single bytes.
                async with asyncio.timeout(seconds):
                    await _gather(exchange, gathered, _HOP_BYTES)
            except TimeoutError:
                raise StoreError(SOCKET_TIMEOUT, f"Less than 1 MiB of rows in {seconds:g} seconds") from None
    except BaseException:
        exchange.lease.spoil()
        await exchange.run(rows.cancel)
        raise


def _last(rows: Rows, data: bytes) -> Summary:
    if data:
        rows.append(data)
    return rows.finish()
