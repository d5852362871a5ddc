"""Filters of events, parsed from URL parameters, and ranges of time. Pure."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from assay_operations.errors import OperationError
from assay_schema.fields import Kind
from assay_schema.limits import NAME_MAX_CHARS, PROJECT_PATTERN, PROJECT_RULE, SERVICE_MAX_CHARS

#: The kinds of events, in the order of lists. Sessions are read by `assay_operations.sessions`.
KINDS = (Kind.RETRIEVAL, Kind.ANSWER, Kind.FEEDBACK, Kind.TOOL_CALL, Kind.SERVER_EVENT)
Has = Literal["feedback", "negative", "pii", "no-result", "judged", "uncited", "failed-check"]
#: Every status of a row, by kind. The set is closed.
STATUSES: dict[Kind, tuple[str, ...]] = {
    Kind.RETRIEVAL: ("found", "no_result"),
    Kind.ANSWER: ("cited", "uncited"),
    Kind.FEEDBACK: ("positive", "negative"),
    Kind.TOOL_CALL: ("success", "empty", "partial", "degraded", "error", "refused"),
    Kind.SERVER_EVENT: ("server_start", "server_stop", "schema_version_mismatch", "events_path_init"),
}
#: End of an open range, in Unix milliseconds: 2300-01-01, which no event reaches.
OPEN_END_MS = 10_413_792_000_000
#: Longest text to search for in characters, and most values of one parameter.
TEXT_MAX_CHARS, VALUES_MAX = 1_000, 50

_TARGETS = frozenset(KINDS) - {Kind.FEEDBACK}
#: The kinds that can meet a `has` flag.
_KINDS_OF: dict[Has, frozenset[Kind]] = {
    "feedback": _TARGETS,
    "negative": frozenset(KINDS),
    "pii": frozenset(KINDS),
    "no-result": frozenset({Kind.RETRIEVAL, Kind.TOOL_CALL}),
    "judged": frozenset({Kind.ANSWER}),
    "uncited": frozenset({Kind.ANSWER}),
    "failed-check": frozenset({Kind.ANSWER}),
}
_TIMED = frozenset({Kind.RETRIEVAL, Kind.ANSWER, Kind.TOOL_CALL})
_WITH_TOOL = frozenset({Kind.RETRIEVAL, Kind.TOOL_CALL})
_WITH_MODEL = frozenset({Kind.RETRIEVAL, Kind.ANSWER})
_LISTS = {
    "kind": "kinds",
    "service": "services",
    "tool": "tools",
    "model": "models",
    "status": "statuses",
    "has": "has",
}
_SINGLE = ("project", "latency>", "q", "trace", "session")
_METRIC = re.compile(r"metric\.([A-Za-z][A-Za-z0-9_]{0,63})<")
_TRACE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class EventFilter:
    """Conditions that an event must all meet.

    Values of one field are alternatives, flags of `has` are not.
    """

    kinds: tuple[Kind, ...] = ()
    project: str | None = None
    services: tuple[str, ...] = ()
    #: The operation of a retrieval, or the tool that was called.
    tools: tuple[str, ...] = ()
    #: The model of an answer, or the embedding model of a retrieval.
    models: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    has: frozenset[Has] = frozenset()
    #: Latency above this, in milliseconds.
    latency_over_ms: float | None = None
    #: Metrics that a score must have below a value.
    metrics_below: tuple[tuple[str, float], ...] = ()
    #: Part of the text, in any case.
    text: str | None = None
    trace_id: str | None = None
    session_id: str | None = None

    @property
    def possible_kinds(self) -> tuple[Kind, ...]:
        """The kinds that can meet every condition."""
        allowed = frozenset(self.kinds or KINDS)
        for flag in self.has:
            allowed &= _KINDS_OF[flag]
        if self.tools:
            allowed &= _WITH_TOOL
        if self.models:
            allowed &= _WITH_MODEL
        if self.latency_over_ms is not None:
            allowed &= _TIMED
        if self.metrics_below:
            allowed &= {Kind.ANSWER}
        if self.statuses:
            allowed &= {kind for kind in KINDS if set(self.statuses) & set(STATUSES[kind])}
        return tuple(kind for kind in KINDS if kind in allowed)

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the URL parameters of this filter, in a fixed order; `parse_filter` reads them."""
        if self.project is not None:
            yield "project", self.project
        for name, attribute in _LISTS.items():
            values = getattr(self, attribute)
            for value in sorted(values) if name == "has" else values:
                yield name, str(value)
        if self.latency_over_ms is not None:
            yield "latency>", _shortest(self.latency_over_ms)
        for name, value in self.metrics_below:
            yield f"metric.{name}<", _shortest(value)
        for name, text in (("q", self.text), ("trace", self.trace_id), ("session", self.session_id)):
            if text is not None:
                yield name, text


