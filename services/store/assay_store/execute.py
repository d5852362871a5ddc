"""Run one statement on the engine. Every function here blocks, and is called from a thread pool."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_store import config, statements
from assay_store.engine import Engine, Handle, quote, quote_name
from assay_store.errors import ACCESS_DENIED, INCORRECT_DATA, StoreError, from_engine
from assay_store.request import External, QueryRequest
from assay_store.roles import DEFAULT_DATABASE, Role

FIRST_BYTES = 256 << 10
"""Bytes of a result collected before the response begins, so that short ones are sent in one piece with a length."""

PIPE_BYTES = 1 << 20
"""Size of the pipe through which the engine reads an INSERT's rows."""

CHUNK_BYTES = 1 << 20
"""Bytes of a long result collected for one write."""


Check = Callable[[str, str], object]
"""Refuses a statement (the first argument) that reads its rows from a file (the second)."""


@dataclass
class Summary:
    """Statistics of a statement: the numbers of the X-ClickHouse-Summary header."""

    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    result_rows: int = 0
    result_bytes: int = 0
    elapsed_seconds: float = 0.0

    def header(self) -> str:
        """Return the value of the header: JSON with numbers as strings, as a ClickHouse server writes it."""
        numbers = {
            "read_rows": self.read_rows,
            "read_bytes": self.read_bytes,
            "written_rows": self.written_rows,
            "written_bytes": self.written_bytes,
            "total_rows_to_read": self.read_rows,
            "result_rows": self.result_rows,
            "result_bytes": self.result_bytes,
            "elapsed_ns": int(self.elapsed_seconds * 1e9),
        }
        return json.dumps({name: str(value) for name, value in numbers.items()}, separators=(",", ":"))


@dataclass(frozen=True)
class Block:
    """Bytes of a result in the engine's memory; copying half a gigabyte would block all other threads.

    Attributes:
        view: the bytes, which are valid while `owner` lives.
    """

    view: memoryview
    owner: object = None

    def __len__(self) -> int:
        return len(self.view)


Rewrite = Callable[[Block], list[Block]]
"""Converts the bytes of one block."""


def _blocks(result: Any, rewrite: Rewrite | None) -> list[Block]:
    if not result.size():
        return []
    owner = result.get_memview()
    block = Block(owner.view(), owner)
    return [block] if rewrite is None else rewrite(block)


class Whole:
    """A statement that runs to its end before its result is available."""

    def __init__(
        self, handle: Handle, sql: str, output_format: str, params: Mapping[str, str], rewrite: Rewrite | None
    ) -> None:
        result = handle.query(sql, output_format, params)
        self.summary = Summary(
            read_rows=result.storage_rows_read(),
            read_bytes=result.storage_bytes_read(),
            written_rows=result.rows_written(),
            written_bytes=result.bytes_written(),
            result_rows=0 if result.rows_written() else result.rows_read(),
            result_bytes=0 if result.rows_written() else result.bytes_read(),
            elapsed_seconds=result.elapsed(),
        )
        self._blocks = _blocks(result, rewrite)

    ended = True
    """True if the engine is done."""

    def fill(self, _at_least: int) -> None:
        """Do nothing: the result is complete."""

    def take(self) -> list[Block]:
        """Return the remaining blocks: the whole result, then nothing."""
        blocks, self._blocks = self._blocks, []
        return blocks

    def abandon(self) -> None:
        """Do nothing: the statement has ended."""


class Stream:
    """A query whose result is available while it runs.

    One thread fills it; its current content can be taken at any time from another.
    """

    def __init__(
        self, handle: Handle, sql: str, output_format: str, params: Mapping[str, str], rewrite: Rewrite | None
    ) -> None:
        self._handle = handle
        self._rewrite = rewrite
        self.summary = Summary()
        self.ended = False
        self._lock = threading.Lock()
        self._blocks: list[Block] = []
        self._size = 0
        self._stream: Any = handle.stream(sql, output_format, params)

    def fill(self, at_least: int) -> None:
        """Run until `at_least` bytes are available, or to the end.

        Raises:
            StoreError: the query failed, perhaps after part of its result was taken.
        """
        while not self.ended and self._size < at_least:
            try:
                block = self._handle.connection.streaming_fetch_result(self._stream)
            except RuntimeError as failure:
                self.ended = True
                raise from_engine(failure) from None
            if block is not None:
                self._count(block)
                blocks = _blocks(block, self._rewrite)
                with self._lock:
                    self._blocks += blocks
                    self._size += block.size()
            self.ended = block is None or block.rows_read() == 0

    def take(self) -> list[Block]:
        """Return the blocks that were not taken yet."""
        with self._lock:
            blocks, self._blocks, self._size = self._blocks, [], 0
        return blocks

    def _count(self, block: Any) -> None:
        # The engine counts all reads up to a block in one total; a later block may report nothing new.
        self.summary.read_rows += block.storage_rows_read()
        self.summary.read_bytes += block.storage_bytes_read()
        self.summary.result_rows += block.rows_read()
        self.summary.result_bytes += block.size()
        self.summary.elapsed_seconds = max(self.summary.elapsed_seconds, block.elapsed())

    def abandon(self) -> None:
        """Stop the query. Call only when nothing fills it, and never use the handle again."""
        if not self.ended:
            self.ended = True
            with contextlib.suppress(RuntimeError):
                self._handle.connection.streaming_cancel_query(self._stream)


