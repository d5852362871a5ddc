"""The embedded engine: opening it, and handles that carry one role each.

The engine knows a single user. Rights are roles defined in its users file, and a *handle* (one engine connection) takes
one role, with that role's limits, before a client's statement reaches it. The engine then checks every access itself. A
handle can be used from any thread, one call at a time. Outside sessions it serves one request and is discarded, so that
nothing of a request (its database, settings, tables or changes of its role) can reach another. One exception: a handle that
ran only queries, each to its end, which leave nothing on it, may run another query of the same role with the same
settings and database.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from assay_store import config, definitions
from assay_store.errors import SYNTAX_ERROR, StoreError, from_engine
from assay_store.lock import DataDirectoryError
from assay_store.roles import STAGING_ROLE, Limits, Role

_READY_PER_ROLE = 4
"""New handles kept ready for each role.

Creating one takes 2 ms, most of it for the limits of the role.
"""

_KEPT_PER_ROLE = 4
"""Used handles kept for further queries of a role."""

_QUERIES_MAX = 500
"""Queries that run on one handle at most: nothing that the engine may collect for it grows without bound."""

_PARSER_SECONDS = 10
"""Maximum seconds for a query about a text."""


def quote(text: str) -> str:
    """Return a string literal of the engine."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def text_bytes(sql: str) -> bytes:
    """Return the bytes of a statement as sent by the client; non-UTF-8 bytes are surrogates in the str."""
    return sql.encode("utf-8", "surrogateescape")


def quote_name(name: str) -> str:
    """Return a quoted identifier of the engine."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


class Handle:
    """One connection to the engine under one role."""

    def __init__(self, connection: Any, role: Role, name: str) -> None:
        self.connection = connection
        self.role = role
        self.name = name
        self.base: dict[str, object] = {}
        """The settings with which every request of this handle begins."""
        self.own_settings = False
        """True if a client's SET changed settings of this handle (in a session)."""
        self.asked: Hashable = None
        """The settings and database of the request that it serves; None if others must not use it."""
        self.queries = 0
        """Queries that ran on it to their end, and left it as it was."""

    def query(self, sql: str, output_format: str = "Null", params: Mapping[str, str] | None = None) -> Any:
        """Run a statement to its end.

        Returns:
            The engine's result (`bytes()`, `rows_read()`, `storage_rows_read()`, `rows_written()`, `elapsed()`).

        Raises:
            StoreError: with the engine's code and message, or it is not one statement (62).
        """
        self._require_one(sql)
        try:
            return self.connection.query(text_bytes(sql), output_format, params=dict(params or {}))
        except (RuntimeError, ValueError, TypeError) as failure:
            raise from_engine(failure) from None

    def stream(self, sql: str, output_format: str, params: Mapping[str, str]) -> Any:
        """Start a query whose blocks are fetched one by one.

        Raises:
            StoreError: as `query`.
        """
        self._require_one(sql)
        try:
            return self.connection.send_query(text_bytes(sql), output_format, params=dict(params))
        except (RuntimeError, ValueError, TypeError) as failure:
            raise from_engine(failure) from None

    def _require_one(self, sql: str) -> None:
        # The engine runs several statements one after another; no client intends that.
        if self.connection.classify_query(text_bytes(sql))["statement_count"] > 1:
            raise StoreError(SYNTAX_ERROR, "Multi-statements are not allowed: send one statement per request")

    def text(self, sql: str, params: Mapping[str, str] | None = None) -> str:
        """Return the result of a statement as tab-separated text."""
        return bytes(self.query(sql, "TabSeparated", params).bytes()).decode("utf-8", "replace")

    def set(self, settings: Mapping[str, object]) -> None:
        """Change settings of this handle.

        Raises:
            StoreError: a setting is unknown (115), has a bad value, or this role must not change it (164, 452).
        """
        if settings:
            pairs = ", ".join(f"{quote_name(name)} = {quote(str(value))}" for name, value in settings.items())
            self.query(f"SET {pairs}")

    def use(self, database: str) -> None:
        """Change the current database of this handle."""
        self.query(f"USE {quote_name(database)}")

    def take_role(self) -> None:
        """Set the handle's role again, regardless of the current one: before every request of a session."""
        self.query(f"SET ROLE {self.role.value}")

    def close(self) -> None:
        """Return the connection to the engine."""
        with contextlib.suppress(RuntimeError):
            self.connection.close()


