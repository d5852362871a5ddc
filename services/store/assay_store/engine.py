"""The embedded engine: opening it, and handles that carry one role each.

The engine knows a single user. Rights are roles defined in its users file, and a *handle* (one engine connection) takes one
role before a client's statement reaches it, together with that role's limits. The engine then checks every access itself.
A handle can be used from any thread, one call at a time.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assay_store import config
from assay_store.errors import StoreError, from_engine
from assay_store.lock import DataDirectoryError
from assay_store.roles import STAGING_ROLE, Limits, Role

_IDLE_PER_ROLE = 8


def quote(text: str) -> str:
    """A string literal of the engine."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def text_bytes(sql: str) -> bytes:
    """A statement as the bytes that a client sent: what is no UTF-8 in them stands in the str as surrogates."""
    return sql.encode("utf-8", "surrogateescape")


def quote_name(name: str) -> str:
    """A quoted identifier of the engine."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


class Handle:
    """One connection to the engine under one role."""

    def __init__(self, connection: Any, role: Role, name: str) -> None:
        self.connection = connection
        self.role = role
        self.name = name
        self.database = "default"
        self.base: dict[str, object] = {}
        """The settings every request of this handle begins with."""
        self.own_settings = False
        """Whether a client's SET changed settings of this handle (in a session)."""
        self.tainted = False
        """Whether a statement may have left state behind (settings, current database, temporary tables)."""

    def query(self, sql: str, output_format: str = "Null", params: Mapping[str, str] | None = None) -> Any:
        """Run a statement to its end.

        Returns:
            The engine's result (`bytes()`, `rows_read()`, `storage_rows_read()`, `rows_written()`, `elapsed()`).

        Raises:
            StoreError: with the engine's code and message.
        """
        try:
            return self.connection.query(text_bytes(sql), output_format, params=dict(params or {}))
        except (RuntimeError, ValueError, TypeError) as failure:
            raise from_engine(failure) from None

    def stream(self, sql: str, output_format: str, params: Mapping[str, str]) -> Any:
        """Start a query whose blocks are fetched one by one.

        Raises:
            StoreError: with the engine's code and message.
        """
        try:
            return self.connection.send_query(text_bytes(sql), output_format, params=dict(params))
        except (RuntimeError, ValueError, TypeError) as failure:
            raise from_engine(failure) from None

    def text(self, sql: str, params: Mapping[str, str] | None = None) -> str:
        """The result of a statement as tab-separated text."""
        return bytes(self.query(sql, "TabSeparated", params).bytes()).decode("utf-8", "replace")

    def set(self, settings: Mapping[str, object]) -> None:
        """Change settings of this handle.

        Raises:
            StoreError: a setting is unknown (115), has a bad value, or may not be changed by this role (164, 452).
        """
        if settings:
            pairs = ", ".join(f"{quote_name(name)} = {quote(str(value))}" for name, value in settings.items())
            self.query(f"SET {pairs}")

    def use(self, database: str) -> None:
        """Change the current database of this handle."""
        self.query(f"USE {quote_name(database)}")
        self.database = database

    def close(self) -> None:
        """Give the connection back to the engine."""
        with contextlib.suppress(RuntimeError):
            self.connection.close()


