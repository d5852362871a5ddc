"""A released format only grows. Every class of breaking change is caught, on the real schemas."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from assay_schema.published import FORMATS, published_schema
from docs.generate.compatibility import breaking_changes

Schema = dict[str, Any]
Edit = Callable[[Schema], object]
NAMES = [each.name for each in FORMATS]
ALL = {"capture", "failures", "export-retrieval"}


@pytest.mark.parametrize("name", NAMES)
def test_the_current_models_break_nothing_that_was_released(name: str) -> None:
    current = next(each for each in FORMATS if each.name == name).schema()
    assert breaking_changes(published_schema(name, released=True), current) == []


#: Where a retrieval's or failure's fields are, in each of three schemas, one of each role.
MODEL: dict[str, Callable[[Schema], Schema]] = {
    "capture": lambda schema: schema["$defs"]["Retrieval"],
    "failures": lambda schema: schema,
    "export-retrieval": lambda schema: schema,
}
#: A field of each sort, in each schema.
FIELDS = {
    "capture": {"text": "query", "number": "latency_ms", "must": "query", "may": "job_id", "flag": "remote", "choice": "tool_name"},
    "failures": {"text": "detail", "number": "deliveries", "must": "stage", "may": "event_id", "flag": "deliveries", "choice": ""},
    "export-retrieval": {
        "text": "query",
        "number": "latency_ms",
        "must": "query",
        "may": "job_id",
        "flag": "remote",
        "choice": "tool_name",
    },
}  # fmt: skip


class Fields:
    """The fields of one schema, to be changed as a model's change would."""

    def __init__(self, name: str, schema: Schema) -> None:
        self._model = MODEL[name](schema)
        self._names = FIELDS[name]
        self.all = self._model["properties"]
        self.required = self._model["required"]
        self.choice = schema["$defs"]["Reason"] if name == "failures" else self["choice"]

    def __getitem__(self, sort: str) -> Schema:
        field: Schema = self.all[self._names[sort]]
        return field

    def name(self, sort: str) -> str:
        return self._names[sort]


CHANGES: list[tuple[str, Callable[[Fields], object], set[str]]] = [
    ("a field is removed", lambda f: f.all.pop(f.name("text")), ALL),
    ("a field is renamed", lambda f: f.all.update(renamed=f.all.pop(f.name("number"))), ALL),
    ("a type changes", lambda f: f["flag"].update(type="string"), ALL),
    ("null is no longer allowed", lambda f: f["may"]["anyOf"].pop(), ALL),
    (
        "null is newly allowed",
        lambda f: f["must"].update(type=[f["must"]["type"], "null"]),
        {"failures", "export-retrieval"},
    ),
    (
        "another type is newly allowed",
        lambda f: f["may"]["anyOf"].append({"type": "boolean"}),
        {"failures", "export-retrieval"},
    ),
    ("a choice is removed", lambda f: f.choice["enum"].pop(), ALL),
    ("a choice is added", lambda f: f.choice["enum"].append("new"), {"failures", "export-retrieval"}),
    ("a choice is renamed", lambda f: f.choice["enum"].__setitem__(0, "new"), ALL),
    ("a choice becomes free text", lambda f: f.choice.pop("enum"), {"failures", "export-retrieval"}),
    ("free text becomes a choice", lambda f: f["text"].update(enum=["a"]), ALL),
    ("a longest length is tightened", lambda f: f["text"].update(maxLength=10), ALL),
    ("a longest length is loosened", lambda f: f["text"].update(maxLength=10**9), {"export-retrieval"}),
    ("a longest length is dropped", lambda f: f["text"].pop("maxLength"), {"export-retrieval"}),
    ("a least length is set", lambda f: f["text"].update(minLength=1), ALL),
    ("a minimum is raised", lambda f: f["number"].update(minimum=1), ALL),
    ("a minimum is lowered", lambda f: f["number"].update(minimum=-1), {"export-retrieval"}),
    ("a maximum is set", lambda f: f["number"].update(maximum=10), ALL),
    ("a pattern is set", lambda f: f["text"].update(pattern="^a"), ALL),
    ("an unknown keyword appears", lambda f: f["text"].update(contentEncoding="base64"), ALL),
    (
        "a new field is required",
        lambda f: (f.all.update(new={"type": "string"}), f.required.append("new")),
        {"capture", "failures"},
    ),
    ("a new field is optional", lambda f: f.all.update(new={"type": "string"}), set()),
    (
        "an optional field is required",
        lambda f: f.required.append(f.name("may")),
        {"capture", "failures"},
    ),
    ("a required field is optional", lambda f: f.required.remove(f.name("must")), {"failures", "export-retrieval"}),
    ("a description changes", lambda f: f["text"].update(description="Said otherwise."), set()),
]


