"""Published formats: the JSON Schema of each stream and export, and its example documents."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import orjson
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from assay_schema.alerts import Alert
from assay_schema.events import Event, ScrubbedEvent
from assay_schema.export import ROWS
from assay_schema.failures import Failure
from assay_schema.fields import Kind
from assay_schema.limits import SCHEMA_VERSION
from assay_schema.scores import Score

#: Who writes and who reads a format, from Assay's point of view. It determines which changes are breaking; see
#: `docs.generate.compatibility`.
Role = Literal["accepted", "exchanged", "emitted"]
ROLE_KEYWORD = "x-assay-role"


@dataclass(frozen=True)
class Format:
    """Format of a stream's entry or an export's line."""

    name: str
    model: Any
    role: Role
    title: str
    description: str

    @property
    def file_name(self) -> str:
        """Return the name of the schema's file."""
        return f"{self.name}.v{SCHEMA_VERSION}.json"

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema (draft 2020-12) of the current models."""
        made = TypeAdapter(self.model).json_schema(schema_generator=_Generator)
        made.pop("discriminator", None)  # OpenAPI's, and redundant: each branch contains its `kind`
        made.pop("title", None)
        made.pop("description", None)
        return {
            "$schema": GenerateJsonSchema.schema_dialect,
            "$id": f"urn:assay:schema:{self.name}:v{SCHEMA_VERSION}",
            "title": self.title,
            "description": self.description,
            ROLE_KEYWORD: self.role,
            **made,
        }


class _Generator(GenerateJsonSchema):
    """A schema generator that omits titles of fields, which only repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  # the interface's argument
        return False


FORMATS = (
    Format(
        "capture", Event, "accepted", "Stream `capture`", "One event as a producer sends it, distinguished by `kind`."
    ),
    Format("events", ScrubbedEvent, "exchanged", "Stream `events`", "One event without personal data."),
    Format("failures", Failure, "exchanged", "Stream `failures`", "One event that was not stored, or one incident."),
    Format("scores", Score, "exchanged", "Stream `scores`", "The judge's scores of one answer, and their reasons."),
    Format("alerts", Alert, "exchanged", "Stream `alerts`", "One transition of an alert episode."),
    *(
        Format(f"export-{kind}", ROWS[kind], "emitted", f"Export of {rows}", f"A line of `assay export --kind {kind}`.")
        for kind, rows in (
            (Kind.RETRIEVAL, "retrievals"),
            (Kind.ANSWER, "answers"),
            (Kind.FEEDBACK, "feedback"),
            (Kind.TOOL_CALL, "tool calls"),
            (Kind.SERVER_EVENT, "events of tool servers"),
            (Kind.SESSION, "parts of sessions"),
        )
    ),
)


@cache
def _format(name: str) -> Format:
    for each in FORMATS:
        if each.name == name:
            return each
    raise KeyError(f"no stream or export {name}; the available ones are {', '.join(each.name for each in FORMATS)}")


def published_schema(name: str, *, released: bool = False) -> dict[str, Any]:
    """Return the checked-in schema of a stream or export: current or last released.

    Raises `KeyError` for an unknown name.
    """
    folder = files("assay_schema") / "schemas"
    if released:
        folder = folder / "released"
    schema: dict[str, Any] = orjson.loads((folder / _format(name).file_name).read_bytes())
    return schema


@dataclass(frozen=True)
class Example:
    """A checked-in document.

    `breaks` is the rule that an invalid one violates (`InvalidEvent.rule`), or None.
    """

    name: str
    document_bytes: bytes
    breaks: str | None


def examples(stream: str, *, valid: bool = True) -> list[Example]:
    """Return the example documents of a stream or export, by name.

    They are files `examples/<stream>/valid/<name>.json` and `examples/<stream>/invalid/<name>.<rule>.json`, used in
    tests byte for byte: some invalid ones are not JSON at all. Every producer and consumer is tested against them.
    Raises `KeyError` for an unknown stream.
    """
    folder = files("assay_schema") / "examples" / _format(stream).name / ("valid" if valid else "invalid")
    documents = []
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        name, _, rule = file.name.removesuffix(".json").partition(".")
        documents.append(Example(name, file.read_bytes(), rule or None))
    return documents
