"""Turn a verdict of a person in a web page into a feedback event. Pure."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import from_json

from assay_access.api_keys import KeyRecord
from assay_gateway.refusal import malformed
from assay_schema.fields import EventId, Name, UserHash
from assay_schema.ids import derived_event_id, event_ms, new_event_id
from assay_schema.limits import SCHEMA_VERSION
from assay_schema.validation import event_time_ok

#: Longest comment of a verdict from a web page, in UTF-8 bytes.
TEXT_MAX_BYTES = 4 * 1024
#: `service` of verdicts whose key has none.
SERVICE = "feedback"
#: Longest id of a model's response, in characters.
RESPONSE_ID_MAX_CHARS = 4_096

TraceId = Annotated[str, StringConstraints(pattern="^[0-9A-Fa-f]{32}$")]
ResponseId = Annotated[str, StringConstraints(min_length=1, max_length=RESPONSE_ID_MAX_CHARS)]


def _exactly_one(schema: dict[str, Any]) -> None:
    """Describe a model of which exactly one member is given."""
    schema |= {"minProperties": 1, "maxProperties": 1}
    for member in schema["properties"].values():
        del member["default"]


class Target(BaseModel):
    """The event that a verdict is about: exactly one of these."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True, json_schema_extra=_exactly_one)

    event_id: EventId | SkipJsonSchema[None] = Field(default=None, description="The `event_id` of the answer.")
    trace_id: TraceId | SkipJsonSchema[None] = Field(
        default=None, description="The id of the OpenTelemetry trace with the answer, in hexadecimal."
    )
    response_id: ResponseId | SkipJsonSchema[None] = Field(
        default=None, description="The id of the model's response, as its API gave it."
    )


class Verdict(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(strict=True, extra="forbid", hide_input_in_errors=True)

    target: Target = Field(description="The event that the verdict is about.")
    verdict: Literal["positive", "negative"] = Field(description="The verdict.")
    text: Annotated[str, Field(max_length=TEXT_MAX_BYTES)] | None = Field(
        default=None, description="A comment. At most 4 KiB of UTF-8."
    )
    id: Annotated[Name, Field(min_length=1)] | None = Field(
        default=None, description="Id of the verdict: repeated requests with the same id are stored once."
    )
    user_hash: UserHash | None = Field(
        default=None,
        description="The person, as a keyed hash: 32 to 128 hexadecimal digits in lower case. It is stored as it is.",
    )


def verdict_of(body: bytes) -> Verdict:
    """Return the verdict in the body of a request. Raises `RefusedError`."""
    try:
        verdict = Verdict.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise malformed("invalid_json", "the body is not JSON") from None
        document = from_json(body)
        target = document.get("target") if isinstance(document, dict) else None
        several = isinstance(target, dict) and len(target.keys() & Target.model_fields.keys()) > 1
        raise malformed("invalid_feedback", _ONE_TARGET if several else _in_words(first)) from None
    if verdict.text is not None and len(verdict.text.encode(errors="replace")) > TEXT_MAX_BYTES:
        raise malformed("invalid_feedback", f"text: longer than {TEXT_MAX_BYTES} bytes")
    given = [name for name, value in verdict.target if value is not None]
    if len(given) != 1:
        raise malformed("invalid_feedback", _ONE_TARGET)
    return verdict


_ONE_TARGET = f"target: give exactly one of {', '.join(Target.model_fields)}"
#: Rules whose message in pydantic or in the models of events repeats the model only, never the body.
_PLAIN = frozenset(
    {
        "literal_error",
        "missing",
        "model_type",
        "not_uuid7",
        "string_pattern_mismatch",
        "string_too_long",
        "string_too_short",
        "string_type",
    }
)


def _in_words(problem: Any) -> str:
    """Return the member and what is valid, from one of pydantic's errors."""
    rule, loc = problem["type"], problem["loc"]
    members = Target.model_fields if loc[:1] == ("target",) else Verdict.model_fields
    known = [str(part) for part in loc if part in Verdict.model_fields or part in Target.model_fields]
    place = ".".join(known[: len(loc) - 1] if rule == "extra_forbidden" else known) or "body"
    if rule == "extra_forbidden":
        return f"{place}: it has an unknown member; known are {', '.join(members)}"
    return f"{place}: {problem['msg'] if rule in _PLAIN else rule}"


def feedback_event(verdict: Verdict, target: UUID, record: KeyRecord, now_ms: int) -> tuple[str, bytes]:
    """Return the id and the JSON of the event of a verdict on an event. Raises `RefusedError`."""
    if not event_time_ok(target, now_ms):
        raise malformed("invalid_feedback", "target.event_id: its time is more than a day ahead of the server's clock")
    event_id = new_event_id()
    if verdict.id is not None:  # the time must be the same in each repetition, so it is that of the target
        key = f"{record.project}\0feedback\0{target}\0{verdict.id}"
        event_id = derived_event_id(event_ms(target), key.encode())
    payload = {"target_event_id": str(target), "verdict": verdict.verdict}
    payload |= {} if verdict.text is None else {"text": verdict.text}
    payload |= {} if verdict.user_hash is None else {"user_hash": verdict.user_hash}
    moment = datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds")
    event = {
        "schema_version": SCHEMA_VERSION,
        "event_id": event_id,
        "project": record.project,
        "service": record.service or SERVICE,
        "occurred_at": moment.replace("+00:00", "Z"),
        "origin": "http",
        "kind": "feedback",
        "payload": payload,
    }
    return event_id, orjson.dumps(event)
