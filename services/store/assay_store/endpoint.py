"""The query endpoint: one exchange of the ClickHouse HTTP protocol."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import re
import secrets
import string
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TypeVar

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from assay_store import compression, formats, multipart, statements
from assay_store.body import Body, ClientGoneError
from assay_store.engine import Handle
from assay_store.errors import (
    ABORTED,
    ACCESS_DENIED,
    AUTHENTICATION_FAILED,
    NOT_IMPLEMENTED,
    QUERY_IS_TOO_LARGE,
    STD_EXCEPTION,
    StoreError,
)
from assay_store.execute import CHUNK_BYTES, FIRST_BYTES, Rows, Stream, Summary, Whole, applied, load_external
from assay_store.gate import Verdict, refuse_on_get
from assay_store.request import Asked, asked, credentials
from assay_store.roles import Role
from assay_store.runtime import Runtime
from assay_store.sessions import Session
from assay_store.users import User

log = logging.getLogger("assay_store")

_T = TypeVar("_T")
_TAG_LETTERS = string.ascii_lowercase
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STREAMING_KEYWORDS = frozenset({"SELECT", "WITH"})
_INSERT_HOP_BYTES = 1 << 20


class QueryEndpoint:
    """ASGI application for `/`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens, and count it."""
        await _Exchange(self._runtime, scope, receive, send).run()


class _Exchange:
    """One request and its answer."""

    def __init__(self, runtime: Runtime, scope: Scope, receive: Receive, send: Send) -> None:
        self._runtime = runtime
        self._request = Request(scope)
        self._receive = receive
        self._send = send
        self._started = time.monotonic()
        self._status = 0
        self._kind = "unknown"
        self._code = 0
        self._query_id = str(uuid.uuid4())
        self._default_format = ""
        self._body: Body | None = None
        self._handle: Handle | None = None
        self._session: Session | None = None
        self._encoder = compression.Encoder("")
        self._tag = "".join(secrets.choice(_TAG_LETTERS) for _ in range(16))
        self._spoilt = False
        self._undo = contextlib.ExitStack()
        self._restores = False

    async def run(self) -> None:
        """See QueryEndpoint."""
        runtime = self._runtime
        runtime.metrics.running.inc()
        try:
            await self._answer()
        except StoreError as failure:
            await self._settle()
            await self._fail(failure)
        except ClientGoneError:
            self._code, self._spoilt = ABORTED, True
        except Exception as failure:  # noqa: BLE001  the last line of defence: the message may quote rows, so only its class is kept
            log.error("%r: %s", self._query_id, type(failure).__name__)
            await self._fail(StoreError(STD_EXCEPTION, f"Internal error of the store: {type(failure).__name__}"))
        finally:
            await self._release()
            seconds = time.monotonic() - self._started
            runtime.metrics.running.dec()
            runtime.metrics.requests.labels(self._kind, str(self._status or "closed")).inc()
            runtime.metrics.seconds.labels(self._kind).observe(seconds)
            log.debug("%r: %s, %.6f s, code %d", self._query_id, self._kind, seconds, self._code)

    # -- what is asked -------------------------------------------------------------------------------------------------

    async def _answer(self) -> None:
        runtime = self._runtime
        headers = {name.lower(): value for name, value in self._request.headers.items()}
        url = dict(self._request.query_params)
        user = self._authenticate(url, headers)
        if not runtime.accepting:
            raise StoreError(ABORTED, "The store is stopping")
        body = self._body = Body(
            self._receive,
            compression.decoder(headers.get("content-encoding", "")),
            runtime.options.body_timeout_seconds,
        )
        files: dict[str, bytes] = {}
        content_type = headers.get("content-type", "")
        if content_type.lower().startswith("multipart/form-data"):
            limit = runtime.options.max_external_bytes
            form = multipart.parse(content_type, await body.rest(limit, "raise --max-external-bytes or send less"))
            url |= form.fields
            files = form.files
        want = asked(url, headers, files)
        self._query_id = want.query_id or self._query_id
        self._encoder = compression.Encoder(
            compression.negotiate(headers.get("accept-encoding", ""), want.compress_response)
        )
        await self._dispatch(user, want, body)

    def _authenticate(self, url: Mapping[str, str], headers: Mapping[str, str]) -> User:
        given = credentials(url, headers)
        user = self._runtime.users.check(given.name, given.password)
        if user is None:
            raise StoreError(
                AUTHENTICATION_FAILED,
                f"{given.name}: Authentication failed: password is incorrect, or there is no user with such name.",
            )
        return user

    async def _dispatch(self, user: User, want: Asked, body: Body) -> None:
        text, recognised = await self._recognise(want, body)
        if isinstance(recognised, statements.Insert):
            await self._insert(user, want, body, text, recognised)
            return
        limit = self._runtime.options.max_statement_bytes
        text += await body.rest(limit, "raise --max-statement-bytes, or send rows by INSERT ... FORMAT")
        try:
            sql = bytes(text).decode()
        except UnicodeDecodeError:
            raise StoreError(
                NOT_IMPLEMENTED, "A statement must be UTF-8; send binary values by INSERT ... FORMAT"
            ) from None
        await self._query(user, want, sql, recognised.first_keyword)

    async def _recognise(self, want: Asked, body: Body) -> tuple[bytearray, statements.Insert | statements.Statement]:
        text = bytearray(want.sql.encode())
        if text:
            text += b"\n"
        limit = self._runtime.options.max_statement_bytes
        while True:
            found = statements.recognise(bytes(text), complete=body.ended)
            if not isinstance(found, statements.NeedMore):
                return text, found
            piece = await body.next()
            if piece is not None:
                text += piece
            if len(text) > limit:
                raise StoreError(
                    QUERY_IS_TOO_LARGE, f"The statement is longer than {limit} bytes: raise --max-statement-bytes"
                )

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _query(self, user: User, want: Asked, sql: str, first_keyword: str) -> None:
        runtime = self._runtime
        sql = sql.rstrip()
        while sql.endswith(";"):
            sql = sql[:-1].rstrip()
        if not sql:
            raise StoreError(62, "Syntax error: failed at position 1 (end of query): Empty query")
        output = statements.output_format(sql.encode()) if first_keyword != "INSERT SELECT" else None
        output_format = output or want.default_format
        streams = first_keyword in _STREAMING_KEYWORDS and formats.streamable(output_format)

        def begin() -> tuple[Stream | Whole, bytes]:
            verdict = self._judge(user.role, sql, want)
            if self._request.method in ("GET", "HEAD"):
                refuse_on_get(verdict, first_keyword)
            handle = self._take(user, want)
            if verdict.keeps_state:
                handle.tainted = handle.own_settings = True
            settings = dict(want.settings)
            if not streams:
                settings.setdefault("max_result_bytes", str(runtime.options.max_result_buffer_bytes))
            self._undo.enter_context(applied(handle, settings, want.database, restore=self._session is not None))
            make = Stream if streams and verdict.reads_only else Whole
            result = make(handle, sql, output_format, want.params)
            first = result.next(FIRST_BYTES) or b""
            if result.ended:
                self._undo.close()
                self._restores = False
            return result, first

        async with runtime.slot(), self._watch():
            result, first = await self._run(begin)
            try:
                await self._send_result(result, first, output_format, whole=want.wait_end_of_query)
            except BaseException:
                self._spoilt = True
                if self._handle is not None:
                    await runtime.run_control(functools.partial(runtime.engine.kill, self._handle))
                await runtime.run(result.abandon)
                raise

    async def _send_result(self, result: Stream | Whole, first: bytes, output_format: str, *, whole: bool) -> None:
        following = None if result.ended else await self._run(lambda: result.next(CHUNK_BYTES))
        while whole and following is not None:
            first += following
            following = None if result.ended else await self._run(lambda: result.next(CHUNK_BYTES))
        headers = self._headers(result.summary, output_format if first or result.summary.result_rows else None)
        self._runtime.metrics.sent_bytes.inc(len(first))
        if following is None:
            await self._settle()
            await self._complete(200, headers, first)
            return
        await self._start(200, headers)
        try:
            await self._part(self._encoder.encode(first))
            while following is not None:
                self._runtime.metrics.sent_bytes.inc(len(following))
                await self._part(self._encoder.encode(following))
                following = None if result.ended else await self._run(lambda: result.next(CHUNK_BYTES))
        except StoreError as failure:
            # As current servers do: the error stands in the body between two tags, and the body ends without its end.
            self._code = failure.code
            message = failure.body(self._runtime.engine.version).encode()
            tag = self._tag.encode()
            block = b"\r\n__exception__\r\n%b\r\n%b\n%d %b\r\n__exception__\r\n" % (
                tag,
                message.rstrip(b"\n"),
                len(message),
                tag,
            )
            await self._part(self._encoder.encode(block) + self._encoder.finish())
            self._spoilt = True
            raise ClientGoneError from None
        await self._settle()
        await self._part(self._encoder.finish(), last=True)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def _insert(self, user: User, want: Asked, body: Body, text: bytearray, insert: statements.Insert) -> None:
        runtime = self._runtime
        if self._request.method in ("GET", "HEAD"):
            refuse_on_get(Verdict("MUTATING", reads_only=False, keeps_state=False), "INSERT")
        if want.externals:
            raise StoreError(NOT_IMPLEMENTED, "An INSERT with external tables is not supported")
        try:
            head = insert.head.decode()
        except UnicodeDecodeError:
            raise StoreError(NOT_IMPLEMENTED, "A statement must be UTF-8") from None
        input_format = insert.format or (want.default_format if want.default_format != "TabSeparated" else "Values")
        gathered = bytearray(text[insert.data_at :])
        text.clear()

        def prepare() -> Handle:
            self._judge(user.role, f"{head} FORMAT {input_format}", want)
            if "log_comment" in head.lower():
                # It is how an upload that was cut off is cancelled before its half is stored.
                raise StoreError(NOT_IMPLEMENTED, "An INSERT cannot set log_comment here")
            if input_format.lower() == "values":
                if not body.ended:
                    raise StoreError(NOT_IMPLEMENTED, "INSERT ... VALUES is too long: insert with FORMAT JSONEachRow")
                runtime.gate.judge_values(user.role, bytes(gathered))
            handle = self._take(user, want)
            settings = dict(want.settings) | {f"param_{name}": value for name, value in want.params.items()}
            self._undo.enter_context(applied(handle, settings, want.database, restore=self._session is not None))
            return handle

        async with runtime.uploads:
            while len(gathered) < runtime.options.insert_buffer_bytes and (piece := await body.next()) is not None:
                gathered += piece
            async with runtime.writer, runtime.slot():
                handle = await self._run(prepare)
                summary = await self._write(handle, head, input_format, gathered, body)
        await self._settle()
        runtime.metrics.written_rows.inc(summary.written_rows)
        await self._complete(200, self._headers(summary, None), b"")

    async def _write(self, handle: Handle, head: str, input_format: str, gathered: bytearray, body: Body) -> Summary:
        metrics = self._runtime.metrics
        rows = await self._run(lambda: Rows(handle, head, input_format, self._runtime.engine.kill))
        try:
            while True:
                data = bytes(gathered)
                gathered.clear()
                metrics.received_bytes.inc(len(data))
                if body.ended:
                    return await self._run(functools.partial(_last, rows, data))
                if data:
                    await self._run(functools.partial(rows.append, data))
                while len(gathered) < _INSERT_HOP_BYTES and (piece := await body.next()) is not None:
                    gathered += piece
        except BaseException:
            self._spoilt = True
            await self._runtime.run(rows.cancel)
            raise

    # -- handles -------------------------------------------------------------------------------------------------------

    def _judge(self, role: Role, sql: str, want: Asked) -> Verdict:
        verdict = self._runtime.gate.judge(role, sql, want.params)
        self._kind = verdict.kind.lower()
        return verdict

    def _take(self, user: User, want: Asked) -> Handle:
        runtime = self._runtime
        if want.session_id:
            if want.externals and user.role.read_only:
                raise StoreError(ACCESS_DENIED, f"{user.role.value}: external tables are not allowed inside a session")
            self._session = runtime.call(lambda: runtime.sessions.enter(
                user.name, want.session_id, seconds=want.session_timeout, must_exist=want.session_check,
                role=user.role, make=runtime.engine.take,
            ))  # fmt: skip
            self._handle = self._session.handle
            self._restores = True
            load_external(want.externals)(self._handle)
        elif want.externals:
            for table in want.externals:
                runtime.gate.judge(Role.WRITER, f"CREATE TEMPORARY TABLE t ({table.columns})", {})
            self._handle = runtime.engine.fresh(user.role, load_external(want.externals))
        else:
            self._handle = runtime.engine.take(user.role)
        return self._handle

    async def _settle(self) -> None:
        """Put the handle's settings back and give a session free: before the end of the answer, which lets the client go on."""
        runtime, session = self._runtime, self._session
        if self._restores:
            self._restores = False
            try:
                await runtime.run(self._undo.close)
            except StoreError:
                self._spoilt = True
        if session is not None:
            self._session = self._handle = None
            if self._spoilt:
                runtime.sessions.drop(session)
                await runtime.run(session.handle.close)
            else:
                runtime.sessions.leave(session)

    async def _release(self) -> None:
        await self._settle()
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.tainted = handle.tainted or self._spoilt
            if handle.tainted:
                await self._runtime.run(lambda: self._runtime.engine.replace(handle))
            else:
                self._runtime.engine.give(handle)

    async def _run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; an error of it leaves the handle unfit for reuse."""
        try:
            return await self._runtime.run(work)
        except BaseException:
            if self._handle is not None and self._session is None:
                self._handle.tainted = True
            raise

    @contextlib.asynccontextmanager
    async def _watch(self) -> AsyncIterator[None]:
        """Cancel the engine's query if the client goes away while it runs."""

        async def watch() -> None:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    break
            if self._handle is not None:
                await self._runtime.run_control(functools.partial(self._runtime.engine.kill, self._handle))

        task = asyncio.create_task(watch())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    # -- the answer ----------------------------------------------------------------------------------------------------

    def _headers(self, summary: Summary, output_format: str | None) -> dict[str, str]:
        headers = {
            "Content-Type": formats.content_type(output_format or self._default_format or "TabSeparated"),
            "X-ClickHouse-Server-Display-Name": self._runtime.display_name,
            "X-ClickHouse-Query-Id": self._query_id,
            "X-ClickHouse-Timezone": "UTC",
            "X-ClickHouse-Exception-Tag": self._tag,
            "X-ClickHouse-Summary": summary.header(),
        }
        if output_format:
            headers["X-ClickHouse-Format"] = output_format
        return headers

    async def _fail(self, failure: StoreError) -> None:
        self._code = failure.code
        if self._status:
            return
        body = self._body
        if body is not None and not body.ended:
            # The client may still be sending: it has to be heard out, or it sees a reset connection and not the answer.
            with contextlib.suppress(StoreError, ClientGoneError):
                async with asyncio.timeout(self._runtime.options.body_timeout_seconds):
                    while await body.next() is not None:
                        pass
        headers = self._headers(Summary(), None)
        headers["Content-Type"] = "text/plain; charset=UTF-8"
        headers["X-ClickHouse-Exception-Code"] = str(failure.code)
        with contextlib.suppress(OSError, TimeoutError):
            await self._complete(failure.http_status, headers, failure.body(self._runtime.engine.version).encode())

    async def _complete(self, status: int, headers: dict[str, str], data: bytes) -> None:
        encoded = self._encoder.encode(data) + self._encoder.finish() if data else b""
        if not encoded:
            self._encoder = compression.Encoder("")
        headers["Content-Length"] = str(len(encoded))
        await self._start(status, headers)
        await self._part(encoded if self._request.method != "HEAD" else b"", last=True)

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        if self._encoder.encoding:
            headers["Content-Encoding"] = self._encoder.encoding
        self._status = status
        # The client chose some of the values (its query_id): no control character of theirs may begin a header of its own.
        raw = [(name.lower().encode(), _CONTROL.sub("?", value).encode()) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _part(self, data: bytes, *, last: bool = False) -> None:
        if data or last:
            await self._send({"type": "http.response.body", "body": data, "more_body": not last})


def _last(rows: Rows, data: bytes) -> Summary:
    if data:
        rows.append(data)
    return rows.finish()
