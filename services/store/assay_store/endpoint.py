"""The query endpoint of the ClickHouse HTTP protocol.

Parse a request, authenticate its user, recognise its statement, and run it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TypeVar

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from assay_store import compression, multipart, statements
from assay_store.answer import LAST_WORDS_SECONDS, Answer
from assay_store.body import Body, ClientGoneError
from assay_store.engine import text_bytes
from assay_store.errors import ABORTED, AUTHENTICATION_FAILED, QUERY_IS_TOO_LARGE, STD_EXCEPTION, StoreError
from assay_store.exchange import Exchange, Lease
from assay_store.logins import PAUSE_SECONDS
from assay_store.reading import run_query
from assay_store.request import QueryRequest, credentials, parameters, query_request
from assay_store.runtime import Runtime
from assay_store.users import User
from assay_store.writing import run_insert

log = logging.getLogger("assay_store")

_T = TypeVar("_T")
_IN_LOOP_BYTES = 16 << 10
_METHODS = "GET, HEAD, POST, OPTIONS"
_READING_METHODS = ("GET", "HEAD")


class QueryEndpoint:
    """ASGI application for `/`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, also after an error, and count it."""
        runtime, http, started = self._runtime, Request(scope), time.monotonic()
        answer = Answer(
            send,
            method=http.method,
            thread=runtime.run_codec,
            pause_seconds=runtime.options.body_timeout_seconds,
            version=runtime.engine.version,
            headers={"X-ClickHouse-Server-Display-Name": runtime.display_name},
        )
        answer.query_id = str(uuid.uuid4())
        runtime.metrics.running.inc()
        try:
            await self._serve(http, receive, answer)
        except StoreError as failure:
            await answer.fail(failure)
        except ClientGoneError:
            answer.code = answer.code or ABORTED
        except Exception as failure:  # noqa: BLE001  the last line of defence: the message may quote rows, so only its class is kept
            log.error("%r: %s", answer.query_id, type(failure).__name__)
            await answer.fail(StoreError(STD_EXCEPTION, f"Internal error of the store: {type(failure).__name__}"))
        finally:
            seconds = time.monotonic() - started
            runtime.metrics.running.dec()
            runtime.metrics.requests.labels(answer.kind, str(answer.status or "closed")).inc()
            runtime.metrics.seconds.labels(answer.kind).observe(seconds)
            log.debug("%r: %s, %.6f s, code %d", answer.query_id, answer.kind, seconds, answer.code)
        if answer.broken_off:
            await asyncio.sleep(LAST_WORDS_SECONDS)

    async def _serve(self, http: Request, receive: Receive, answer: Answer) -> None:
        runtime, query = self._runtime, http.scope["query_string"]
        if http.method == "OPTIONS":
            await answer.nothing(204, {"Allow": _METHODS})
            return
        if http.method in _READING_METHODS and not query:
            await answer.text("Ok.\n")
            return
        headers = {name.lower(): value for name, value in http.headers.items()}
        url = await self._brief(len(query), lambda: parameters(query))
        user = await self._authenticate(http.scope, url, headers)
        if not runtime.accepting:
            raise StoreError(ABORTED, "The store is stopping")
        body = Body(
            receive,
            compression.decoder(headers.get("content-encoding", "")),
            runtime.run_codec,
            runtime.options.body_timeout_seconds,
        )
        lease = Lease(runtime, runtime.lane(user.role))
        try:
            request = await self._parse(url, headers, body)
            answer.query_id = request.query_id or answer.query_id
            answer.compress(compression.negotiate(headers.get("accept-encoding", ""), request.compress_response))
            await self._execute(Exchange(
                runtime=runtime, lane=runtime.lane(user.role), user=user, request=request,
                only_reads=http.method in _READING_METHODS, body=body, answer=answer, lease=lease,
                client_gone=functools.partial(_disconnected, receive),
            ))  # fmt: skip
        except ClientGoneError:
            lease.spoil()
            raise
        except Exception:
            await lease.settle()
            if not answer.status:
                await body.hear_out()
            raise
        finally:
            await lease.release()

    async def _authenticate(self, scope: Scope, url: Mapping[str, str], headers: Mapping[str, str]) -> User:
        runtime = self._runtime
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

    async def _parse(self, url: Mapping[str, str], headers: Mapping[str, str], body: Body) -> QueryRequest:
        """Return the request, with the fields and files of its form, if the body is one."""
        content_type = headers.get("content-type", "")
        if not content_type.lower().startswith("multipart/form-data"):
            return query_request(url, headers)
        sent = await body.rest(self._runtime.options.max_external_bytes, "raise --max-external-bytes or send less")
        form = await self._runtime.run_codec(lambda: multipart.parse(content_type, sent))
        return query_request({**url, **form.fields}, headers, form.files)

    async def _execute(self, exchange: Exchange) -> None:
        limit, flag = self._runtime.options.statement_limit(exchange.user.role)
        text, recognised = await self._recognise(exchange, limit, flag)
        if isinstance(recognised, statements.Insert):
            await run_insert(exchange, text, recognised)
            return
        text += await exchange.body.rest(limit, f"raise {flag}, or send rows by INSERT ... FORMAT")
        if len(text) > limit:
            raise _too_long(limit, flag)
        await run_query(exchange, bytes(text).decode("utf-8", "surrogateescape"), recognised.first_keyword)

    async def _recognise(
        self, exchange: Exchange, limit: int, flag: str
    ) -> tuple[bytearray, statements.Insert | statements.Statement]:
        body = exchange.body
        text = bytearray(text_bytes(exchange.request.sql))
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

    async def _brief(self, size: int, work: Callable[[], _T]) -> _T:
        """Run work that takes time in proportion to `size` bytes: in the event loop if they are few."""
        return work() if size <= _IN_LOOP_BYTES else await self._runtime.run_codec(work)


async def _disconnected(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _too_long(limit: int, flag: str) -> StoreError:
    return StoreError(
        QUERY_IS_TOO_LARGE,
        f"The statement is longer than {limit} bytes: raise {flag}, or send rows by INSERT ... FORMAT",
    )
