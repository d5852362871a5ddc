"""Generate the reference page of events, failures and exports from their JSON Schemas. Pure."""

from collections.abc import Iterator
from typing import Any

import orjson

from assay_schema.limits import ENTRY_MAX_BYTES, ITEMS_MAX, NAME_MAX_CHARS, NESTING_MAX, QUERY_MAX_CHARS, TEXT_MAX_BYTES
from assay_schema.published import FORMATS

_PAGE = f"""\
# Events

<!-- Made by `make docs` from the models in shared/schema/assay_schema: change it there. -->

One event is one JSON object: an envelope that says who and when, and a `payload` whose shape follows from `kind`. A producer may send it
with the SDK, or put it itself into the field `data` of an entry of the stream `assay:{{0}}:capture` (literally; `{{0}}` is shard 0).

A producer may leave out every field that is not required. Keys that are not listed here are ignored, and are not kept. If a key is written
twice the last one counts. Events are not truncated: one that breaks a rule is refused whole, and recorded as a failure that names
the field and the rule, never the content.

- Over HTTP the [gateway](gateway.md) fills in `schema_version`, `event_id`, `project`, `occurred_at` and, if the key has one,
  `service`. An event that breaks a rule is named in its answer, and has no failure row.
- Texts of [OpenTelemetry spans](otel.md) are cut to the limits instead, and `partial` is true.
- Times are RFC 3339 with their zone, kept in UTC to the microsecond. `event_id` is a UUIDv7, and makes a repeated send harmless.
- An entry may have {ENTRY_MAX_BYTES:,} bytes, a query {QUERY_MAX_CHARS:,} characters, other text {TEXT_MAX_BYTES:,} bytes of UTF-8, a list
  {ITEMS_MAX:,} items, free-form JSON {NESTING_MAX} levels.
- Chunk ids and `job_id` are integers of absolute value below 2^53, and `latency_ms` is 0 or more. Slugs, ids and names of models have at
  most {NAME_MAX_CHARS:,} characters.
- NaN, infinities, other integers beyond 64 bits, and text with half a character (a lone surrogate such as `"\\ud800"`) are refused.

The JSON Schemas are in [`shared/schema/assay_schema/schemas`](../shared/schema/assay_schema/schemas), and documents that fit or break
them, to test a producer or consumer with, in [`shared/schema/assay_schema/examples`](../shared/schema/assay_schema/examples).

Version 1 only grows: fields are added, none is removed, renamed or given another type, and enums stay as they are. Ignore fields that you
do not know. A document with another `schema_version` is refused, never misread.
"""


def events_page() -> str:
    """Return the content of docs/events.md."""
    schemas = {each.name: each.schema() for each in FORMATS}
    definitions = schemas["capture"]["$defs"]
    branches = {
        _const(definitions[_name_of(branch)], "kind"): definitions[_name_of(branch)]
        for branch in schemas["capture"]["oneOf"]
    }
    envelope = next(iter(branches.values()))
    fields = {**envelope["properties"], "kind": {**envelope["properties"]["kind"], "enum": list(branches)}}
    fields["payload"] = {"type": "object", "description": "The captured data, as below."}
    parts = [_PAGE, "\n## Envelope\n\n", *_accepted(fields, envelope["required"])]
    described = set()
    for kind, branch in branches.items():
        payload = definitions[_name_of(branch["properties"]["payload"])]
        parts += [
            f"\n## `{kind}`\n\n{payload['description']}\n\n",
            *_accepted(payload["properties"], payload["required"]),
        ]
        for name in _named_in(payload):
            if name not in described:
                described.add(name)
                inner = definitions[name]
                parts += [
                    f"\n### {name}\n\n{inner['description']}\n\n",
                    *_accepted(inner["properties"], inner["required"]),
                ]
    scrubbed = schemas["events"]["$defs"]["ScrubbedRetrieval"]["properties"]
    added = {name: field for name, field in scrubbed.items() if name not in fields}
    parts += ["\n## Fields added by the scrubber\n\n", *_given(added)]
    for each in FORMATS:
        if each.name not in ("capture", "events"):
            schema = schemas[each.name]
            parts += [f"\n## {each.title}\n\n{each.description}\n\n", *_given(_with_enums(schema))]
            for name in _named_in(schema):
                inner = schema["$defs"][name]
                if name not in described and "properties" in inner:
                    described.add(name)
                    parts += [f"\n### {name}\n\n{inner['description']}\n\n", *_given(inner["properties"])]
    return "".join(parts)


def _with_enums(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema's properties, with the values of enums."""
    defined = schema.get("$defs", {})
    return {
        name: {"enum": defined[_name_of(field)]["enum"], "description": field["description"]}
        if "enum" in defined.get(_name_of(field), ())
        else field
        for name, field in schema["properties"].items()
    }


def _accepted(fields: dict[str, Any], required: list[str]) -> Iterator[str]:
    yield "| field | type | if left out | meaning |\n|---|---|---|---|\n"
    for name, field in fields.items():
        default = (
            "refused"
            if name in required
            else f"`{orjson.dumps(field['default']).decode()}`"
            if "default" in field
            else "empty"
        )
        yield f"| `{name}` | {_type(field)} | {default} | {field['description']} |\n"


def _given(fields: dict[str, Any]) -> Iterator[str]:
    yield "| field | type | meaning |\n|---|---|---|\n"
    for name, field in fields.items():
        yield f"| `{name}` | {_type(field)} | {field['description']} |\n"


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        name = _name_of(field)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(_type(branch) for branch in field["anyOf"])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field["type"] == "array":
        return f"list of {_type(field['items'])}"
    if "format" in field:
        return {"uuid": "UUID", "date-time": "time"}[field["format"]]
    return str(field["type"])


def _const(schema: dict[str, Any], name: str) -> str:
    return str(schema["properties"][name]["const"])


def _name_of(reference: dict[str, Any]) -> str:
    return str(reference.get("$ref", "")).removeprefix("#/$defs/")


def _named_in(schema: dict[str, Any]) -> Iterator[str]:
    for field in schema["properties"].values():
        if "$ref" in field.get("items", {}):
            yield _name_of(field["items"])
