"""Parse bytes to models, with errors that are safe to log, store and show. Pure.

Errors name fields and rules, never content. Accepted by design: unknown keys (dropped), and duplicate keys (the last
one counts, as for most JSON parsers). Refused although some parsers accept it: NaN and infinities, integers beyond 64
bits, lone surrogates such as `"\ud800"`, because no later step could write them again. A producer that truncates text
must cut between characters.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, TypeVar
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from assay_schema import alerts, events, export, failures, scores
from assay_schema.alerts import Alert
from assay_schema.events import Event, ScrubbedEvent
from assay_schema.export import ROWS, Row
from assay_schema.failures import UNKNOWN, Failure
from assay_schema.fields import Kind
from assay_schema.ids import event_ms
from assay_schema.limits import ENTRY_MAX_BYTES, EVENT_AHEAD_MAX_MS, PROJECT_PATTERN, SCHEMA_VERSION
from assay_schema.scores import Score

#: Maximum number of problems of one document in a detail.
PROBLEMS_MAX = 5
#: Bytes of an entry over the limit that are searched for its id.
SEARCHED_BYTES = 64 * 1024


class InvalidEvent(ValueError):  # noqa: N818  # the condition is the event's, not the program's
    """A document breaks the contract.

    `rule` is a short stable name such as `unknown_kind` (for a field's own rules, pydantic's name of it, such as
    `string_too_long`); `detail` names the field and the limit. Neither contains anything from the document except
    positions.
    """

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule
        self.detail = detail


_CONFIG = ConfigDict(hide_input_in_errors=True)
_EVENT: TypeAdapter[Event] = TypeAdapter(Event, config=_CONFIG)
_SCRUBBED: TypeAdapter[ScrubbedEvent] = TypeAdapter(ScrubbedEvent, config=_CONFIG)
_FAILURE = TypeAdapter(Failure)
_ALERT = TypeAdapter(Alert)
_SCORE = TypeAdapter(Score)
_KINDS = tuple(Kind)
_ROWS: dict[Kind, TypeAdapter[Row]] = {kind: TypeAdapter(row) for kind, row in ROWS.items()}


def parse_event(data: bytes) -> Event:
    """Parse a capture entry's event, in about 10 µs per KB. Raises `InvalidEvent` and nothing else."""
    if len(data) > ENTRY_MAX_BYTES:
        raise InvalidEvent("entry_too_large", f"{len(data)} bytes; at most {ENTRY_MAX_BYTES} (1 MiB)")
    return _parse(_EVENT, data, _KINDS)


def parse_scrubbed(data: bytes) -> ScrubbedEvent:
    """Parse an entry of the `events` stream. Raises `InvalidEvent`."""
    return _parse(_SCRUBBED, data, _KINDS)


def parse_failure(data: bytes) -> Failure:
    """Parse an entry of the `failures` stream. Raises `InvalidEvent`."""
    return _parse(_FAILURE, data, ())


def parse_score(data: bytes) -> Score:
    """Parse an entry of the `scores` stream. Raises `InvalidEvent`."""
    return _parse(_SCORE, data, ())


def parse_alert(data: bytes) -> Alert:
    """Parse an entry of the `alerts` stream. Raises `InvalidEvent`."""
    return _parse(_ALERT, data, ())


def parse_row(kind: Kind, data: bytes) -> Row:
    """Parse one line of `assay export --kind KIND`. Raises `InvalidEvent`."""
    return _parse(_ROWS[kind], data, ())


def event_time_ok(event_id: UUID, log_ms: int) -> bool:
    """True if an event's time is at most a day ahead of the log's clock (Unix milliseconds of the entry)."""
    return event_ms(event_id) <= log_ms + EVENT_AHEAD_MAX_MS


def identity_of(data: bytes) -> tuple[UUID | None, str, str]:
    """Return event id, project and service of an entry that may be broken, for its failure row.

    Never raises. A value that is missing, or not clearly an identifier, is None or `unknown`: a broken producer may put
    anything anywhere.
    """
    envelope = _envelope_of(data)
    event_id = envelope.get("event_id")
    project, service = envelope.get("project"), envelope.get("service")
    return (
        UUID(event_id) if isinstance(event_id, str) and _EVENT_ID.fullmatch(event_id) else None,
        project if isinstance(project, str) and _PROJECT.fullmatch(project) else UNKNOWN,
        service if isinstance(service, str) and _SERVICE.fullmatch(service) else UNKNOWN,
    )


_EVENT_ID = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}")
_PROJECT = re.compile(PROJECT_PATTERN)
#: Stricter than the envelope's rule, which allows any printable text: an unvalidated entry may contain anything.
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")
_MEMBER = re.compile(rb'"(event_id|project|service)"\s*:\s*"([A-Za-z0-9._/-]{1,64})"')


