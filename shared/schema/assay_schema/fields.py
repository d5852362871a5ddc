"""Types of single fields with their limits, such as names and times, and the models' base class.

Events, rows, scores, alerts and settings share them. It is apart from `events`, because settings and most commands need no event.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    GetPydanticSchema,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic.types import UUID7
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from assay_schema.limits import (
    INTEGER_MAX,
    INTEGER_MIN,
    ITEMS_MAX,
    NAME_MAX_CHARS,
    NESTING_MAX,
    PROJECT_PATTERN,
    QUERY_MAX_CHARS,
    SAFE_INTEGER_MAX,
    SCHEMA_VERSION,
    SERVICE_MAX_CHARS,
    TEXT_MAX_BYTES,
    YEAR_MAX,
    YEAR_MIN,
)


class Kind(StrEnum):
    """Kind of an event. It determines the payload's shape."""

    RETRIEVAL = "retrieval"
    ANSWER = "answer"
    TOOL_CALL = "tool_call"
    SERVER_EVENT = "server_event"
    SESSION = "session"
    FEEDBACK = "feedback"


@dataclass(frozen=True)
class _TextForm:
    """The canonical JSON form of a value.

    Pydantic alone also accepts Unix times as text, braced UUIDs and more.
    """

    pattern: str
    format: str
    rule: str
    message: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        python = handler(source)
        lax: Any = {**python, "strict": False}
        text = core_schema.chain_schema([core_schema.str_schema(strict=True, pattern=self.pattern), lax])
        json = core_schema.custom_error_schema(text, custom_error_type=self.rule, custom_error_message=self.message)
        return core_schema.json_or_python_schema(json_schema=json, python_schema=python)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "format": self.format, "pattern": self.pattern}


_RFC3339 = _TextForm(
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
    "date-time",
    "not_rfc3339",
    "must be an RFC 3339 time with its zone, such as 2026-01-02T03:04:05.678901Z",
)
_UUID = _TextForm(
    r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$",
    "uuid",
    "not_uuid",
    "must be a UUID",
)
_UUID7 = _TextForm(
    r"^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-7[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$",
    "uuid",
    "not_uuid7",
    "must be a UUIDv7",
)


def _within_text_limit(text: str) -> str:
    if len(text) * 4 > TEXT_MAX_BYTES and len(text.encode()) > TEXT_MAX_BYTES:
        raise PydanticCustomError("text_too_long", "longer than {max_bytes} bytes", {"max_bytes": TEXT_MAX_BYTES})
    return text


def _distinct(names: list[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _utc(moment: datetime) -> datetime:
    """Convert to UTC, and require a year that every sink supports; others would be stored incorrectly."""
    if not YEAR_MIN < moment.year < YEAR_MAX:  # a time zone can move the year by one
        raise PydanticCustomError(
            "year_out_of_range", "not between the years {ge} and {le}", {"ge": YEAR_MIN + 1, "le": YEAR_MAX - 1}
        )
    return moment.astimezone(UTC)


def _portable(value: Any) -> Any:
    """Require free-form JSON that every later step can write again.

    That excludes NaN, infinity, integers beyond 64 bits, and lone surrogates.
    """
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > NESTING_MAX:
            raise PydanticCustomError("nested_too_deep", "more than {max_levels} levels", {"max_levels": NESTING_MAX})
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(item)  # keys are text too, and are checked the same way
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
            else:
                _require_portable(item)
        level = deeper
    return value


def _require_portable(scalar: Any) -> None:
    match scalar:
        case None | bool():
            pass
        case str():
            if not scalar.isascii():
                try:
                    scalar.encode()
                except UnicodeEncodeError:
                    raise PydanticCustomError("lone_surrogate", "text with a lone surrogate") from None
        case int():
            if not INTEGER_MIN <= scalar <= INTEGER_MAX:
                raise PydanticCustomError("integer_too_large", "an integer beyond 64 bits")
        case float():
            if not isfinite(scalar):
                raise PydanticCustomError("finite_number", "a number that is not finite")
        case _:
            raise PydanticCustomError("not_json", "a value without a JSON form")


Project = Annotated[str, StringConstraints(pattern=f"^{PROJECT_PATTERN}$")]
Service = Annotated[
    str,
    StringConstraints(min_length=1, max_length=SERVICE_MAX_CHARS, pattern=r"^[^\u0000-\u001f\u007f-\u009f]*$"),
]
Traceparent = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$")]
Name = Annotated[str, StringConstraints(max_length=NAME_MAX_CHARS)]
Names = Annotated[list[Name], Field(max_length=ITEMS_MAX), FailFast()]
DistinctNames = Annotated[Names, AfterValidator(_distinct)]
Query = Annotated[str, StringConstraints(max_length=QUERY_MAX_CHARS)]
#: The limit is in bytes. The same number of characters is the closest limit that JSON Schema supports.
Text = Annotated[str, StringConstraints(max_length=TEXT_MAX_BYTES), AfterValidator(_within_text_limit)]
SafeInt = Annotated[int, Field(ge=-SAFE_INTEGER_MAX, le=SAFE_INTEGER_MAX)]
ChunkIds = Annotated[list[SafeInt], Field(max_length=ITEMS_MAX), FailFast()]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=SAFE_INTEGER_MAX)]
ToolStatus = Literal["success", "empty", "partial", "degraded", "error", "refused"]
Score = Annotated[float, Field(allow_inf_nan=False)]
Scores = Annotated[list[Score], Field(max_length=ITEMS_MAX), FailFast()]
EventId = Annotated[UUID7, _UUID7]
AnyUuid = Annotated[UUID, _UUID]
UtcDatetime = Annotated[AwareDatetime, _RFC3339, AfterValidator(_utc)]
FreeJson = Annotated[dict[str, Any], Field(max_length=ITEMS_MAX), AfterValidator(_portable)]
PiiFamilies = dict[str, Annotated[int, Field(ge=0)]]
PiiCategories = DistinctNames
Detail = Literal["low", "medium", "high"]
#: A hexadecimal keyed hash of at least 128 bits. No e-mail address, name or customer number has this form.
UserHash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32,128}$")]
Origin = Literal["sdk", "http", "otlp"]
#: Exactly the integer 1: `Literal` alone would also accept `true`.
SchemaVersion = Annotated[
    Literal[1],
    GetPydanticSchema(
        lambda _source, _handler: core_schema.int_schema(strict=True, ge=SCHEMA_VERSION, le=SCHEMA_VERSION)
    ),
    WithJsonSchema({"type": "integer", "const": SCHEMA_VERSION}),
]


class Model(BaseModel):
    """Base model: strict about types, ignores unknown keys.

    Its validator is built on first use, because a process needs few.
    """

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, hide_input_in_errors=True, defer_build=True)
