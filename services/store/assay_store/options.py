"""The options of a store, each also a flag of `python -m assay_store`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assay_store.account import DEFAULT_UID
from assay_store.roles import Role


@dataclass(frozen=True)
class StoreOptions:
    """Options of one store.

    Attributes:
        data: data directory; made with mode 0700 if missing. One store process owns it.
        users: JSON file of users, mode 0600.
        uid: account of the process where the kernel has no Landlock and root starts it (see `account`).
        port: TCP port; 0 takes a free one (printed in the ready line and written to `DIR/port`).
        host: address to listen on.
        allow_remote: listen on an address that other machines can reach. There is no TLS here, so a password would
            travel in the clear: put a proxy with TLS before it, or use a real ClickHouse.
        max_memory_bytes: memory cap of the engine; a query that would exceed it fails with code 241.
        keep_free_bytes: room on the disk that inserts leave free; below it they fail with code 243 (see `space`).
        max_query_seconds: longest query of an `sre`; a `writer` may take 10 times, an `exporter` 120 times as long.
        readers: threads that run queries; more requests wait for one.
        max_waiting: requests that may wait for a thread; one more is answered with code 202.
        max_statement_bytes: longest body of an owner's request that is not an INSERT.
        max_reader_statement_bytes: the same of everybody else, and the longest head of their INSERTs.
        max_external_bytes: longest body of a request with external data (a multipart form).
        insert_buffer_bytes: bytes of one INSERT body gathered before it takes the single writer's place.
        max_result_buffer_bytes: longest result in a format that cannot be streamed (JSON, Parquet, Arrow, Pretty, ...).
        body_timeout_seconds: longest pause between two parts of a request's body.
        max_head_bytes: longest head of a request: its URL and headers.
        head_timeout_seconds: longest time for the head of a request to arrive.
        max_idle_connections: connections without a request at a time; one more closes the one that is so for longest.
        max_sessions_per_user: sessions a user may have at a time.
        session_seconds: default life of an idle session.
        max_session_seconds: longest life a client may ask for.
        log_level: DEBUG logs a line for each request: its id, kind, seconds and code, never its text.
        stop_seconds: how long running requests may take to finish after SIGTERM.
    """

    data: Path
    users: Path
    uid: int = DEFAULT_UID
    port: int = 8123
    host: str = "127.0.0.1"
    allow_remote: bool = False
    max_memory_bytes: int = 2_000_000_000
    keep_free_bytes: int = 512 << 20
    max_query_seconds: int = 30
    readers: int = 8
    max_waiting: int = 256
    max_statement_bytes: int = 16 << 20
    max_reader_statement_bytes: int = 64 << 10
    max_external_bytes: int = 64 << 20
    insert_buffer_bytes: int = 16 << 20
    max_result_buffer_bytes: int = 512 << 20
    body_timeout_seconds: float = 60.0
    max_head_bytes: int = 1 << 20
    head_timeout_seconds: float = 10.0
    max_idle_connections: int = 1000
    max_sessions_per_user: int = 1000
    session_seconds: int = 60
    max_session_seconds: int = 3600
    stop_seconds: float = 20.0
    log_level: str = "INFO"

    def statement_limit(self, role: Role) -> tuple[int, str]:
        """Return the longest statement of a role, and the flag that sets it."""
        if role is Role.OWNER:
            return self.max_statement_bytes, "--max-statement-bytes"
        return self.max_reader_statement_bytes, "--max-reader-statement-bytes"