class Engine:
    """The engine of one data directory. At most one per process; never fork after opening it."""

    def __init__(self, data: Path, max_memory_bytes: int, keep_free_bytes: int, limits: Mapping[Role, Limits]) -> None:
        self._data = data
        self._max_memory_bytes, self._keep_free_bytes = max_memory_bytes, keep_free_bytes
        self.limits = dict(limits)
        self._idle: dict[Role, list[Handle]] = {role: [] for role in Role}
        self._lock = threading.Lock()
        self._names = itertools.count(1)
        self._address = ""
        self._anchor: Any = None
        self._control: Handle | None = None
        self._control_lock = threading.Lock()
        self.version = ""

    def open(self) -> None:
        """Load the engine, open the data directory and run the first queries, so that no client's query is the first.

        Raises:
            DataDirectoryError: the engine cannot open the directory.
        """
        if any(character in str(self._data) for character in "?&#%"):
            raise DataDirectoryError(
                f"data directory {self._data} has one of ?&#% in its path: pass another with --data"
            )
        # Half a second and 250 MB: only when a store really starts.
        chdb = importlib.import_module("chdb._chdb")

        main = config.write(self._data, self._max_memory_bytes, self._keep_free_bytes, self.limits)
        self._address = f"{config.engine_directory(self._data)}?config-file={main}"
        self._connect: Callable[[str], Any] = chdb.connect
        try:
            self._anchor = self._connect(self._address)
        except RuntimeError as failure:
            raise DataDirectoryError(f"the engine cannot open {self._data}: {str(failure)[:500]}") from None
        self._control = self._new(Role.OWNER)
        self.version = self._control.text("SELECT version()").strip()
        for role in Role:
            handle = self.take(role)
            handle.query("SELECT count(), sum(number) FROM numbers(10)", "Native")
            self.give(handle)

    def close(self) -> None:
        """Close every idle handle and the engine itself, which writes out what it holds."""
        with self._lock:
            handles = [handle for idle in self._idle.values() for handle in idle]
            self._idle = {role: [] for role in Role}
        for handle in handles:
            handle.close()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._anchor is not None:
            self._anchor.close()
            self._anchor = None

    def take(self, role: Role) -> Handle:
        """A clean handle of this role: an idle one or a new one (1 ms)."""
        with self._lock:
            if self._idle[role]:
                return self._idle[role].pop()
        return self._new(role)

    def give(self, handle: Handle) -> None:
        """Take back a handle that carries no state, for the next request."""
        with self._lock:
            idle = self._idle[handle.role]
            keep = not handle.tainted and len(idle) < _IDLE_PER_ROLE
            if keep:
                idle.append(handle)
        if not keep:
            handle.close()

    def replace(self, handle: Handle) -> None:
        """Close a handle that may carry state, and have a clean one ready for the next request of its role."""
        handle.close()
        with self._lock:
            spare = bool(self._idle[handle.role])
        if not spare:
            with contextlib.suppress(StoreError, RuntimeError):
                self.give(self._new(handle.role))

    def fresh(self, role: Role, prepare: Callable[[Handle], None]) -> Handle:
        """A new handle on which `prepare` ran under the staging role, before it takes its own.

        For external data of a request: readers may not create tables, not even temporary ones.
        """
        handle = self._bare(role)
        try:
            handle.query(f"SET ROLE {STAGING_ROLE}")
            handle.set({"log_comment": handle.name, **config.limit_settings(self.limits[role])})
            prepare(handle)
            self._dress(handle)
        except BaseException:
            handle.close()
            raise
        handle.tainted = True
        return handle

    def kill(self, handle: Handle) -> None:
        """Cancel whatever runs on this handle. Returns at once; the running call then fails with code 394."""
        with contextlib.suppress(StoreError):
            self.control(f"KILL QUERY WHERE Settings['log_comment'] = {quote(handle.name)} ASYNC FORMAT Null")

    def kill_all(self) -> None:
        """Cancel every client's query."""
        with contextlib.suppress(StoreError):
            self.control("KILL QUERY WHERE Settings['log_comment'] LIKE 'assay-%' ASYNC FORMAT Null")

    def control(self, sql: str, params: Mapping[str, str] | None = None) -> str:
        """Run one of the server's own short statements, beside the clients' and never waiting for them."""
        with self._control_lock:
            if self._control is None:
                raise StoreError(236, "The store is stopping")
            return self._control.text(sql, params)

    def classify(self, sql: str) -> tuple[str, int]:
        """The engine's own class of a text (READ_ONLY, MUTATING, MUTATING_GLOBAL, CONTROL, UNKNOWN) and its statements' number."""
        with self._control_lock:
            if self._control is None:
                raise StoreError(236, "The store is stopping")
            found = self._control.connection.classify_query(text_bytes(sql))
        return found["query_class"].name, found["statement_count"]

    def _bare(self, role: Role) -> Handle:
        return Handle(self._connect(self._address), role, f"assay-{next(self._names)}")

    def _new(self, role: Role) -> Handle:
        handle = self._bare(role)
        try:
            self._dress(handle)
        except BaseException:
            handle.close()
            raise
        return handle

    def _dress(self, handle: Handle) -> None:
        handle.query(f"SET ROLE {handle.role.value}")
        handle.query(f"SET profile = {quote(handle.role.value)}")
        settings: dict[str, object] = {"log_comment": handle.name, "async_insert": 0}
        if handle.role is Role.OWNER:
            # Views made here read with their maker's rights: that is what lets a reader of `assay` do without any right
            # on `assay_base`.
            settings |= {"default_normal_view_sql_security": "DEFINER", "default_view_definer": "CURRENT_USER"}
        else:
            settings |= config.limit_settings(self.limits[handle.role])
            settings["result_overflow_mode"] = "throw"
            if handle.role.read_only:
                settings["readonly"] = 2
        handle.set(settings)
        handle.base = settings