def _envelope_of(data: bytes) -> Mapping[str, Any]:
    if len(data) <= ENTRY_MAX_BYTES:
        for parse in (orjson.loads, _loads_leniently):
            try:
                document = parse(data)
            except (ValueError, RecursionError):
                continue
            return {"project": "default", **document} if isinstance(document, dict) else {}
    head = data[:SEARCHED_BYTES].partition(b'"payload"')[0]  # a name inside the payload is not the envelope's
    return {name.decode(): value.decode() for name, value in _MEMBER.findall(head)}


def _loads_leniently(data: bytes) -> Any:
    return json.loads(data.decode(errors="replace"))


_T = TypeVar("_T")


def _parse(adapter: TypeAdapter[_T], data: bytes, kinds: Collection[Kind]) -> _T:
    try:
        return adapter.validate_json(data)
    except ValidationError as error:
        invalid = _not_json(data, error) or _misfit(data, error, kinds)
    try:
        raise invalid  # here, so that pydantic's error, which may quote the document, is not chained to it
    finally:
        del invalid  # the frame would keep the error that keeps the frame, and with it the document


def _not_json(data: bytes, error: ValidationError) -> InvalidEvent | None:
    first = error.errors(include_url=False, include_input=False)[0] if error.error_count() == 1 else None
    if first is None or first["type"] != "json_invalid":
        return None
    if not data:
        return InvalidEvent("invalid_json", "not JSON: the entry has no field `data`, or an empty one")
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        return InvalidEvent("invalid_utf8", f"not UTF-8 from byte {wrong.start}")
    reason = first["ctx"]["error"]
    place = _POSITION.search(reason)
    where = f"at line {place[1]} column {place[2]}" if place else "somewhere"
    if "recursion limit" in reason:
        return InvalidEvent("nested_too_deep", f"more levels than the parser follows, {where}")
    if "number out of range" in reason:
        return InvalidEvent("integer_too_large", f"an integer of thousands of digits, {where}")
    if "\\u" in text and _is_json_but_for_surrogates(text):
        return InvalidEvent("lone_surrogate", f"text with a lone surrogate, {where}")
    return InvalidEvent("invalid_json", f"not JSON {where}")


_POSITION = re.compile(r"at line (\d+) column (\d+)$")


def _is_json_but_for_surrogates(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _misfit(data: bytes, error: ValidationError, kinds: Collection[Kind]) -> InvalidEvent:
    document = from_json(data, cache_strings=False)
    if not isinstance(document, dict):
        return InvalidEvent("not_an_object", "the document must be a JSON object")
    version = document.get("schema_version", SCHEMA_VERSION)
    if type(version) is not int or version != SCHEMA_VERSION:
        said = f"schema_version {version}" if type(version) is int and 0 <= version < 1000 else "this schema_version"
        return InvalidEvent("schema_version", f"{said} is not understood; this version reads {SCHEMA_VERSION}")
    problems = error.errors(include_url=False, include_input=False)
    if problems[0]["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return InvalidEvent("unknown_kind", f"kind must be one of {', '.join(kinds)}")
    listed = [_explain(problem, branched=bool(kinds)) for problem in problems[:PROBLEMS_MAX]]
    if len(problems) > PROBLEMS_MAX:
        listed.append(f"and {len(problems) - PROBLEMS_MAX} more")
    return InvalidEvent(problems[0]["type"], "; ".join(listed))


def _explain(problem: Any, *, branched: bool) -> str:
    """Return field, rule and limits of one pydantic error, without its message, input or other context."""
    limits = {name: value for name, value in problem.get("ctx", {}).items() if name in _OUR_LIMITS}
    rule = ", ".join([problem["type"], *(f"{name} {value}" for name, value in limits.items())])
    if problem["type"] in _OUR_FORMS:
        rule += f", {problem['msg']}"
    loc = problem["loc"][1:] if branched else problem["loc"]  # a union's errors begin with its branch, the kind
    path = [part if isinstance(part, int) or part in _FIELDS else "*" for part in loc]
    return f"{'.'.join(map(str, path)) or 'document'}: {rule}"


#: Context of pydantic's errors that repeats the model, not the document.
_OUR_LIMITS = frozenset({"max_length", "min_length", "ge", "le", "expected", "max_bytes", "max_levels", "pattern"})
#: Our own rules about the form of a text. Their messages repeat nothing of the document.
_OUR_FORMS = frozenset({"not_rfc3339", "not_uuid", "not_uuid7"})
_FIELDS = frozenset(
    name
    for module in (alerts, events, export, failures, scores)
    for model in vars(module).values()
    if isinstance(model, type) and issubclass(model, BaseModel)
    for name in model.model_fields
)