@pytest.mark.parametrize("name", sorted(ALL))
@pytest.mark.parametrize(("what", "change", "breaks"), CHANGES, ids=[what for what, *_ in CHANGES])
def test_a_change_breaks_those_it_breaks(
    name: str, what: str, change: Callable[[Fields], object], breaks: set[str]
) -> None:
    released = published_schema(name, released=True)
    changed = copy.deepcopy(released)
    change(Fields(name, changed))
    assert changed != released
    found = breaking_changes(released, changed)
    assert bool(found) == (name in breaks), f"{what}: {found}"


def test_a_change_is_named_with_its_field_and_both_values() -> None:
    released = published_schema("capture", released=True)
    changed = copy.deepcopy(released)
    changed["$defs"]["Retrieval"]["properties"]["query"]["maxLength"] = 100
    del changed["$defs"]["Answer"]["properties"]["model"]
    assert sorted(breaking_changes(released, changed)) == [
        "<answer>.payload.model: removed (or renamed)",
        "<retrieval>.payload.query: maxLength changed from 51200 to 100",
    ]


INNER_EDITS: list[Edit] = [
    lambda s: s["$defs"]["Retrieval"]["properties"]["retrieved_slugs"]["items"].update(maxLength=5),
    lambda s: s["$defs"]["Retrieval"]["properties"]["retrieved_slugs"]["items"].update(type="integer"),
    lambda s: s["$defs"]["ScrubbedAnswer"]["properties"]["pii_families"]["additionalProperties"].update(maximum=5),
    lambda s: s["$defs"]["Retrieval"]["properties"]["params"].update(additionalProperties={"type": "string"}),
    lambda s: s["$defs"]["Context"]["properties"].pop("score"),
    lambda s: s["$defs"]["Answer"]["properties"]["contexts"].update(maxItems=5),
]


@pytest.mark.parametrize("edit", INNER_EDITS, ids=range(len(INNER_EDITS)))
def test_items_of_lists_values_of_maps_and_nested_models_are_compared(edit: Edit) -> None:
    released = published_schema("events", released=True)
    changed = copy.deepcopy(released)
    edit(changed)
    assert breaking_changes(released, changed)


@pytest.mark.parametrize(("old", "new"), [("number", "integer"), ("integer", "number")])
def test_a_number_neither_becomes_whole_nor_gets_a_fraction(old: str, new: str) -> None:
    released = {"type": "object", "properties": {"n": {"type": old}}, "x-assay-role": "emitted"}
    changed = {"type": "object", "properties": {"n": {"type": new}}, "x-assay-role": "emitted"}
    assert breaking_changes(released, changed) == [f"n: type {old} is no longer allowed", f"n: type {new} is new"]


def test_a_default_may_not_change() -> None:
    released = published_schema("capture", released=True)
    changed = copy.deepcopy(released)
    changed["$defs"]["Retrieval"]["properties"]["remote"]["default"] = True
    assert breaking_changes(released, changed) == ["<retrieval>.payload.remote: the default changed from False to True"]


def test_a_kind_may_join_but_not_leave() -> None:
    released = published_schema("events", released=True)
    fewer = copy.deepcopy(released)
    fewer["oneOf"].pop()
    assert breaking_changes(released, fewer) == ["document: kind feedback is no longer allowed"]
    assert breaking_changes(fewer, released) == []


def test_renaming_a_definition_changes_nothing() -> None:
    released = published_schema("failures", released=True)
    changed = copy.deepcopy(released)
    changed["$defs"]["Cause"] = changed["$defs"].pop("Reason")
    changed["properties"]["reason"]["$ref"] = "#/$defs/Cause"
    assert breaking_changes(released, changed) == []


@pytest.mark.parametrize("keyword", ["$id", "$schema", "x-assay-role"])
def test_identity_and_role_are_fixed(keyword: str) -> None:
    released = published_schema("capture", released=True)
    assert breaking_changes(released, {**released, keyword: "other"}) == [
        f"{keyword} changed from {released[keyword]} to other"
    ]


def test_a_schema_without_a_role_cannot_be_judged() -> None:
    with pytest.raises(ValueError, match="x-assay-role"):
        breaking_changes({}, {})
