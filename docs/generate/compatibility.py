"""Find the breaking changes between a released JSON Schema and a new one. Pure.

This depends on who writes and who reads, which each schema states as `x-assay-role`:

=========================================  ========  =========  =======
change                                     accepted  exchanged  emitted
=========================================  ========  =========  =======
field removed or renamed, default changed  breaks    breaks     breaks
type, enum or limit narrowed               breaks    breaks     breaks
new required field                         breaks    breaks     fine
field now optional, type or enum widened   fine      breaks     breaks
limit loosened                             fine      fine       breaks
new kind                                   fine      fine       breaks
new optional field                         fine      fine       fine
=========================================  ========  =========  =======

- accepted (stream `capture`): producers of any age write, Assay reads. What was valid must stay so.
- exchanged (streams `events` and `failures`): services write and read, for a while in two versions; readers are upgraded first.
- emitted (exports): Assay writes, strangers read, and old rows are exported again. Existing fields stay exactly as they are, enums are
  closed in both directions; consumers must ignore fields they do not know.

Descriptions may always change. A keyword that this module does not understand may not: it fails closed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

#: Classes of change.
REMOVED, NARROWED, REQUIRED, WIDENED, LOOSENED, NEW_KIND = (
    "removed",
    "narrowed",
    "required",
    "widened",
    "loosened",
    "kind",
)
_BREAKING = {
    "accepted": {REMOVED, NARROWED, REQUIRED},
    "exchanged": {REMOVED, NARROWED, REQUIRED, WIDENED},
    "emitted": {REMOVED, NARROWED, WIDENED, LOOSENED, NEW_KIND},
}

_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_OPAQUE = ("pattern", "format")
_WORDS = {"title", "description", "examples", "$comment", "deprecated"}
_STRUCTURE = {"type", "enum", "const", "properties", "required", "items", "additionalProperties", "default"}
_UNIONS = ("anyOf", "oneOf")
_ROOT = {"$defs", "$id", "$schema", "x-assay-role"}

Change = tuple[str, str]


def breaking_changes(released_schema: Schema, new_schema: Schema) -> list[str]:
    """List the changes in `new_schema` that break users of `released_schema`.

    One sentence each, beginning with the field's path. Raises `ValueError` if the released schema states no role.
    """
    role = released_schema.get("x-assay-role")
    if role not in _BREAKING:
        raise ValueError(f"the released schema must state x-assay-role, one of {', '.join(_BREAKING)}")
    found = [
        f"{keyword} changed from {released_schema.get(keyword)} to {new_schema.get(keyword)}"
        for keyword in ("$id", "$schema", "x-assay-role")
        if released_schema.get(keyword) != new_schema.get(keyword)
    ]
    changes = _Comparison(released_schema, new_schema).values("", released_schema, new_schema)
    return found + [words for kind, words in changes if kind in _BREAKING[role]]


class _Comparison:
    def __init__(self, released: Schema, new: Schema) -> None:
        self._released_definitions = released.get("$defs", {})
        self._new_definitions = new.get("$defs", {})

    def values(self, path: str, old: Schema, new: Schema) -> Iterator[Change]:
        """Yield the changes of one value, which may have several alternative shapes."""
        olds = _alternatives(old, self._released_definitions)
        news = _alternatives(new, self._new_definitions)
        for name in olds.keys() - news.keys():
            yield NARROWED, f"{path or 'document'}: {name} is no longer allowed"
        for name in news.keys() - olds.keys():
            kind = NEW_KIND if name.startswith("kind ") else WIDENED
            yield kind, f"{path or 'document'}: {name} is new"
        if old.get("default", _ABSENT) != new.get("default", _ABSENT):
            yield REMOVED, f"{path}: the default changed from {_shown(old)} to {_shown(new)}"
        for name in olds:
            if name in news:
                yield from self._shapes(_joined(path, name), olds[name], news[name])

    def _shapes(self, path: str, old: Schema, new: Schema) -> Iterator[Change]:
        yield from _enums(path, old, new)
        yield from _limits(path, old, new)
        yield from _unknown_keywords(path, old, new)
        yield from self._fields(path, old, new)
        for keyword, inner in (("items", "[]"), ("additionalProperties", "{}")):
            before, after = old.get(keyword, True), new.get(keyword, True)
            if isinstance(before, Mapping) and isinstance(after, Mapping):
                yield from self.values(path + inner, before, after)
            elif before != after:
                yield (WIDENED if after is True else NARROWED), f"{path}{inner}: {keyword} changed"

    def _fields(self, path: str, old: Schema, new: Schema) -> Iterator[Change]:
        olds, news = old.get("properties", {}), new.get("properties", {})
        must_old, must_new = set(old.get("required", ())), set(new.get("required", ()))
        for name in olds:
            field = f"{path}.{name}" if path else name
            if name not in news:
                yield REMOVED, f"{field}: removed (or renamed)"
                continue
            if name in must_new - must_old:
                yield NARROWED, f"{field}: required now, was optional"
            if name in must_old - must_new:
                yield WIDENED, f"{field}: optional now, was required"
            yield from self.values(field, olds[name], news[name])
        for name in news.keys() - olds.keys():
            if name in must_new:
                yield REQUIRED, f"{path}.{name}: new and required".removeprefix(".")


_ABSENT = object()


def _shown(schema: Schema) -> str:
    return repr(schema["default"]) if "default" in schema else "none"


def _joined(path: str, name: str) -> str:
    return f"{path}<{name.removeprefix('kind ')}>" if name.startswith("kind ") else path


def _alternatives(schema: Schema, definitions: Mapping[str, Schema]) -> dict[str, Schema]:
    """Return the shapes a value may have, by a name that is stable between versions: `kind` or JSON type."""
    if "$ref" in schema:
        return _alternatives(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    for union in _UNIONS:
        if union in schema:
            shapes: dict[str, Schema] = {}
            for branch in schema[union]:
                for name, shape in _alternatives(branch, definitions).items():
                    shapes[f"another {name}" if name in shapes else name] = shape
            return shapes
    kind = schema.get("properties", {}).get("kind", {}).get("const")
    if kind is not None:
        return {f"kind {kind}": schema}
    types = schema.get("type", "any")
    return {f"type {each}": schema for each in ([types] if isinstance(types, str) else types)}


def _enums(path: str, old: Schema, new: Schema) -> Iterator[Change]:
    olds, news = (
        set(each["enum"]) if "enum" in each else {each["const"]} if "const" in each else None for each in (old, new)
    )
    if olds == news:
        return
    if olds is None:
        yield NARROWED, f"{path}: only {sorted(map(str, news or ()))} are allowed now"
    elif news is None:
        yield WIDENED, f"{path}: any value is allowed now"
    else:
        for value in sorted(map(str, olds - news)):
            yield NARROWED, f"{path}: {value} is no longer allowed"
        for value in sorted(map(str, news - olds)):
            yield WIDENED, f"{path}: {value} is newly allowed"


def _limits(path: str, old: Schema, new: Schema) -> Iterator[Change]:
    for keyword in (*_UPPER, *_LOWER):
        before, after = old.get(keyword), new.get(keyword)
        if before == after:
            continue
        tighter = after is not None and (before is None or (after < before if keyword in _UPPER else after > before))
        yield (NARROWED if tighter else LOOSENED), f"{path}: {keyword} changed from {before} to {after}"
    for keyword in _OPAQUE:
        before, after = old.get(keyword), new.get(keyword)
        if before != after:  # it is unknown which of two patterns allows more: a changed one counts as narrower
            yield (LOOSENED if after is None else NARROWED), f"{path}: {keyword} changed from {before} to {after}"


def _unknown_keywords(path: str, old: Schema, new: Schema) -> Iterator[Change]:
    understood = {*_UPPER, *_LOWER, *_OPAQUE, *_WORDS, *_STRUCTURE, *_UNIONS, *_ROOT}
    for keyword in sorted((old.keys() | new.keys()) - understood):
        if old.get(keyword, _ABSENT) != new.get(keyword, _ABSENT):
            yield REMOVED, f"{path}: {keyword} changed, which this check does not understand"