@dataclass(frozen=True)
class Range:
    """A half-open range of event times, `from_ms <= time < to_ms`, in Unix milliseconds."""

    from_ms: int = 0
    to_ms: int = OPEN_END_MS

    def __post_init__(self) -> None:
        """Raise `OperationError` for a range that ends before it begins."""
        if self.from_ms > self.to_ms:
            raise OperationError("invalid", "the range ends before it begins: `from` must not be later than `to`")


@dataclass
class _Values:
    """The values of each parameter, as they were given."""

    lists: dict[str, list[str]] = field(default_factory=dict)
    single: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


def parse_filter(pairs: Iterable[tuple[str, str]], *, also: Iterable[str] = ()) -> EventFilter:
    """Return the filter of URL parameters. Raises `OperationError` naming the parameter.

    Names: `kind`, `project`, `service`, `tool`, `model`, `status`, `has`, `latency>`, `metric.NAME<`, `q`, `trace`, `session`; `also` are
    those of others, which are skipped. In a URL, `latency>=500` is the parameter `latency>` with the value 500: the bound is exclusive.
    Empty values, which forms send, are skipped.
    """
    skipped = frozenset(also)
    seen = _Values()
    for name, value in pairs:
        if name in skipped or value == "":
            continue
        _require_text(name, value)
        if name in _LISTS:
            values = seen.lists.setdefault(name, [])
            if value not in values:
                values.append(value)
            if len(values) > VALUES_MAX:
                raise OperationError("invalid", f"{name}: more than {VALUES_MAX} values")
        elif name in _SINGLE:
            if seen.single.setdefault(name, value) != value:
                raise OperationError("invalid", f"{name}: only one value is possible")
        elif match := _METRIC.fullmatch(name):
            seen.metrics[match[1]] = _number(name, value, 1)
            if len(seen.metrics) > VALUES_MAX:
                raise OperationError("invalid", f"metric: more than {VALUES_MAX} metrics")
        else:
            known = ", ".join((*_LISTS, *_SINGLE, "metric.NAME<"))
            raise OperationError("invalid", f"unknown parameter {name[:40]!r}; there are {known}")
    return _filter(seen)


def _filter(seen: _Values) -> EventFilter:
    single = seen.single
    project, text, trace = single.get("project"), single.get("q"), single.get("trace")
    if project is not None and not re.fullmatch(PROJECT_PATTERN, project):
        raise OperationError("invalid", f"project: {project[:70]!r} is not the name of a project: {PROJECT_RULE}")
    if text is not None and len(text) > TEXT_MAX_CHARS:
        raise OperationError("invalid", f"q: {len(text):,} characters; at most {TEXT_MAX_CHARS:,} can be searched for")
    if trace is not None and (not _TRACE.fullmatch(trace) or not trace.strip("0")):
        raise OperationError("invalid", f"trace: {trace[:40]!r} is not a trace id: 32 hexadecimal digits in lower case")
    lists = seen.lists
    statuses = tuple(_one_of("status", value, sum(STATUSES.values(), ())) for value in lists.get("status", ()))
    flags = frozenset[Any](_one_of("has", value, get_args(Has)) for value in lists.get("has", ()))
    return EventFilter(
        kinds=tuple(Kind(_one_of("kind", value, KINDS)) for value in lists.get("kind", ())),
        project=project,
        services=tuple(_short("service", value, SERVICE_MAX_CHARS) for value in lists.get("service", ())),
        tools=tuple(_short("tool", value, NAME_MAX_CHARS) for value in lists.get("tool", ())),
        models=tuple(_short("model", value, NAME_MAX_CHARS) for value in lists.get("model", ())),
        statuses=statuses,
        has=flags,
        latency_over_ms=_number("latency>", single["latency>"], math.inf) if "latency>" in single else None,
        metrics_below=tuple(seen.metrics.items()),
        text=text,
        trace_id=trace,
        session_id=_short("session", single["session"], NAME_MAX_CHARS) if "session" in single else None,
    )


def _require_text(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OperationError("invalid", f"{name[:40]!r}: not valid Unicode text") from None
    if "\0" in value:
        raise OperationError("invalid", f"{name[:40]!r}: contains a NUL character")


def _one_of(name: str, value: str, allowed: Iterable[str]) -> str:
    if value not in (known := [str(each) for each in allowed]):
        raise OperationError("invalid", f"{name}: {value[:40]!r} is none of {', '.join(known)}")
    return value


def _short(name: str, value: str, most: int) -> str:
    if len(value) > most:
        raise OperationError("invalid", f"{name}: longer than {most} characters")
    return value


def _shortest(number: float) -> str:
    return repr(number).removesuffix(".0")


def _number(name: str, value: str, most: float) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number <= most or math.isinf(number):
        limits = "0 or more" if math.isinf(most) else f"from 0 to {most:g}"
        raise OperationError("invalid", f"{name}: {value[:40]!r} is not a number, {limits}")
    return number
