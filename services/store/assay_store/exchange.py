"""One authenticated request: what its statement runs with, and the engine's handle that it holds."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from assay_store.answer import Answer
from assay_store.body import Body
from assay_store.engine import Handle
from assay_store.errors import StoreError
from assay_store.execute import applied, apply, asking, creation, load, loaded, prepared
from assay_store.request import QueryRequest
from assay_store.roles import Role
from assay_store.runtime import Lane, Runtime
from assay_store.sessions import Session
from assay_store.sql_policy import Verdict
from assay_store.users import User

_T = TypeVar("_T")


class Lease:
    """The handle that a request runs on, and the session it may belong to.

    `take`, then `settle` before the response ends, and always `release`.
    """

    def __init__(self, runtime: Runtime, lane: Lane) -> None:
        self._runtime = runtime
        self._lane = lane
        self._undo: contextlib.ExitStack | None = None
        self._reusable = True
        self._completed = False
        self.session: Session | None = None
        self.handle: Handle | None = None

    def take(self, user: User, request: QueryRequest, settings: Mapping[str, str], *, queries: bool = False) -> Handle:
        """Return a handle with the request's settings, database and tables. Blocks.

        `queries`: the statement is a query, which leaves nothing on the handle, so that one that served another may serve it.
        """
        runtime = self._runtime
        if queries and user.role.restricted and not request.session_id and not request.externals:
            handle = self.handle = asking(runtime.engine, user.role, settings, request.database)
            return handle
        session = self._enter(user, request) if request.session_id else None
        for table in request.externals:
            runtime.sql_policy.check_table(creation(table))

        def check(sql: str, rows_from: str) -> None:
            runtime.sql_policy.check(Role.WRITER, sql, {}, rows_from)

        if request.externals and not user.role.makes_tables:
            handle = self.handle = prepared(
                runtime.engine, user.role, request, session.handle if session else None, check
            )
            session = None
        else:
            handle = self.handle = (session and session.handle) or runtime.engine.acquire(user.role)
        if session is not None:
            undo = self._undo = contextlib.ExitStack()
            undo.enter_context(applied(handle, settings, request.database))
            undo.enter_context(loaded(handle, request.externals, check))
        else:  # the handle is used once, so nothing is restored
            apply(handle, settings, request.database)
            if request.externals and user.role.makes_tables:
                load(handle, request.externals, check)
        return handle

    def restore(self) -> None:
        """Restore the settings and database that the session's handle had. Blocks."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo.close()

    def complete(self) -> None:
        """Note that the statement ran to its end, without an error."""
        self._completed = True

    def spoil(self) -> None:
        """Note that the handle's state is unknown, so that nothing else uses it."""
        self._reusable = False

    async def kill(self) -> None:
        """Cancel what runs on the handle. Nothing else uses it afterwards: it would be cancelled in its place."""
        self.spoil()
        if self.handle is not None:
            await self._runtime.run_control(functools.partial(self._runtime.engine.kill, self.handle))

    async def settle(self) -> None:
        """Restore the handle's settings and release a session, before the response ends."""
        session, self.session = self.session, None
        if self._undo is not None:
            try:
                await self._lane.run(self.restore)
            except StoreError:
                self.spoil()
        if session is None:
            return
        if session.handle is not self.handle:
            # A reader's external tables were on a separate handle.
            self._runtime.sessions.leave(session)
            return
        self.handle = None
        if self._reusable and session.handle is not None:
            self._runtime.sessions.leave(session)
            return
        self._runtime.sessions.drop(session)
        if session.handle is not None:
            await self._lane.run(session.handle.close)

    async def release(self) -> None:
        """Settle, and give up a handle that is left."""
        await self.settle()
        handle, self.handle = self.handle, None
        if handle is not None and handle.asked is not None and self._completed and self._reusable:
            handle = self._runtime.engine.keep(handle)
        if handle is not None:
            self._runtime.discard(handle)

    def _enter(self, user: User, request: QueryRequest) -> Session:
        runtime = self._runtime
        session = self.session = runtime.call(lambda: runtime.sessions.enter(
            user.name, request.session_id, seconds=request.session_timeout, must_exist=request.session_check
        ))  # fmt: skip
        if session.handle is None:
            session.handle = runtime.engine.acquire(user.role)
        session.handle.take_role()
        return session


@dataclass(frozen=True)
class Exchange:
    """A request whose user is known: who asks, what for, and where the answer goes."""

    runtime: Runtime
    lane: Lane
    user: User
    request: QueryRequest
    #: A GET or HEAD request, which may only read.
    only_reads: bool
    body: Body
    answer: Answer
    lease: Lease
    #: Waits until the client has gone.
    client_gone: Callable[[], Awaitable[None]]

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work in a thread of the user's lane."""
        return await self.lane.run(work)

    def check(self, sql: str, rows_from: str = "") -> Verdict:
        """Return what a statement may do, or refuse it. Blocks. Raises StoreError."""
        sql_policy = self.runtime.sql_policy
        sql_policy.check_settings(self.user.role, self.request.settings)
        verdict = sql_policy.check(self.user.role, sql, self.request.params, rows_from)
        self.answer.kind = verdict.kind.lower()
        return verdict

    def take(self, settings: Mapping[str, str], *, queries: bool = False) -> Handle:
        """Return a handle for the request: see `Lease.take`."""
        return self.lease.take(self.user, self.request, settings, queries=queries)
