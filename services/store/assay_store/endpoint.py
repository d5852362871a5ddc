"""The query endpoint: one exchange of the ClickHouse HTTP protocol."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import string
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from assay_store import compression, definitions, formats, multipart, native, statements, writes
from assay_store.answer import LAST_WORDS_SECONDS, Answer
from assay_store.body import Body, ClientGoneError
from assay_store.engine import Handle, quote, text_bytes
from assay_store.errors import (
    ABORTED,
    AUTHENTICATION_FAILED,
    NOT_IMPLEMENTED,
    QUERY_IS_TOO_LARGE,
    SOCKET_TIMEOUT,
    STD_EXCEPTION,
    TOO_MANY_ROWS_OR_BYTES,
    StoreError,
)
from assay_store.execute import (
    CHUNK_BYTES,
    FIRST_BYTES,
    Block,
    Judge,
    Rows,
    Stream,
    Summary,
    Whole,
    applied,
    creation,
    load,
    loaded,
    prepared,
)
from assay_store.gate import ROWS, Verdict, refuse_on_get
from assay_store.logins import PAUSE_SECONDS
from assay_store.request import Asked, asked, credentials, parameters
from assay_store.roles import Role
from assay_store.runtime import Runtime
from assay_store.sessions import Session
from assay_store.users import User

log = logging.getLogger("assay_store")

_T = TypeVar("_T")
Types = Sequence[tuple[str, str]]
_INSERT_HOP_BYTES = 1 << 20
_IN_LOOP_BYTES = 16 << 10
_ENDING = string.whitespace + ";"
_METHODS = "GET, HEAD, POST, OPTIONS"

FLUSH_SECONDS = 0.1
"""Seconds after which available results of a query are sent, however small."""


class QueryEndpoint:
    """ASGI application for `/`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens, and count it."""
        await _Exchange(self._runtime, scope, receive, send).run()


class _Exchange:
    """One request and its response."""

    def __init__(self, runtime: Runtime, scope: Scope, receive: Receive, send: Send) -> None:
        self._runtime = runtime
        self._request = Request(scope)
        self._receive = receive
        self._started = time.monotonic()
        self._kind = "unknown"
        self._answer = Answer(
            send,
            method=self._request.method,
            thread=runtime.run_codec,
            pause_seconds=runtime.options.body_timeout_seconds,
            version=runtime.engine.version,
            headers={"X-ClickHouse-Server-Display-Name": runtime.display_name},
        )
        self._answer.query_id = str(uuid.uuid4())
        self._lane = runtime.lane(Role.SRE)
        self._body: Body | None = None
        self._handle: Handle | None = None
        self._session: Session | None = None
        self._result: Stream | Whole | None = None
        self._format: str | None = None
        self._spoilt = False
        self._undo = contextlib.ExitStack()
        self._restores = False

    async def run(self) -> None:
        """Run the exchange: see QueryEndpoint."""
        runtime, answer = self._runtime, self._answer
        runtime.metrics.running.inc()
        try:
            await self._serve()
        except StoreError as failure:
            await self._settle()
            await self._fail(failure)
        except ClientGoneError:
            answer.code, self._spoilt = answer.code or ABORTED, True
        except Exception as failure:  # noqa: BLE001  the last line of defence: the message may quote rows, so only its class is kept
            log.error("%r: %s", answer.query_id, type(failure).__name__)
            await self._fail(StoreError(STD_EXCEPTION, f"Internal error of the store: {type(failure).__name__}"))
        finally:
            await self._release()
            seconds = time.monotonic() - self._started
            runtime.metrics.running.dec()
            runtime.metrics.requests.labels(self._kind, str(answer.status or "closed")).inc()
            runtime.metrics.seconds.labels(self._kind).observe(seconds)
            log.debug("%r: %s, %.6f s, code %d", answer.query_id, self._kind, seconds, answer.code)
        if answer.broken_off:
            await asyncio.sleep(LAST_WORDS_SECONDS)

    async def _fail(self, failure: StoreError) -> None:
        if self._body is not None and not self._answer.status:
            await self._body.hear_out()
        await self._answer.fail(failure)

    # -- request
    # ----------------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        runtime, query = self._runtime, self._request.scope["query_string"]
        if self._request.method == "OPTIONS":
            await self._answer.nothing(204, {"Allow": _METHODS})
            return
        if self._request.method in ("GET", "HEAD") and not query:
            await self._answer.text("Ok.\n")
            return
        headers = {name.lower(): value for name, value in self._request.headers.items()}
        url = await self._brief(len(query), lambda: parameters(query))
        user = await self._authenticate(url, headers)
        self._lane = runtime.lane(user.role)
        if not runtime.accepting:
            raise StoreError(ABORTED, "The store is stopping")
        body = self._body = Body(
            self._receive,
            compression.decoder(headers.get("content-encoding", "")),
            runtime.run_codec,
            runtime.options.body_timeout_seconds,
        )
        files: dict[str, bytes] = {}
        content_type = headers.get("content-type", "")
        if content_type.lower().startswith("multipart/form-data"):
            limit = runtime.options.max_external_bytes
            sent = await body.rest(limit, "raise --max-external-bytes or send less")
            form = await runtime.run_codec(lambda: multipart.parse(content_type, sent))
            url |= form.fields
            files = form.files
        want = asked(url, headers, files)
        self._answer.query_id = want.query_id or self._answer.query_id
        self._answer.compress(compression.negotiate(headers.get("accept-encoding", ""), want.compress_response))
        await self._dispatch(user, want, body)

    async def _authenticate(self, url: Mapping[str, str], headers: Mapping[str, str]) -> User:
        runtime, scope = self._runtime, self._request.scope
        given = credentials(url, headers)
        connected = scope["state"]["logins"]
        user = runtime.users.check(given.name, given.password)
        if user is None:
            runtime.logins.failed(given.name, scope["client"][0] if scope["client"] else "nowhere")
        if user is None or runtime.logins.waits(given.name, known=given.name in connected):
            await asyncio.sleep(PAUSE_SECONDS)
        if user is None:
            raise StoreError(
                AUTHENTICATION_FAILED,
                f"{given.name}: Authentication failed: password is incorrect, or there is no user with such name.",
            )
        connected.add(user.name)
        return user

    async def _dispatch(self, user: User, want: Asked, body: Body) -> None:
        limit, flag = self._runtime.options.statement_limit(user.role)
        text, recognised = await self._recognise(want, body, limit, flag)
        if isinstance(recognised, statements.Insert):
            await self._insert(user, want, body, text, recognised)
            return
        text += await body.rest(limit, f"raise {flag}, or send rows by INSERT ... FORMAT")
        if len(text) > limit:
            raise _too_long(limit, flag)
        await self._query(user, want, bytes(text).decode("utf-8", "surrogateescape"), recognised.first_keyword)

    async def _recognise(
        self, want: Asked, body: Body, limit: int, flag: str
    ) -> tuple[bytearray, statements.Insert | statements.Statement]:
        text = bytearray(text_bytes(want.sql))
        if text:
            text += b"\n"
        while True:
            # The head of an INSERT must be within the limit; its rows may have arrived in the same piece.
            head = bytes(text[:limit])
            complete = body.ended and len(text) <= limit
            recognised = await self._brief(len(head), functools.partial(statements.recognise, head, complete=complete))
            if not isinstance(recognised, statements.NeedMore):
                return text, recognised
            if len(text) > limit:
                raise _too_long(limit, flag)
            # Twice as much each time, so that a statement that arrives byte by byte is not read again for each byte.
            wanted = 2 * len(text)
            while len(text) <= wanted and not body.ended:
                text += await body.next() or b""

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _query(self, user: User, want: Asked, sql: str, first_keyword: str) -> None:
        runtime = self._runtime
        sql = sql.rstrip(_ENDING)
        if not sql:
            raise StoreError(62, "Syntax error: failed at position 1 (end of query): Empty query")

        def begin() -> None:
            verdict = self._judge(user.role, want, sql)
            output_format = verdict.format or want.default_format
            streams = first_keyword in ("SELECT", "WITH", "FROM", "") and formats.streamable(output_format)
            if self._request.method in ("GET", "HEAD"):
                refuse_on_get(verdict, first_keyword)
            settings = dict(want.settings)
            if not streams:
                settings.setdefault("max_result_bytes", str(runtime.options.max_result_buffer_bytes))
            handle = self._take(user, want, settings)
            if verdict.keeps_state or (not verdict.reads_only and self._session is not None):
                handle.own_settings = True
            rewrite = None
            if output_format.lower() == "native" and native.respects(want.protocol_version) and verdict.reads_only:
                rewrite = native.Rewriter(self._describe(user, want, sql, settings))
            make = Stream if streams and verdict.reads_only else Whole
            result = make(handle, sql, output_format, want.params, rewrite)
            if not verdict.reads_only:
                self._require_written(user.role)
            if verdict.reads_only or result.summary.result_rows:
                self._format = output_format
            self._result = result
            result.fill(FIRST_BYTES)
            if result.ended:
                self._undo.close()
                self._restores = False

        async with self._lane.slot(), self._watch():
            try:
                whole = await self._send(begin, wait=want.wait_end_of_query)
            except BaseException:
                await self._abandon()
                raise
            await self._settle()
        if whole is not None and self._result is not None:
            # No other request waits for the thread of a client that reads slowly.
            await self._answer.whole(self._result.summary, self._format, whole)

    def _describe(self, user: User, want: Asked, sql: str, settings: Mapping[str, str]) -> Callable[[], Types]:
        """Return a function that determines the column types of a query while it runs."""
        engine, mine = self._runtime.engine, self._handle
        text = native.describing(sql)

        def ask(handle: Handle) -> Types:
            try:
                self._runtime.gate.judge(user.role, text, want.params)
                found = handle.query(text, "JSONCompactEachRow", want.params)
            except StoreError:
                return []
            return [tuple(json.loads(line)[:2]) for line in bytes(found.bytes()).splitlines()]

        def ask_another() -> Types:
            other = engine.take(user.role)
            try:
                with applied(other, settings, want.database, restore=False):
                    return ask(other)
            finally:
                engine.done(other)

        if mine is not None and (want.externals or mine.own_settings):
            # Its tables and settings are private, so it is asked before its query begins.
            types = ask(mine)
            return lambda: types
        return ask_another

    async def _send(self, begin: Callable[[], None], *, wait: bool) -> list[Block] | None:
        """Send results as they arrive; or return them if all arrived at once."""
        gathered: list[Block] = []
        size, most = 0, self._runtime.options.max_result_buffer_bytes
        answer = self._answer
        try:
            async with contextlib.aclosing(self._pieces(begin, wait=wait)) as pieces:
                async for result, blocks in pieces:
                    size += sum(map(len, blocks))
                    if answer.status:
                        await answer.more(blocks)
                    elif wait or result.ended:
                        gathered += blocks
                    else:
                        await answer.begin(result.summary, self._format or "")
                        await answer.more(blocks)
                    if wait and size > most:
                        raise _too_much(most)
        except StoreError as failure:
            if answer.status:
                await self._settle()
                await answer.break_off(failure)
            raise
        finally:
            self._runtime.metrics.sent_bytes.inc(size)
        if answer.status:
            await self._settle()
            await answer.end()
            return None
        return gathered

    async def _pieces(
        self, begin: Callable[[], None], *, wait: bool
    ) -> AsyncGenerator[tuple[Stream | Whole, list[Block]]]:
        """Yield the result in pieces: large ones while it is fast, available ones while it is slow."""
        work = begin
        while True:
            filling = asyncio.ensure_future(self._run(work))
            try:
                while not (await asyncio.wait({filling}, timeout=None if wait else FLUSH_SECONDS))[0]:
                    if self._result is not None and (blocks := self._result.take()):
                        yield self._result, blocks
                filling.result()
            finally:
                await self._stopped(filling)
            result = self._result
            assert result is not None
            if blocks := result.take():
                yield result, blocks
            if result.ended:
                return
            work = functools.partial(result.fill, CHUNK_BYTES)

    async def _abandon(self) -> None:
        """Stop a query whose result is no longer needed."""
        if self._result is not None and not self._result.ended:
            self._spoilt = True
            await self._kill()
            await self._lane.run(self._result.abandon)

    async def _kill(self) -> None:
        if self._handle is not None:
            await self._runtime.run_control(functools.partial(self._runtime.engine.kill, self._handle))

    async def _stopped(self, filling: asyncio.Future[None]) -> None:
        """Wait for a thread that still fills an abandoned result."""
        while not filling.done():
            await self._kill()
            await asyncio.wait({filling}, timeout=1)
        if not filling.cancelled():
            filling.exception()

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _insert(self, user: User, want: Asked, body: Body, text: bytearray, insert: statements.Insert) -> None:
        if self._request.method in ("GET", "HEAD"):
            refuse_on_get(Verdict("MUTATING", reads_only=False, keeps_state=False), "INSERT")
        if want.externals:
            raise StoreError(NOT_IMPLEMENTED, "An INSERT with external tables is not supported")
        head = insert.head.decode("utf-8", "surrogateescape")
        input_format = insert.format or (want.default_format if want.default_format != "TabSeparated" else "Values")
        gathered = bytearray(text[insert.data_at :])
        text.clear()
        # Before its rows are read: users who may not insert take no slot from those who may.
        await self._run(lambda: self._judge_insert(user.role, head, input_format, want))

        def prepare() -> Handle:
            if input_format.lower() == "values":
                if not body.ended:
                    raise StoreError(NOT_IMPLEMENTED, "INSERT ... VALUES is too long: insert with FORMAT JSONEachRow")
                self._runtime.gate.judge_values(user.role, bytes(gathered))
            return self._take(
                user, want, want.settings | {f"param_{name}": value for name, value in want.params.items()}
            )

        async with self._lane.uploads:
            await self._gather(body, gathered, self._runtime.options.insert_buffer_bytes)
            async with self._lane.inserts, self._lane.slot():
                handle = await self._run(prepare)
                judge = functools.partial(self._judge, user.role, want)
                summary = await self._write(handle, head, input_format, gathered, body, judge)
            await self._run(functools.partial(self._require_written, user.role))
        await self._settle()
        self._runtime.metrics.written_rows.inc(summary.written_rows)
        await self._answer.whole(summary, None)

    def _require_written(self, role: Role) -> None:
        """Raise if the data written by a statement may be incomplete."""
        writes.require_written(self._runtime.engine.failed_writes)
        if role is Role.OWNER:  # only the owner defines anything
            definitions.keep(self._runtime.options.data)

    def _judge_insert(self, role: Role, head: str, input_format: str, want: Asked) -> None:
        self._judge(role, want, statements.from_file(head, quote(ROWS), input_format), ROWS)
        if "log_comment" in head.lower():
            # It identifies an interrupted upload, which is cancelled before its first half is stored.
            raise StoreError(NOT_IMPLEMENTED, "An INSERT cannot set log_comment here")

    async def _gather(self, body: Body, gathered: bytearray, at_least: int) -> None:
        """Read rows until there are `at_least` bytes of them, or all."""
        while len(gathered) < at_least and (piece := await body.next()) is not None:
            gathered += piece

    async def _write(
        self, handle: Handle, head: str, input_format: str, gathered: bytearray, body: Body, judge: Judge
    ) -> Summary:
        metrics, seconds = self._runtime.metrics, self._runtime.options.body_timeout_seconds
        rows = await self._run(lambda: Rows(handle, head, input_format, self._runtime.engine.kill, judge))
        try:
            while True:
                data = bytes(gathered)
                gathered.clear()
                metrics.received_bytes.inc(len(data))
                if body.ended:
                    return await self._run(functools.partial(_last, rows, data))
                if data:
                    await self._run(functools.partial(rows.append, data))
                try:
                    # Others wait for this INSERT, so a client must not delay it indefinitely with single bytes.
                    async with asyncio.timeout(seconds):
                        await self._gather(body, gathered, _INSERT_HOP_BYTES)
                except TimeoutError:
                    raise StoreError(SOCKET_TIMEOUT, f"Less than 1 MiB of rows in {seconds:g} seconds") from None
        except BaseException:
            self._spoilt = True
            await self._lane.run(rows.cancel)
            raise

    # -- handles -------------------------------------------------------------------------------------------------------

    def _judge(self, role: Role, want: Asked, sql: str, rows_from: str = "") -> Verdict:
        gate = self._runtime.gate
        gate.judge_settings(role, want.settings)
        verdict = gate.judge(role, sql, want.params, rows_from)
        self._kind = verdict.kind.lower()
        return verdict

    def _take(self, user: User, want: Asked, settings: Mapping[str, str]) -> Handle:
        """Return a handle with the request's settings, database and tables."""
        runtime = self._runtime
        session = self._enter(user, want) if want.session_id else None
        for table in want.externals:
            runtime.gate.judge_table(creation(table))

        def judge(sql: str, rows_from: str) -> None:
            runtime.gate.judge(Role.WRITER, sql, {}, rows_from)

        if want.externals and not user.role.makes_tables:
            handle = self._handle = prepared(
                runtime.engine, user.role, want, session.handle if session else None, judge
            )
            session = None
        else:
            handle = self._handle = (session and session.handle) or runtime.engine.take(user.role)
        self._restores = session is not None
        self._undo.enter_context(applied(handle, settings, want.database, restore=session is not None))
        if session is not None:
            self._undo.enter_context(loaded(handle, want.externals, judge))
        elif want.externals and user.role.makes_tables:
            load(handle, want.externals, judge)
        return handle

    def _enter(self, user: User, want: Asked) -> Session:
        runtime = self._runtime
        session = self._session = runtime.call(lambda: runtime.sessions.enter(
            user.name, want.session_id, seconds=want.session_timeout, must_exist=want.session_check
        ))  # fmt: skip
        if session.handle is None:
            session.handle = runtime.engine.take(user.role)
        session.handle.take_role()
        return session

    async def _settle(self) -> None:
        """Restore the handle's settings and release a session, before the response ends."""
        session, self._session = self._session, None
        if self._restores:
            self._restores = False
            try:
                await self._lane.run(self._undo.close)
            except StoreError:
                self._spoilt = True
        if session is None:
            return
        if session.handle is not self._handle:
            # A reader's external tables were on a separate handle.
            self._runtime.sessions.leave(session)
            return
        self._handle = None
        if self._spoilt or session.handle is None:
            self._runtime.sessions.drop(session)
            if session.handle is not None:
                await self._lane.run(session.handle.close)
        else:
            self._runtime.sessions.leave(session)

    async def _release(self) -> None:
        await self._settle()
        handle, self._handle = self._handle, None
        if handle is not None:
            self._runtime.discard(handle)

    async def _run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work in a thread."""
        return await self._lane.run(work)

    async def _brief(self, size: int, work: Callable[[], _T]) -> _T:
        """Run work that takes time in proportion to `size` bytes: in the event loop if they are few."""
        return work() if size <= _IN_LOOP_BYTES else await self._runtime.run_codec(work)

    @contextlib.asynccontextmanager
    async def _watch(self) -> AsyncIterator[None]:
        """Cancel the engine's query if the client disconnects while it runs."""

        async def watch() -> None:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    break
            await self._kill()

        task = asyncio.create_task(watch())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def _last(rows: Rows, data: bytes) -> Summary:
    if data:
        rows.append(data)
    return rows.finish()


def _too_much(most: int) -> StoreError:
    return StoreError(
        TOO_MANY_ROWS_OR_BYTES,
        f"wait_end_of_query gathers at most {most} bytes: leave it out, or raise --max-result-buffer-bytes",
    )


def _too_long(limit: int, flag: str) -> StoreError:
    return StoreError(
        QUERY_IS_TOO_LARGE,
        f"The statement is longer than {limit} bytes: raise {flag}, or send rows by INSERT ... FORMAT",
    )
