"""Timed tool calls: the `with` block and the decorator.

Both leave the results and exceptions of the tool unchanged, and capture exactly one event for each call.
"""

import functools
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar, cast, get_args

from assay_capture.summary import frozen
from assay_schema.fields import ToolStatus
from assay_schema.limits import NAME_MAX_CHARS

F = TypeVar("F", bound=Callable[..., Any])
#: `describe(result)`: the `result_summary` of a call, a small mapping such as `{"matches": 3}`.
DescribeResult = Callable[[Any], Mapping[str, Any]]
#: Key of the positional arguments of a call.
POSITIONAL = "__args"
STATUSES = frozenset(get_args(ToolStatus))
#: The statuses with an error kind.
FAILED = ("error", "refused")
_CANCELLED = ("CancelledError", "Cancelled")


class Outcome(NamedTuple):
    """The result of a tool call. `error_kind` is None unless the status is `error` or `refused`."""

    status: str
    error_kind: str | None


def outcome_of(result: Any) -> Outcome:
    """Return the outcome that an envelope states, a mapping or an object with a `status`; else `success`.

    Its `error` is a mapping or an object with a `kind`. Never raises.
    """
    try:
        status = _member(result, "status")
        if not isinstance(status, str) or status not in STATUSES:
            return Outcome("success", None)
        return Outcome(str(status), kind_of(_member(result, "error")) if status in FAILED else None)
    except Exception:  # noqa: BLE001  (the caller's objects may raise anything)
        return Outcome("success", None)


def kind_of(error: Any) -> str | None:
    """Return the `kind` of an envelope's error, if it has one."""
    kind = error if isinstance(error, str) else _member(error, "kind")
    return str(kind)[:NAME_MAX_CHARS] if isinstance(kind, str) and kind else None


def failure_of(exception_type: type[BaseException]) -> Outcome:
    """Return the outcome of a call that raised: `cancelled`, `timeout` or the class's name."""
    if exception_type.__name__ in _CANCELLED:
        return Outcome("error", "cancelled")
    return Outcome("error", "timeout" if issubclass(exception_type, TimeoutError) else exception_type.__name__)


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


class ToolBlock:
    """A timed tool call, used with `with` or `async with`.

    `record` is `Capture.tool_call`, or None if capture is off. If the block is used again, it captures another event.
    """

    def __init__(
        self,
        record: Callable[..., str] | None,
        tool_name: str,
        args: Mapping[str, Any] | Sequence[Any] | None,
        describe: DescribeResult | None,
        fields: dict[str, Any],
    ) -> None:
        self._record = record
        self._tool_name = tool_name
        self._args = args
        self._describe = describe
        self._fields = fields
        #: Id of the last captured event; None until the block has ended.
        self.event_id: str | None = None
        self._begin()

    def _begin(self) -> None:
        self._frozen: Any = None
        self._outcome: Outcome | None = None
        self._summary: Any = None
        self._exit_code: int | None = None
        self._failure: str | None = None
        self._began = time.perf_counter()

    def result(
        self,
        value: Any = None,
        *,
        status: ToolStatus | None = None,
        error_kind: str | None = None,
        summary: Mapping[str, Any] | None = None,
        exit_code: int | None = None,
    ) -> None:
        """Set the tool's result. The last call counts.

        `status` and `error_kind` default to those of `value`, if it is an envelope, else to `success`, or to `error`
        for an `exit_code` other than 0. `summary` defaults to `describe(value)`. `value` itself is not captured.
        """
        if self._record is None:
            return
        outcome = outcome_of(value)
        if exit_code and outcome.status == "success":
            outcome = Outcome("error", "exit_code")
        if status is not None:
            outcome = Outcome(status, (error_kind or outcome.error_kind) if status in FAILED else None)
        elif error_kind is not None and outcome.status in FAILED:
            outcome = Outcome(outcome.status, error_kind)
        self._outcome, self._exit_code = outcome, exit_code
        self._summary = frozen(self._described(value) if summary is None else summary)

    def fails(self, error_kind: str) -> None:
        """Set the error kind for the exception that is about to leave the block."""
        self._failure = error_kind

    def _described(self, value: Any) -> Mapping[str, Any]:
        if self._describe is None:
            return {}
        if isinstance(value, Iterator | AsyncIterator):  # `describe` would consume what the caller is to get
            return {"__describe": "not called: the result is an iterator"}
        try:
            return dict(self._describe(value))
        except Exception as error:  # noqa: BLE001  (the caller must not notice)
            return {"__describe": f"raised {type(error).__name__}"}

    def __enter__(self) -> Self:
        self._begin()
        if self._record is not None:
            with suppress(Exception):
                self._frozen = frozen(_as_mapping(self._args))
            self._began = time.perf_counter()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        duration_ms = (time.perf_counter() - self._began) * 1000
        if self._record is None:
            return
        outcome = self._outcome or Outcome("success", None)
        if exception_type is not None:
            outcome = failure_of(exception_type) if self._failure is None else Outcome("error", self._failure)
        with suppress(Exception):
            self.event_id = self._record(
                tool_name=self._tool_name,
                duration_ms=duration_ms,
                status=outcome.status,
                error_kind=outcome.error_kind,
                args_summary=self._frozen,
                result_summary=self._summary,
                exit_code=self._exit_code,
                **self._fields,
            )

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(exception_type, exception, traceback)


def _as_mapping(args: Any) -> Any:
    """Return arguments as a mapping: positional ones under `__args`."""
    return {} if args is None else args if isinstance(args, Mapping) else {POSITIONAL: args}


def captured_function(function: F, block: Callable[[Mapping[str, Any]], ToolBlock]) -> F:
    """Wrap a tool, sync or async, so that each call is captured in a `block` of its arguments.

    Raises `TypeError` for a generator function: a call returns before its work begins.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError("captured_tool() cannot decorate a generator; put its loop into a calling_tool() block")
    bound = _is_method(function)

    def begun(args: tuple[Any, ...], kwargs: dict[str, Any]) -> ToolBlock:
        positional = args[1:] if bound else args
        return block({POSITIONAL: list(positional), **kwargs} if positional else kwargs)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with begun(args, kwargs) as call:
                result = await function(*args, **kwargs)
                call.result(result)
            return result

        return cast("F", awaited)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with begun(args, kwargs) as call:
            result = function(*args, **kwargs)
            call.result(result)
        return result

    return cast("F", called)


def _is_method(function: Callable[..., Any]) -> bool:
    """True if the first argument is the object that has the tool, which is no argument of the call."""
    try:
        first = next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):
        return False
    return first in ("self", "cls")