_directories: list[tempfile.TemporaryDirectory[str]] = []
"""Directories of unused pipes.

They serve one INSERT after another, so that equal statements are equal texts, and checked once.
"""


@contextlib.contextmanager
def _new_pipe() -> Iterator[Path]:
    """Create a pipe that exists until both its ends are open."""
    while True:
        directory = _directories.pop() if _directories else tempfile.TemporaryDirectory(prefix="assay-insert-")
        pipe = Path(directory.name) / "rows"
        try:
            os.mkfifo(pipe, 0o600)
            break
        except FileNotFoundError:
            continue  # another program deleted it
    try:
        yield pipe
        pipe.unlink()
    except BaseException:
        directory.cleanup()
        raise
    _directories.append(directory)


class Rows:
    """An INSERT whose rows arrive in pieces, through a pipe that the engine reads like a file.

    (The engine has its own interface for this, but it reports success for rows that a constraint or a limit refused.)

    Rows become visible block by block (1,048,449 rows or `max_insert_block_size`) and partition by partition: an insert
    that is cancelled or fails may leave some of its blocks. Send it again, into tables that recognize copies.
    """

    def __init__(
        self, handle: Handle, head: str, input_format: str, kill: Callable[[Handle], None], check: Check
    ) -> None:
        """Begin.

        Args:
            handle: that runs it.
            head: the statement up to its FORMAT or VALUES.
            input_format: of the rows.
            kill: cancels what runs on a handle.
            check: refuses the statement as it will run.
        """
        self._handle = handle
        self._kill = kill
        self._result: Any = None
        self._failure: StoreError | None = None
        with _new_pipe() as pipe:
            sql = statements.from_file(head, quote(str(pipe)), input_format)
            check(sql, str(pipe))
            self._thread = threading.Thread(target=self._insert, args=(sql,), name="insert", daemon=True)
            self._thread.start()
            self._pipe = self._open(pipe)

    def append(self, data: bytes) -> None:
        """Pass the next bytes of the rows to the engine.

        Raises:
            StoreError: the engine refused them; the insert is over.
        """
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._pipe, view) :]
        except BrokenPipeError:
            raise self._ended() from None

    def finish(self) -> Summary:
        """Write the remaining rows. They are on disk, as far as the kernel guarantees it, on return.

        Raises:
            StoreError: the engine could not write them all.
        """
        self._close()
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        rows, size = self._result.rows_written(), self._result.bytes_written()
        return Summary(
            read_rows=rows, read_bytes=size, written_rows=rows, written_bytes=size, result_rows=rows, result_bytes=size,
            elapsed_seconds=self._result.elapsed(),
        )  # fmt: skip

    def cancel(self) -> None:
        """Cancel: unwritten rows are dropped.

        The engine is notified before the pipe ends, so it does not see a normal end.
        """
        if self._pipe >= 0:
            self._kill(self._handle)
        self._close()
        self._thread.join()

    def _insert(self, sql: str) -> None:
        try:
            self._result = self._handle.query(sql)
        except StoreError as failure:
            self._failure = failure

    def _open(self, pipe: Path) -> int:
        """Return the writing end, once the engine has opened the other one.

        Raises the engine's earlier error, if any.
        """
        while True:
            try:
                descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                if not self._thread.is_alive():
                    raise self._ended() from None
                time.sleep(0.0005)
            else:
                os.set_blocking(descriptor, True)
                with contextlib.suppress(OSError):  # above the system's limit it stays unchanged, only slower
                    fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
                return descriptor

    def _ended(self) -> StoreError:
        """Return the error that made the engine stop reading."""
        self._close()
        self._thread.join()
        return self._failure or StoreError(INCORRECT_DATA, "The rows go on after the engine stopped reading them")

    def _close(self) -> None:
        pipe, self._pipe = getattr(self, "_pipe", -1), -1
        if pipe >= 0:
            os.close(pipe)


def creation(table: External) -> str:
    """Return the statement that creates a table sent with a request."""
    return f"CREATE TEMPORARY TABLE {quote_name(table.name)} ({table.columns}) ENGINE = Memory"


