"""A statement without rows: check it, run it, and send its result while it arrives."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import string
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

from assay_store import definitions, formats, native, writes
from assay_store.engine import Handle
from assay_store.errors import SYNTAX_ERROR, TOO_MANY_ROWS_OR_BYTES, StoreError
from assay_store.exchange import Exchange
from assay_store.execute import CHUNK_BYTES, FIRST_BYTES, Block, Stream, Whole, asking
from assay_store.roles import Role
from assay_store.runtime import Runtime
from assay_store.sql_policy import refuse_on_get

Types = Sequence[tuple[str, str]]
_ENDING = string.whitespace + ";"
#: First keywords of statements whose result can be sent while they run.
_QUERIES = ("SELECT", "WITH", "FROM", "")

#: Seconds between two attempts to cancel a query.
_KILL_EVERY_SECONDS = 1.0

FLUSH_SECONDS = 0.1
"""Seconds after which available results of a query are sent, however small."""


async def run_query(exchange: Exchange, sql: str, first_keyword: str) -> None:
    """Run a statement and send its result.

    Raises StoreError before the first bytes of the response, and breaks it off after them.
    """
    sql = sql.rstrip(_ENDING)
    if not sql:
        raise StoreError(SYNTAX_ERROR, "Syntax error: failed at position 1 (end of query): Empty query")
    reading = _Reading(exchange, sql, first_keyword)
    async with exchange.lane.slot(), reading.cancelled_if_the_client_leaves():
        try:
            whole = await reading.send()
        except BaseException:
            await reading.abandon()
            raise
        exchange.lease.complete()
        await exchange.lease.settle()
    if whole is not None:
        # No other request waits for the thread of a client that reads slowly.
        await exchange.answer.whole(reading.result.summary, reading.output_format, whole)


def require_written(runtime: Runtime, role: Role) -> None:
    """Raise if the data written by a statement may be incomplete. Blocks."""
    writes.require_written(runtime.engine.failed_writes)
    if role is Role.OWNER:  # only the owner defines anything
        definitions.keep(runtime.options.data)


class _Reading:
    """One statement and its result."""

    def __init__(self, exchange: Exchange, sql: str, first_keyword: str) -> None:
        self._exchange = exchange
        self._sql = sql
        self._first_keyword = first_keyword
        self._result: Stream | Whole | None = None
        self.output_format: str | None = None
        """The format of the result; None if the statement has none."""

    @property
    def result(self) -> Stream | Whole:
        """The result of a statement that began."""
        assert self._result is not None
        return self._result

    async def send(self) -> list[Block] | None:
        """Send results as they arrive; or return them if all arrived at once."""
        runtime, answer, wait = self._exchange.runtime, self._exchange.answer, self._exchange.request.wait_end_of_query
        gathered: list[Block] = []
        size, most = 0, runtime.options.max_result_buffer_bytes
        try:
            async with contextlib.aclosing(self._pieces()) as pieces:
                async for blocks in pieces:
                    size += sum(map(len, blocks))
                    if answer.status:
                        await answer.more(blocks)
                    elif wait or self.result.ended:
                        gathered += blocks
                    else:
                        await answer.begin(self.result.summary, self.output_format or "")
                        await answer.more(blocks)
                    if wait and size > most:
                        raise _too_much(most)
        except StoreError as failure:
            if answer.status:
                await self._exchange.lease.settle()
                await answer.break_off(failure)
            raise
        finally:
            runtime.metrics.sent_bytes.inc(size)
        if answer.status:
            await self._exchange.lease.settle()
            await answer.end()
            return None
        return gathered

    async def abandon(self) -> None:
        """Stop a query whose result is no longer needed."""
        if self._result is not None and not self._result.ended:
            self._exchange.lease.spoil()
            await self._exchange.lease.kill()
            await self._exchange.run(self._result.abandon)

    @contextlib.asynccontextmanager
    async def cancelled_if_the_client_leaves(self) -> AsyncIterator[None]:
        """Cancel the engine's query if the client disconnects before it ends."""

        async def watch() -> None:
            await self._exchange.client_gone()
            while True:  # until it ends: the engine forgets a cancellation that comes before the query has begun
                await self._exchange.lease.kill()
                await asyncio.sleep(_KILL_EVERY_SECONDS)

        task = asyncio.create_task(watch())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _pieces(self) -> AsyncGenerator[list[Block]]:
        """Yield the result in pieces: large ones while it is fast, available ones while it is slow."""
        flush_seconds = None if self._exchange.request.wait_end_of_query else FLUSH_SECONDS
        work: Callable[[], None] = self._begin
        while True:
            filling = asyncio.ensure_future(self._exchange.run(work))
            try:
                while not (await asyncio.wait({filling}, timeout=flush_seconds))[0]:
                    if self._result is not None and (blocks := self._result.take()):
                        yield blocks
                filling.result()
            finally:
                await self._stopped(filling)
            if blocks := self.result.take():
                yield blocks
            if self.result.ended:
                return
            work = functools.partial(self.result.fill, CHUNK_BYTES)

    async def _stopped(self, filling: asyncio.Future[None]) -> None:
        """Wait for a thread that still fills an abandoned result."""
        while not filling.done():
            await self._exchange.lease.kill()
            await asyncio.wait({filling}, timeout=_KILL_EVERY_SECONDS)
        if not filling.cancelled():
            filling.exception()

    def _begin(self) -> None:
        """Check the statement, and run it up to its first bytes. Blocks."""
        exchange, request = self._exchange, self._exchange.request
        verdict = exchange.check(self._sql)
        output_format = verdict.format or request.default_format
        streams = self._first_keyword in _QUERIES and formats.streamable(output_format)
        if exchange.only_reads:
            refuse_on_get(verdict, self._first_keyword)
        settings = dict(request.settings)
        if not streams:
            settings.setdefault("max_result_bytes", str(exchange.runtime.options.max_result_buffer_bytes))
        handle = exchange.take(settings, queries=streams and verdict.reads_only)
        if verdict.keeps_state or (not verdict.reads_only and exchange.lease.session is not None):
            handle.own_settings = True
        rewrite = None
        if output_format.lower() == "native" and native.respects(request.protocol_version) and verdict.reads_only:
            rewrite = native.Rewriter(self._describe(handle, settings))
        make = Stream if streams and verdict.reads_only else Whole
        result = make(handle, self._sql, output_format, request.params, rewrite)
        if not verdict.reads_only:
            require_written(exchange.runtime, exchange.user.role)
        if verdict.reads_only or result.summary.result_rows:
            self.output_format = output_format
        self._result = result
        result.fill(FIRST_BYTES)
        if result.ended:
            exchange.lease.restore()

    def _describe(self, mine: Handle, settings: Mapping[str, str]) -> Callable[[], Types]:
        """Return a function that determines the column types of the query while it runs on the handle `mine`."""
        request, role = self._exchange.request, self._exchange.user.role
        engine, sql_policy = self._exchange.runtime.engine, self._exchange.runtime.sql_policy
        text = native.describing(self._sql)

        def ask(handle: Handle) -> Types:
            try:
                sql_policy.check(role, text, request.params)
                found = handle.query(text, "JSONCompactEachRow", request.params)
            except StoreError:
                return []
            return [tuple(json.loads(line)[:2]) for line in bytes(found.bytes()).splitlines()]

        def ask_another() -> Types:
            other: Handle | None = asking(engine, role, settings, request.database)
            assert other is not None
            try:
                types = ask(other)
                if types and role.restricted:
                    other = engine.keep(other)
                return types
            finally:
                if other is not None:
                    engine.release(other)

        if request.externals or mine.own_settings:
            # Its tables and settings are private, so it is asked before its query begins.
            types = ask(mine)
            return lambda: types
        return ask_another


def _too_much(most: int) -> StoreError:
    return StoreError(
        TOO_MANY_ROWS_OR_BYTES,
        f"wait_end_of_query gathers at most {most} bytes: leave it out, or raise --max-result-buffer-bytes",
    )
