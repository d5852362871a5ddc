"""Timed retrievals: the `with` block and the decorator.

Both leave the results and exceptions of the caller's code unchanged.
"""

import functools
import inspect
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self, TypedDict, TypeVar, Unpack, cast

from assay_schema.fields import Detail
from assay_schema.ids import new_event_id

F = TypeVar("F", bound=Callable[..., Any])
#: `describe(result, *args, **kwargs)`: the fields of `Capture.retrieval` except `latency_ms`.
Described = Callable[..., Mapping[str, Any]]


class RetrievalFields(TypedDict, total=False):
    """The optional arguments of `Capture.retrieval`."""

    source_ids: Collection[str]
    expand_enabled: bool | None
    detail: Detail | None
    detail_resolved: Detail | None
    vector_enabled: bool
    expansion_applied: bool
    remote: bool
    job_id: int | None
    subagent_id: int | None
    retrieved_scores: Sequence[float]
    embedding_model: str | None
    params: Mapping[str, Any] | None
    retrieved_ids: Sequence[str]
    passages: Sequence[Mapping[str, Any]]
    session_id: str | None
    user_hash: str | None
    project: str | None
    occurred_at: datetime | None


_OPTIONAL = frozenset(RetrievalFields.__annotations__)
_REQUIRED = frozenset({"tool_name", "query", "retrieved_slugs", "retrieved_chunk_ids"})

#: Captures an event under a given `event_id`, or does nothing if capture is off.
Record = Callable[[str, dict[str, Any]], None]


class Drop(Protocol):
    """Counts an event lost for a reason; `detail` goes into the log and contains no captured text."""

    def __call__(self, reason: str, detail: str = "") -> None: ...


class RetrievalBlock:
    """A timed block, used with `with` or `async with`.

    If it is used again, it captures another event with a new `event_id`.
    """

    def __init__(self, record: Record, drop: Drop, fields: dict[str, Any]) -> None:
        self._record = record
        self._drop = drop
        self._asked = fields
        self._found: dict[str, Any] | None = None
        self._began = 0.0
        self._spent = False
        #: Id of the event, available from the start so that an answer can refer to it, and kept until the block begins
        #: again.
        self.event_id = new_event_id()

    def result(self, *, slugs: Sequence[str], chunk_ids: Sequence[int], **fields: Unpack[RetrievalFields]) -> None:
        """Set the result, with any other field that only the search knows, such as `source_ids`.

        The last call counts.
        """
        refuse_unknown("result", fields)
        self._found = {**(self._found or {}), **fields, "retrieved_slugs": slugs, "retrieved_chunk_ids": chunk_ids}

    def __enter__(self) -> Self:
        self._renew()
        self._began = time.perf_counter()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        latency_ms = (time.perf_counter() - self._began) * 1000
        found, self._found = self._found, None
        if found is not None:
            self._renew()  # a block nested in itself, or used by two threads at once, ends twice
            self._spent = True
            self._record(self.event_id, {**self._asked, **found, "latency_ms": latency_ms})
        elif exception_type is None:
            self._drop("no_result")

    def _renew(self) -> None:
        if self._spent:
            self.event_id, self._spent = new_event_id(), False

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(exception_type, exception, traceback)


def refuse_unknown(function: str, fields: Mapping[str, Any]) -> None:
    """Raise `TypeError` for unknown named arguments, as Python does.

    Otherwise a misspelt field would be left out of the event silently.
    """
    if not fields.keys() <= _OPTIONAL:
        names = ", ".join(sorted(fields.keys() - _OPTIONAL))
        own = ("slugs", "chunk_ids") if function == "result" else ("tool_name", "query")
        raise TypeError(
            f"{function}() got an unexpected field: {names}; valid are {', '.join((*own, *sorted(_OPTIONAL)))}"
        )


def captured_function(function: F, describe: Described, record: Record, drop: Drop) -> F:
    """Wrap a function, sync or async, so that each successful call is captured.

    Raises `TypeError` for a generator function.
    """

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("captured_retrieval() cannot decorate a generator; put its loop into a retrieving() block")

    def capture(began: float, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        latency_ms = (time.perf_counter() - began) * 1000
        if isinstance(result, Iterator | AsyncIterator):  # `describe` would consume what the caller is to get
            drop("describe_failed", "the function returned an iterator: use a retrieving() block around its loop")
            return
        try:
            fields = dict(describe(result, *args, **kwargs))
        except Exception as error:  # noqa: BLE001  (the caller must not notice)
            drop("describe_failed", f"it raised {type(error).__name__}")
            return
        if missing := _REQUIRED - fields.keys():
            drop("describe_failed", f"it did not return {', '.join(sorted(missing))}")
        elif fields.keys() <= _REQUIRED | _OPTIONAL:
            record(new_event_id(), {**fields, "latency_ms": latency_ms})
        else:  # without their names: a mistaken dictionary may have captured text as its keys
            drop("describe_failed", f"it returned {len(fields.keys() - _REQUIRED - _OPTIONAL)} unknown field(s)")

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            result = await function(*args, **kwargs)
            capture(began, result, args, kwargs)
            return result

        return cast("F", awaited)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        result = function(*args, **kwargs)
        capture(began, result, args, kwargs)
        return result

    return cast("F", called)