def load(handle: Handle, tables: list[External], check: Check, made: Callable[[str], object] = lambda _: None) -> None:
    """Create the tables sent with a request on its handle.

    `made` receives each name once its table exists.
    """
    for table in tables:
        handle.query(creation(table))
        made(table.name)
        rows = Rows(handle, f"INSERT INTO {quote_name(table.name)}", table.format, lambda _: None, check)
        rows.append(table.rows)
        rows.finish()


@contextlib.contextmanager
def loaded(handle: Handle, tables: list[External], check: Check) -> Iterator[None]:
    """Run with the tables sent with a request, and drop them if the handle survives in a session."""
    with contextlib.ExitStack() as drops:
        load(
            handle,
            tables,
            check,
            lambda name: drops.callback(handle.query, f"DROP TEMPORARY TABLE IF EXISTS {quote_name(name)}"),
        )
        yield


def prepared(engine: Engine, role: Role, request: QueryRequest, like: Handle | None, check: Check) -> Handle:
    """Return a separate handle for a request with external tables, for a role that cannot create any.

    Args:
        like: the handle of the request's session, whose settings and database it takes over.
    """
    kept = _own(like) if like is not None and like.own_settings else {}
    limited = config.limit_settings(engine.limits[role])
    asked = {
        name: value for name, value in allowed(role, request.settings, request.database).items() if name not in limited
    }

    def prepare(handle: Handle) -> None:
        handle.set(kept | asked)
        load(handle, request.externals, check)

    handle = engine.fresh(role, prepare)
    try:
        handle.set(kept)
        database = like.text("SELECT currentDatabase()").strip() if like is not None else DEFAULT_DATABASE
        if database != DEFAULT_DATABASE:  # the default of a new handle, for which no right is needed
            handle.use(database)
    except BaseException:
        handle.close()
        raise
    return handle


def _own(handle: Handle) -> dict[str, str]:
    """Return the settings that a client changed in its session."""
    changed = handle.query("SELECT name, value FROM system.settings WHERE changed", "JSONCompactEachRow")
    rows = dict(json.loads(line) for line in bytes(changed.bytes()).splitlines())
    base = {name: str(value) for name, value in handle.base.items()}
    return {name: value for name, value in rows.items() if name != "log_comment" and base.get(name) != value}


def allowed(role: Role, settings: Mapping[str, str], database: str) -> dict[str, str]:
    """Return the settings of a request that reach the engine.

    Raises:
        StoreError: this role is not allowed to use the database (497).
    """
    if database == config.OVERLAY_DATABASE or (role.restricted and database == "system"):
        raise StoreError(ACCESS_DENIED, f"{role.value}: Not enough privileges: database {database} is not allowed")
    # log_comment is reserved: it identifies a running query, to cancel it.
    return {name: value for name, value in settings.items() if name != "log_comment"}


def apply(handle: Handle, settings: Mapping[str, str], database: str) -> None:
    """Give a handle a request's settings and database. Raises StoreError."""
    if handle.own_settings:
        handle.set({"log_comment": handle.name})
    handle.set(allowed(handle.role, settings, database))
    if database:
        handle.use(database)


def asking(engine: Engine, role: Role, settings: Mapping[str, str], database: str) -> Handle:
    """Return a handle for a query with these settings in this database, which another such query may have used.

    Raises StoreError.
    """
    asked = tuple(sorted(allowed(role, settings, database).items())), database
    handle = engine.acquire_kept(role, asked)
    if handle is None:
        handle = engine.acquire(role)
        try:
            apply(handle, settings, database)
        except BaseException:
            engine.release(handle)
            raise
        handle.asked = asked
    return handle


@contextlib.contextmanager
def applied(handle: Handle, settings: Mapping[str, str], database: str) -> Iterator[None]:
    """Run with a request's settings and database, and restore the old ones."""
    wanted = allowed(handle.role, settings, database)
    before = _current(handle, list(wanted)) if wanted else {}
    before_database = handle.text("SELECT currentDatabase()").strip() if database else ""
    apply(handle, settings, database)
    try:
        yield
    finally:
        if before_database:
            handle.use(before_database)
        for name, value in before.items():
            handle.query(f"SET {quote_name(name)} = {value}")


def _current(handle: Handle, names: list[str]) -> dict[str, str]:
    if not handle.own_settings:
        # Asking the engine takes 4 ms, and the answer is known unless a client changed something.
        return {name: quote(str(handle.base[name])) if name in handle.base else "DEFAULT" for name in names}
    listed = ", ".join(quote(name) for name in names)
    found = handle.query(
        f"SELECT name, value, changed FROM system.settings WHERE name IN ({listed})",  # noqa: S608  quoted literals
        "JSONCompactEachRow",
    )
    rows = [json.loads(line) for line in bytes(found.bytes()).splitlines()]
    return {name: quote(value) if changed else "DEFAULT" for name, value, changed in rows}
