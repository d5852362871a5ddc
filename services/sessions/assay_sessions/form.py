"""Check that a stored document has the form of a session. Pure.

Parts of the event of a session are free JSON, and any producer can send them: `assay sessions import` always keeps the form.
"""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from assay_sessions.record import Json


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, hide_input_in_errors=True)


class _Part(_Form):
    text: str = ""


class _Content(_Form):
    role: str
    parts: list[_Part]


class _Candidate(_Form):
    content: _Content


class _Request(_Form):
    contents: list[_Content]


class _Response(_Form):
    candidates: list[_Candidate]


class _Call(_Form):
    name: str
    args: dict[str, Any] | None = None


class _Result(_Form):
    response: dict[str, Any] = Field(default_factory=dict)


class _Event(_Form):
    turn: Annotated[int, Field(ge=0)]
    function_call: _Call
    function_response: _Result = _Result()
    status: str = "success"


class _Document(_Form):
    request: _Request
    response: _Response
    intermediate_events: list[_Event]
    metadata: dict[str, Any]


_DOCUMENT = TypeAdapter(_Document)


def malformed(document: Json) -> str:
    """Return the place and the rule of the first value that has not its form; empty if all have."""
    try:
        _DOCUMENT.validate_python(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(str(place) for place in first['loc'])}: {first['msg']}"
    return ""