_FAILED_WRITES = "SELECT sum(value) FROM system.events WHERE event = 'WriteBufferFromFileDescriptorWriteFailed'"


def _setting_names(connect: Callable[[str], Any]) -> tuple[list[str], int]:
    """Return all settings of this engine version, and the failed writes of a temporary in-memory engine.

    It is closed again and takes 0.1 s.
    """
    connection = connect(":memory:")
    try:
        names, failed = (
            bytes(connection.query(sql, "TSVRaw", params={}).bytes()).decode().split()
            for sql in ("SELECT name FROM system.settings", _FAILED_WRITES)
        )
        return names, int(failed[0])
    finally:
        connection.close()


class Engine:
    """The engine of one data directory. At most one per process; never fork after opening it."""

    def __init__(self, data: Path, max_memory_bytes: int, keep_free_bytes: int, limits: Mapping[Role, Limits]) -> None:
        self._data = data
        self._max_memory_bytes = max_memory_bytes
        self._keep_free_bytes = keep_free_bytes
        self.limits = dict(limits)
        self._ready: dict[Role, list[Handle]] = {role: [] for role in Role}
        self._kept: dict[Role, list[Handle]] = {role: [] for role in Role}
        self._parsers: list[Handle] = []
        self._lock = threading.Lock()
        self._names = itertools.count(1)
        self._failed_before = 0
        self._address = ""
        self._anchor: Any = None
        self._control: Handle | None = None
        self._control_lock = threading.Lock()
        self.version = ""

    def open(self) -> None:
        """Load the engine, open the data directory and run warm-up queries.

        Raises:
            DataDirectoryError: the engine cannot open the directory.
        """
        if any(character in str(self._data) for character in "?&#%"):
            raise DataDirectoryError(
                f"data directory {self._data} has one of ?&#% in its path: pass another with --data"
            )
        # Half a second and 250 MB: only when a store really starts.
        chdb = importlib.import_module("chdb._chdb")

        # On a full disk, engines in memory fail to write files that are not needed.
        settings, self._failed_before = _setting_names(chdb.connect)
        main = config.write(self._data, self._max_memory_bytes, self._keep_free_bytes, self.limits, settings)
        self._address = f"{config.engine_directory(self._data)}?config-file={main}"
        self._connect: Callable[[str], Any] = chdb.connect
        definitions.mend(self._data)
        try:
            self._anchor = self._connect(self._address)
        except RuntimeError as failure:
            raise DataDirectoryError(f"the engine cannot open {self._data}: {str(failure)[:500]}") from None
        self._control = self._new(Role.OWNER)
        self.version = self._control.text("SELECT version()").strip()
        for role in Role:
            handle = self.acquire(role)
            if handle.text("SELECT currentRoles(), currentDatabase()") != f"['{role.value}']\tdefault\n":
                raise DataDirectoryError(
                    f"the engine does not keep to the role {role.value}: is this its pinned version?"
                )
            handle.query("SELECT count(), sum(number) FROM numbers(10)", "Native")
            self.release(handle)
        if not self.failed_writes():
            definitions.keep(self._data)

    def close(self) -> None:
        """Close every handle and the engine, which flushes its data."""
        with self._lock:
            control, self._control = self._control, None
            handles = [
                handle for of in (self._ready, self._kept) for some in of.values() for handle in some
            ] + self._parsers
            self._ready, self._kept, self._parsers = {role: [] for role in Role}, {role: [] for role in Role}, []
        for handle in handles:
            handle.close()
        if control is not None:
            control.close()
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None

    def acquire(self, role: Role) -> Handle:
        """Return an unused handle of this role."""
        with self._lock:
            if self._ready[role]:
                return self._ready[role].pop()
        return self._new(role)

    def acquire_kept(self, role: Role, asked: Hashable) -> Handle | None:
        """Return a handle that was kept after a query of this role, asked in the same way; None without one."""
        with self._lock:
            kept = self._kept[role]
            place = next((place for place, handle in enumerate(kept) if handle.asked == asked), None)
            return None if place is None else kept.pop(place)

    def keep(self, handle: Handle) -> Handle | None:
        """Keep a handle that ran one query to its end. Returns the one to release instead, if any."""
        handle.queries += 1
        with self._lock:
            if handle.queries >= _QUERIES_MAX or self._control is None:
                return handle
            kept = self._kept[handle.role]
            kept.append(handle)
            return kept.pop(0) if len(kept) > _KEPT_PER_ROLE else None

    def release(self, handle: Handle) -> None:
        """Discard a used handle, and prepare a new one for the next request of its role."""
        handle.close()
        with self._lock:
            enough = len(self._ready[handle.role]) >= _READY_PER_ROLE or self._control is None
        if not enough:
            with contextlib.suppress(StoreError, RuntimeError):
                fresh = self._new(handle.role)
                with self._lock:
                    self._ready[handle.role].append(fresh)

    def fresh(self, role: Role, prepare: Callable[[Handle], None]) -> Handle:
        """Return a new handle on which `prepare` ran under the staging role, before it takes its own.

        For external data of a request: readers cannot create tables, not even temporary ones.
        """
        handle = self._connect_unconfigured(role)
        try:
            handle.query(f"SET ROLE {STAGING_ROLE}")
            handle.set({"log_comment": handle.name, **config.limit_settings(self.limits[role])})
            prepare(handle)
            self._configure(handle)
        except BaseException:
            handle.close()
            raise
        return handle

    def kill(self, handle: Handle) -> None:
        """Cancel the query of this handle. Returns at once; the running call then fails with code 394."""
        with contextlib.suppress(StoreError):
            self.control(f"KILL QUERY WHERE Settings['log_comment'] = {quote(handle.name)} ASYNC FORMAT Null")

    def kill_all(self) -> None:
        """Cancel every client's query."""
        with contextlib.suppress(StoreError):
            self.control("KILL QUERY WHERE Settings['log_comment'] LIKE 'assay-%' ASYNC FORMAT Null")

    def control(self, sql: str, params: Mapping[str, str] | None = None) -> str:
        """Run one of the server's own short statements, in parallel with the clients' statements."""
        with self._control_lock:
            if self._control is None:
                raise StoreError(236, "The store is stopping")
            return self._control.text(sql, params)

    def failed_writes(self) -> int:
        """Return the number of failed file writes since the data directory was opened (`writes`)."""
        return int(self.control(_FAILED_WRITES)) - self._failed_before

    def ask_parser(self, sql: str) -> str:
        """Run one of the server's own statements about a text, in parallel with everything else.

        Returns raw text.
        """
        with self._parser() as handle:
            return bytes(handle.query(sql, "TSVRaw").bytes()).decode("utf-8", "surrogateescape")

    def classify(self, sql: str) -> tuple[str, int]:
        """Return the engine's class of a text and the number of its statements.

        Classes: READ_ONLY, MUTATING, MUTATING_GLOBAL, CONTROL, UNKNOWN.
        """
        with self._parser() as handle:
            classified = handle.connection.classify_query(text_bytes(sql))
        return classified["query_class"].name, classified["statement_count"]

    @contextlib.contextmanager
    def _parser(self) -> Iterator[Handle]:
        """Provide a handle for queries about texts.

        Each has its own: a slow text delays no other, and no kill.
        """
        with self._lock:
            if self._control is None:
                raise StoreError(236, "The store is stopping")
            handle = self._parsers.pop() if self._parsers else None
        if handle is None:
            handle = self._connect_unconfigured(Role.OWNER)
            handle.set({"max_query_size": 1 << 26, "max_execution_time": _PARSER_SECONDS})
        try:
            yield handle
        finally:
            with self._lock:
                self._parsers.append(handle)

    def _connect_unconfigured(self, role: Role) -> Handle:
        return Handle(self._connect(self._address), role, f"assay-{next(self._names)}")

    def _new(self, role: Role) -> Handle:
        handle = self._connect_unconfigured(role)
        try:
            self._configure(handle)
        except BaseException:
            handle.close()
            raise
        return handle

    def _configure(self, handle: Handle) -> None:
        handle.take_role()
        settings: dict[str, object] = {"log_comment": handle.name, "async_insert": 0}
        if handle.role is Role.OWNER:
            # Views made here read with their creator's rights. A reader of `assay` therefore needs no right on
            # `assay_base`.
            settings |= {"default_normal_view_sql_security": "DEFINER", "default_view_definer": "CURRENT_USER"}
        else:
            settings |= config.limit_settings(self.limits[handle.role]) | config.LITERAL_VALUES
            settings |= {"result_overflow_mode": "throw", "priority": self.limits[handle.role].priority}
        handle.set(settings)
        # From here on the profile's constraints apply: settings that are not listed in `roles` keep their values.
        handle.query(f"SET profile = {quote(handle.role.value)}")
        if handle.role.read_only:
            handle.set({"readonly": 2})
            settings["readonly"] = 2
        handle.base = settings
