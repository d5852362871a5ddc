"""The store's metrics. No label and no value contains a query, a user's text or a table's content."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from assay_store.wall import Wall


class Metrics:
    """One registry per store, so that several stores in one test process do not collide."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "assay_store_requests",
            "Requests by kind of statement and HTTP status.",
            ["kind", "status"],
            registry=self.registry,
        )
        self.failed_logins = Counter(
            "assay_store_failed_logins",
            "Logins with a wrong password, by user; names that no user has are `unknown`.",
            ["user"],
            registry=self.registry,
        )
        self.written_rows = Counter("assay_store_written_rows", "Rows inserted by clients.", registry=self.registry)
        self.received_bytes = Counter(
            "assay_store_received_bytes", "Bytes of INSERT rows received, decompressed.", registry=self.registry
        )
        self.sent_bytes = Counter(
            "assay_store_sent_bytes", "Bytes of results sent, before compression.", registry=self.registry
        )
        self.seconds = Histogram(
            "assay_store_query_seconds",
            "Seconds from the first byte of a request to the last of its answer, by kind of statement.",
            ["kind"],
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
            registry=self.registry,
        )
        self.running = Gauge("assay_store_running_requests", "Requests being answered now.", registry=self.registry)
        self.sessions = Gauge("assay_store_sessions", "Sessions that are open now.", registry=self.registry)
        self.broken_parts = Gauge(
            "assay_store_broken_parts",
            "Parts that could not be read when the store started and were put aside, until they are dropped.",
            registry=self.registry,
        )
        self._wall = Gauge(
            "assay_store_wall",
            "1 when the kernel keeps the process from files beyond its own (Landlock), from those closed to other accounts (a "
            "separate uid is enough), and from opening connections.",
            ["keeps_from"],
            registry=self.registry,
        )
        self._account_kept = Gauge(
            "assay_store_account_kept",
            "1 when the process has neither Landlock nor its own uid, by the reason why it has no uid.",
            ["reason"],
            registry=self.registry,
        )
        resident = Gauge(
            "assay_store_resident_bytes", "Resident memory of the store's process.", registry=self.registry
        )
        resident.set_function(resident_bytes)

    def show_wall(self, wall: Wall) -> None:
        """Show the access that the kernel denies to the process."""
        self._wall.labels("files").set(wall.files)
        self._wall.labels("closed_files").set(wall.files or wall.uid is not None)
        self._wall.labels("network").set(wall.network)
        if wall.kept:
            self._account_kept.labels(wall.kept.value).set(1)


def _open_memory() -> int | None:
    try:
        return os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


#: Opened when the module is loaded: later the process cannot open files there any more.
_MEMORY = _open_memory()


def resident_bytes() -> float:
    """Return the resident memory of this process in bytes; 0 if /proc is missing."""
    try:
        pages = int(os.pread(_MEMORY, 200, 0).split()[1]) if _MEMORY is not None else 0
    except (OSError, ValueError, IndexError):
        return 0.0
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
