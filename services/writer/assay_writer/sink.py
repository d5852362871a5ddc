"""The writer's inserts: they succeed, or report that the store is away or that a row is to blame."""

import gc
import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import orjson
from clickhouse_connect.driver.exceptions import ClickHouseError
from urllib3.exceptions import HTTPError

from assay_runtime.config import secret
from assay_runtime.entries import Entry, Outcome, SinkUnavailableError, failure_of
from assay_runtime.store import Client, StoreError, connect, describe, insert_json_rows, reason_of
from assay_schema.failures import Reason
from assay_schema.settings import StoreSettings
from assay_writer.batch import Batch, Poison, insert_isolating
from assay_writer.rows import COLUMNS, EVENT_TABLES, NO_TABLE

STAGE = "writer"
#: Seconds without an answer after which the store counts as away.
SILENCE_S = 10.0
#: Errors that the store, its driver or the network may raise. Any other error is a bug of ours and blames no sink.
STORE_ERRORS = (ClickHouseError, HTTPError, OSError, StoreError)

T = TypeVar("T")


class Sink:
    """Writes batches of entries. Synchronous: run it in a thread.

    It has one store client, which is safe for several threads.
    """

    def __init__(self, settings: StoreSettings) -> None:
        # An unreadable file fails at the start, by name.
        secret(settings.password, settings.password_file, "ASSAY_STORE_PASSWORD_FILE")
        self._settings = settings
        self._client: Client | None = None
        #: Start times of the pending requests, and the time since which none has been answered.
        self._owed: dict[int, float] = {}
        self._away_since: float | None = None
        self._calls = itertools.count()

    @property
    def silent(self) -> bool:
        """True if no pending request has been answered for too long."""
        now = time.monotonic()
        return now - min([*self._owed.values(), self._away_since or now]) > SILENCE_S

    def write(self, entries: Sequence[Entry], parts: Sequence[Batch], poison: Sequence[Poison]) -> list[Outcome]:
        """Insert the rows of entries, as sorted by `batches`. Returns an outcome for each entry.

        At least once: raises `SinkUnavailableError` if the store is away or rejects our access; then nothing may be
        acknowledged. An entry that is not a row, or whose row the store rejects, gets a failure as its outcome and
        blocks nothing.
        """
        by_id = {entry.id: entry for entry in entries}
        blamed = [(bad.entry_id, "RowError", bad.rule) for bad in poison]
        for part in parts:
            for refused, error in self._guard(partial(insert_isolating, part, self._insert, _blames_rows)):
                blamed.append((refused.entry_ids[0], *describe(error)))
        failures = {
            entry_id: failure_of(by_id[entry_id], STAGE, Reason.CHECK_VIOLATION, error_class, detail)
            for entry_id, error_class, detail in blamed
        }
        # A newer scrubber forwarded them. They are stored once a newer writer runs and an operator requeues them.
        newer = {bad.entry_id for bad in poison if bad.rule == NO_TABLE}
        return [Outcome(entry.id, failure=failures.get(entry.id), keep=entry.id in newer) for entry in entries]

    def keep_watermark(self, shard: int, watermark: int) -> None:
        """Store a shard's watermark, so that exports need no Redis. Raises `SinkUnavailableError`."""
        row = orjson.dumps({"shard": shard, "watermark": watermark})
        self._guard(lambda: insert_json_rows(self._connected(), self._table("watermarks"), row, 1))

    def numbers(self) -> tuple[dict[int, int], int]:
        """Return the watermark of each shard that has one, and the greatest `id` of all rows.

        Raises `SinkUnavailableError`.
        """
        return self._guard(self._numbers)

    def _numbers(self) -> tuple[dict[int, int], int]:
        client, watermarks = self._connected(), self._table("watermarks")
        watermark_rows = client.query(f"SELECT shard, max(watermark) FROM {watermarks} GROUP BY shard").result_rows  # noqa: S608  # our own names
        stored = {int(shard): int(watermark) for shard, watermark in watermark_rows}
        least = greatest = min(stored.values(), default=0)
        # few rows are above the lowest watermark, and the index on `id` finds them
        for table in map(self._table, EVENT_TABLES):
            [[newest]] = client.query(f"SELECT max(id) FROM {table} WHERE id > {least}").result_rows  # noqa: S608  # our own names
            greatest = max(greatest, int(newest))
        return stored, greatest

    def close(self) -> None:
        """Close the connections."""
        if self._client:
            self._client.close()

    def _insert(self, part: Batch) -> None:
        insert_json_rows(self._connected(), self._table(part.table), part.payload, len(part), COLUMNS[part.table])

    def _table(self, name: str) -> str:
        return f"{self._settings.base_database}.{name}"

    def _connected(self) -> Client:
        if self._client is None:
            self._client = connect(self._settings, database=self._settings.base_database)
        return self._client

    def _guard(self, step: Callable[[], T]) -> T:
        call, began, away = next(self._calls), time.monotonic(), False
        self._owed[call] = began
        try:
            return step()
        except STORE_ERRORS as error:
            reason, error_class = reason_of(error), describe(error)[0]
            away = reason is Reason.DB_DOWN
        finally:
            self._away_since = (self._away_since or began) if away else None
            del self._owed[call]  # last, so that the pending request is always visible
        # The driver's errors are part of reference cycles that keep the whole batch. The collector runs too rarely: an
        # outage of an hour has a thousand attempts of many megabytes each.
        gc.collect()
        raise SinkUnavailableError(reason, error_class)


def _blames_rows(error: Exception) -> bool:
    return reason_of(error) is Reason.CHECK_VIOLATION
