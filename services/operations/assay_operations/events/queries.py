"""Queries of the store about events: time limits, counted rows, and errors with a fix."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import orjson

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clickhouse_connect.driver.query import QueryResult

    from assay_runtime.store import Client

P = ParamSpec("P")
T = TypeVar("T")
Rows = list[tuple[Any, ...]]
#: Returns the rows for a question, or asks for them.
_Recent = Callable[[tuple[str, str], Callable[[], Rows]], Rows]

#: The engine's error code of a query that reached `max_execution_time`.
_TIMEOUT = 159
#: Queries of one operation that run at a time: the store plans each of them on one core.
_AT_ONCE = 2
#: Longest limit that is set, in seconds. The store refuses one that is longer than the user's.
_SECONDS_MAX = 5
#: Place in the store's order of queries, of those with a time limit: they pause while other queries of people run.
_PRIORITY = 3


class OutOfTimeError(OperationError):
    """A query reached its time limit, or that of the store's user."""

    def __init__(self) -> None:
        super().__init__(
            "unavailable",
            "the store needed longer than a query may take",
            "try again in a moment, or choose a shorter range",
        )


@dataclass
class Queries:
    """The queries of one operation."""

    client: "Client"
    #: Rows that the engine read for them, by its own summary.
    rows_read: int = field(default=0, init=False)
    _counting: threading.Lock = field(default_factory=threading.Lock, init=False)

    def rows(self, sql: str, parameters: "Mapping[str, Any]", *, seconds: float | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises `OutOfTimeError` after `seconds`.

        Any other error is the driver's: `store_errors` explains it.

        The limit is in whole seconds, from 1 to 5: the store accepts no shorter one, and no longer one than the user's.
        """
        return [tuple(row) for row in self._query(sql, parameters, seconds).result_rows]

    def counts(self, sql: str, parameters: "Mapping[str, Any]") -> list[tuple[Any, ...]]:
        """Return the rows of a query of rollups. Raises as `rows`.

        A client with `recent_rows` may have them from some seconds ago.
        """
        recent: _Recent | None = getattr(self.client, "recent_rows", None)
        if recent is None:
            return self.rows(sql, parameters)
        return recent((sql, repr(parameters)), lambda: self.rows(sql, parameters))

    def named(self, sql: str, parameters: "Mapping[str, Any]", *, without: str = "") -> list[dict[str, Any]]:
        """Return the rows of a query by the names of their columns. Raises as `rows`.

        `without`: a setting of the store to switch off, if the store is new enough to have it.
        """
        answer = self._query(sql, parameters, None, {without: 0} if without in self.client.server_settings else {})
        return [dict(zip(answer.column_names, row, strict=True)) for row in answer.result_rows]

    def _query(
        self,
        sql: str,
        parameters: "Mapping[str, Any]",
        seconds: float | None,
        settings: "Mapping[str, Any] | None" = None,
    ) -> "QueryResult":
        from clickhouse_connect.driver.exceptions import ClickHouseError

        if seconds is not None:
            settings = {"max_execution_time": min(max(1, round(seconds)), _SECONDS_MAX), "priority": _PRIORITY}
        try:
            answer = self.client.query(sql, parameters=dict(parameters), settings=dict(settings or {}))
        except ClickHouseError as error:
            _raise_if_out_of_time(error)
            raise
        with self._counting:
            self.rows_read += int(answer.summary.get("read_rows", 0))
        return answer

    def objects(self, sql: str, parameters: "Mapping[str, Any]") -> list[dict[str, Any]]:
        """Return the rows of a query as JSON objects. Times are ISO 8601, ids are text."""
        from clickhouse_connect.driver.exceptions import ClickHouseError

        settings = {"date_time_output_format": "iso"}
        try:
            answer = self.client.raw_query(sql, parameters=dict(parameters), settings=settings, fmt="JSONEachRow")
        except ClickHouseError as error:
            _raise_if_out_of_time(error)
            raise
        return [orjson.loads(line) for line in answer.splitlines() if line]

    def threads(self) -> ThreadPoolExecutor:
        """Return threads for queries that do not depend on each other.

        On exit the queries have ended. The longest should begin first.
        """
        return _Threads(_AT_ONCE, thread_name_prefix="queries")


class _Threads(ThreadPoolExecutor):
    """Threads whose work has the context variables of the thread that began it."""

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **options: P.kwargs) -> Future[T]:
        return super().submit(partial(copy_context().run, function, *arguments, **options))


def _raise_if_out_of_time(error: Exception) -> None:
    if getattr(error, "code", None) == _TIMEOUT or f"Code: {_TIMEOUT}." in str(error):
        raise OutOfTimeError from error
