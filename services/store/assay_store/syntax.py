"""Check the syntax tree of a statement: an allow-list, and a short deny-list for the owner.

The tree is the engine's own and complete (`parseQueryToJSON` refuses what it cannot represent), with every name, lambda
and setting in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay_store.config import FIXED_SETTINGS, OVERLAY_DATABASE
from assay_store.names import Names
from assay_store.roles import NAMED_SETTINGS, Role

Tree = dict[str, Any]

ALLOWED_SYSTEM_TABLES = frozenset(
    {
        "aggregate_function_combinators", "build_options", "codecs", "collations", "columns", "completions", "constraints",
        "contributors", "current_roles", "data_skipping_indices", "data_type_families", "database_engines", "databases",
        "enabled_roles", "formats", "functions", "keywords", "licenses", "numbers", "numbers_mt", "one", "primes",
        "settings", "table_engines", "table_functions", "tables", "time_zones", "tokenizers", "zeros", "zeros_mt",
    }
)  # fmt: skip
WRITER_SYSTEM_TABLES = frozenset({"parts", "disks", "view_refreshes", "merges", "metrics"})

_OUTFILE = "is_into_outfile_with_stdout is_outfile_append is_outfile_truncate"
_LAST = f"format_ast settings_ast {_OUTFILE}"
_LISTED = {
    # Selecting.
    "SelectWithUnionQuery": f"{_LAST} list_of_modes list_of_selects union_mode",
    "SelectQuery": "distinct group_by group_by_all group_by_with_cube group_by_with_grouping_sets group_by_with_rollup"
    " group_by_with_totals having interpolate limit_by limit_by_all limit_by_length limit_by_offset limit_length limit_offset"
    " limit_with_ties order_by order_by_all prewhere qualify recursive_with select settings tables where window with",
    "TablesInSelectQuery": "children",
    "TablesInSelectQueryElement": "array_join table_expression table_join",
    "TableExpression": "column_aliases database_and_table_name final sample_offset sample_size subquery table_function",
    "TableIdentifier": "alias children name name_parts",
    "TableJoin": "kind locality on_expression strictness using_expression_list",
    "ArrayJoin": "expression_list kind",
    "SampleRatio": "denominator numerator",
    "Subquery": "alias children",
    "WithElement": "aliases is_materialized name subquery",
    "OrderByElement": "collation direction expression fill_from fill_staleness fill_step fill_to nulls_direction"
    " nulls_direction_was_explicitly_specified with_fill",
    "InterpolateElement": "column expr",
    "WindowListElement": "definition name",
    "WindowDefinition": "frame_begin_offset frame_begin_preceding frame_begin_type frame_end_offset frame_end_preceding"
    " frame_end_type frame_is_default frame_type order_by parent_window_name partition_by",
    # Expressions.
    "ExpressionList": "children",
    "Function": "alias arguments is_lambda_function is_operator is_window_function kind name no_empty_args nulls_action"
    " parameters window_definition window_name",
    "Identifier": "alias children name name_parts",
    "Literal": "alias value",
    "QueryParameter": "alias name param_type",
    "Asterisk": "transformers",
    "QualifiedAsterisk": "qualifier transformers",
    "ColumnsListMatcher": "column_list transformers",
    "ColumnsRegexpMatcher": "pattern transformers",
    "QualifiedColumnsListMatcher": "column_list qualifier transformers",
    "QualifiedColumnsRegexpMatcher": "pattern qualifier transformers",
    # All transformers except APPLY, which calls a function by name.
    "ColumnsTransformerList": "children",
    "ColumnsExceptTransformer": "children is_strict pattern",
    "ColumnsReplaceTransformer": "children is_strict",
    "ColumnsReplaceTransformerReplacement": "children name",
    # Information about tables. SHOW has neither WHERE nor LIMIT, which are expressions; select from the system tables
    # instead.
    "ExplainQuery": f"{_LAST} kind query settings",
    "ShowTablesQuery": "case_insensitive_like changed clusters databases dictionaries from full like not_like settings"
    f" temporary {_LAST}",
    "ShowColumnsQuery": f"{_LAST} case_insensitive_like database extended full like not_like table",
    "ShowIndexesQuery": f"{_LAST} database extended table",
    # Sessions.
    "UseQuery": "database",
    "SetQuery": "changes default_settings is_standalone",
    # Writing.
    "InsertQuery": "columns database format infile select settings_ast table table_function",
    "CreateQuery": "attach columns_list create_or_replace database has_attach_from_path has_inner_uuid_clause has_uuid"
    " has_uuid_clause if_not_exists is_clone_as is_create_empty is_dictionary is_materialized_view is_ordinary_view is_populate"
    f" is_temporary is_time_series_table replace_table replace_view select storage table table_ast {_OUTFILE}",
    "Columns definition": "columns",
    "ColumnDeclaration": "comment data_type ephemeral_default name null_modifier primary_key_specifier",
    "DataType": "arguments name",
    "EnumDataType": "name values",
    "TupleDataType": "arguments element_names name",
    "NameTypePair": "data_type name",
    "Storage": "engine",
    "DropQuery": "case_insensitive_like database database_ast has_all has_tables if_empty if_exists is_dictionary is_temporary is_view"
    f" kind not_like permanently sync table table_ast {_OUTFILE}",
}  # fmt: skip
NODES = {kind: frozenset(keys.split()) | {"type"} for kind, keys in _LISTED.items()}
"""The kinds of nodes allowed for roles other than the owner, each with its allowed parts.

Anything else, or new in an engine upgrade, is refused.
"""

_MUST_BE_FALSE = frozenset(
    f"{_OUTFILE} attach has_attach_from_path is_dictionary is_ordinary_view is_materialized_view is_time_series_table".split()
)
_READING = frozenset(
    [
        "SelectWithUnionQuery",
        "ExplainQuery",
        "ShowTablesQuery",
        "ShowColumnsQuery",
        "ShowIndexesQuery",
        "UseQuery",
        "SetQuery",
    ]
)
ROOTS = {
    Role.WRITER: _READING | {"InsertQuery", "CreateQuery", "DropQuery"},
    Role.EVALUATOR: _READING | {"InsertQuery"},
    Role.OPERATOR: _READING | {"InsertQuery"},
    Role.CONSOLE: _READING | {"InsertQuery"},
    Role.AUDITOR: _READING | {"InsertQuery"},
    Role.SRE: _READING,
    Role.EXPORTER: _READING,
}
_EXPLAINED = frozenset(
    {"EXPLAIN", "EXPLAIN AST", "EXPLAIN SYNTAX", "EXPLAIN QUERY TREE", "EXPLAIN PIPELINE", "EXPLAIN ESTIMATE"}
)
_STRUCTURED = frozenset({"values", "null", "generaterandom"})
"""Table functions whose first argument may be the text of a table's columns."""

_ONLY_WHOLE = frozenset(
    ["InsertQuery", "CreateQuery", "DropQuery", "UseQuery", "ShowTablesQuery", "ShowColumnsQuery", "ShowIndexesQuery"]
)
"""Kinds that are a whole statement, or the subject of EXPLAIN, and occur nowhere else."""
_CALLED = (None, "LAMBDA_FUNCTION", "WINDOW_FUNCTION")
_FORMAT = re.compile(r"[A-Za-z][A-Za-z0-9]*")


class Refusal(Exception):  # noqa: N818  an answer of the check, not a failure
    """The part of a statement that is not allowed, described for its sender."""


@dataclass(frozen=True)
class _Place:
    """A node, its role in the parent node, and that parent (lists of expressions do not count)."""

    node: Tree
    part: str
    above: Tree

    @property
    def function(self) -> str:
        """Name of the function whose argument this is, in lower case, or ""."""
        return str(self.above.get("name", "")).lower() if self.above.get("type") == "Function" else ""


def _places(tree: Tree) -> Iterator[_Place]:
    """Iterate over every node of a tree, from the root down, without the content of literals."""
    waiting: list[tuple[Any, str, Tree]] = [(tree, "", {})]
    while waiting:
        found, part, above = waiting.pop()
        if isinstance(found, list):
            waiting.extend((item, part, above) for item in found)
        elif isinstance(found, dict):
            kind = found.get("type")
            if kind is not None:
                yield _Place(found, part, above)
            if kind in (None, "ExpressionList"):
                waiting.extend((value, part, above) for value in found.values())
            elif kind != "Literal":
                waiting.extend((value, key, found) for key, value in found.items())


def parts_of(identifier: Tree, params: Mapping[str, str]) -> list[str]:
    """Return the parts of a name, with parameters filled in.

    Raises:
        Refusal: a parameter is not in the request.
    """
    parts = [str(part) for part in identifier.get("name_parts") or [identifier.get("name", "")]]
    given = []
    for child in identifier.get("children", ()):
        if child.get("type") != "QueryParameter" or child.get("name") not in params:
            raise Refusal("a name by a parameter that is not in the request")
        given.append(params[child["name"]])
    filled = [part or (given.pop(0) if given else part) for part in parts]
    return [piece for part in filled + given for piece in part.split(".")]


def _text(value: object) -> str | None:
    """Return the text of a plain value of a tree: "" for a number, None for a compound value."""
    if not isinstance(value, dict):
        return ""  # a whole number, whose content is not checked (`parser`)
    kind = value.get("field_type")
    return (
        str(value.get("value", ""))
        if kind == "String"
        else ""
        if kind in ("Float64", "Bool", "UInt64", "Int64")
        else None
    )


def structures(tree: Tree, params: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts in a tree that are columns of a table (`a UInt8, b String`), to be checked.

    Raises:
        Refusal: such a text is calculated, so that it cannot be checked.
    """
    for place in _places(tree):
        if place.node["type"] == "Function" and str(place.node.get("name", "")).lower() in _STRUCTURED:
            arguments = place.node.get("arguments", {}).get("children", [])
            if not arguments:
                continue
            first = arguments[0] if isinstance(arguments[0], dict) else {"type": "Literal"}
            if first.get("type") == "Literal":
                yield _text(first.get("value")) or ""
            elif first.get("type") == "QueryParameter":
                yield params.get(str(first.get("name")), "")
            elif not (first.get("type") == "Function" and str(first.get("name")).lower() in ("tuple", "array")):
                raise Refusal(f"function {place.node['name']} with columns that are calculated")


class Restricted:
    """Checks trees for one role other than the owner's."""

    def __init__(self, role: Role, names: Names) -> None:
        self._role = role
        self._names = names
        self._tables = ALLOWED_SYSTEM_TABLES | (WRITER_SYSTEM_TABLES if role is Role.WRITER else frozenset())

    def check(self, tree: Tree, params: Mapping[str, str], rows_from: str = "") -> None:
        """Refuse a tree that contains anything not allowed.

        Args:
            tree: of one statement.
            params: of the request.
            rows_from: the file an INSERT reads, if the store itself put it there.

        Raises:
            Refusal: it does.
        """
        root = tree.get("type")
        if root not in ROOTS[self._role]:
            raise Refusal(str(root))
        if root == "InsertQuery":
            _check_insert(tree, rows_from)
        if root == "CreateQuery" and (tree.get("is_temporary") is not True or tree.get("database")):
            raise Refusal("CREATE of anything but a temporary table")
        top = _settings_on_top(tree)
        for place in _places(tree):
            self._check(place, params, top)

    def _check(self, place: _Place, params: Mapping[str, str], top: Collection[int]) -> None:
        node, kind = place.node, place.node["type"]
        allowed = NODES.get(kind)
        if allowed is None or (kind in _ONLY_WHOLE and place.above and place.above["type"] != "ExplainQuery"):
            raise Refusal(str(kind))
        for key, value in node.items():
            if key not in allowed or (key in _MUST_BE_FALSE and value is not False):
                raise Refusal(f"{key} in {kind}")
        match kind:
            case "Function":
                self._check_function(place)
            case "Identifier" | "TableIdentifier":
                self._check_name(place, parts_of(node, params))
            case "QueryParameter":
                if "identifier" in str(node.get("param_type", "")).lower() and "Identifier" not in place.above["type"]:
                    raise Refusal("a parameter of the type Identifier here")
            case "SetQuery":
                self._check_set(place, top)
            case "ExplainQuery":
                if node.get("kind") not in _EXPLAINED or node["query"].get("type") not in ROOTS[self._role]:
                    raise Refusal(str(node.get("kind")))

    def _check_function(self, place: _Place) -> None:
        name = str(place.node.get("name", ""))
        lowered = name.lower()
        if place.part == "engine":
            if name != "Memory" or place.node.get("arguments"):
                raise Refusal(f"engine {name}")
        elif place.part == "table_function" or (
            place.function.endswith("in") and lowered in self._names.table_functions
        ):
            if lowered not in self._names.table_functions:
                raise Refusal(f"table function {name}")
        elif place.node.get("kind") not in _CALLED or not self._names.allows(name):
            raise Refusal(f"function {name}")
        elif place.function.endswith("in") and lowered in self._names.nobody_table_functions:
            raise Refusal(f"table function {name}")

    def _check_name(self, place: _Place, parts: list[str]) -> None:
        # A function name may occur where a column may: arrayMap(file, ...) calls it by name.
        for part in parts:
            if part.lower() in self._names.refused_functions:
                raise Refusal(f"function {part}, by name")
        if place.part == "format_ast" and not _FORMAT.fullmatch(parts[0]):
            raise Refusal("a format of that name")
        if parts[0] == "system" and place.part == "database":
            raise Refusal("database system")
        if parts[0] == "system" and len(parts) > 1 and parts[1] not in self._tables:
            raise Refusal(f"table system.{parts[1]}")

    def _check_set(self, place: _Place, top: Collection[int]) -> None:
        if place.above.get("type") == "ExplainQuery" and place.part == "settings":
            return  # options of the plan's output, not settings
        if place.above and id(place.node) not in top:
            raise Refusal("SETTINGS inside a subquery")
        changes = place.node.get("changes", ())
        self.check_settings([str(change.get("name")) for change in changes])
        self.check_settings([str(name) for name in place.node.get("default_settings", ())])
        for change in changes:
            if _text(change.get("value")) is None:
                raise Refusal(f"the setting {change.get('name')} with a value that is not plain")

    def check_settings(self, names: Collection[str]) -> None:
        """Refuse settings that this role must not change.

        Raises:
            Refusal: one of them is not on the list.
        """
        for name in names:
            if name not in NAMED_SETTINGS[self._role]:
                raise Refusal(f"the setting {name}")


def _check_insert(tree: Tree, rows_from: str) -> None:
    if (_text(tree["infile"].get("value")) if "infile" in tree else "") != rows_from:
        raise Refusal("FROM INFILE")
    if not rows_from and "select" not in tree:
        raise Refusal("INSERT that is not told apart from its rows; send them with FORMAT JSONEachRow")


def _settings_on_top(tree: Tree) -> set[int]:
    """Return the SETTINGS of the whole statement, which the engine checks against the limits."""
    found = [tree.get("settings_ast")]
    if tree["type"] == "ExplainQuery":
        tree = tree.get("query", {})
        found.append(tree.get("settings_ast"))
    if tree.get("type") == "InsertQuery":
        tree = tree.get("select", {})
    selects = tree.get("list_of_selects", {}).get("children", [])
    found += [select.get("settings") for select in selects[-1:]]
    return {id(settings) for settings in found if settings}


class Owner:
    """Checks trees for the owner: no files, connections, programs or text as SQL.

    Args:
        names: the listed names.
        unlisted: table functions of the engine that no list has.
        higher_order: functions of the engine that take others, and so call them by name.
    """

    def __init__(self, names: Names, unlisted: Collection[str], higher_order: Collection[str]) -> None:
        self._names = names
        self._tables = names.nobody_table_functions | frozenset(unlisted)
        self._functions = names.nobody_functions | (self._tables - names.functions)
        self._higher_order = frozenset(higher_order)
        self.called = names.nobody_functions | self._tables
        """Names that no one may call, in any position of a call."""

    def check(self, tree: Tree, params: Mapping[str, str], rows_from: str = "") -> None:
        """Check a tree: see `Restricted.check`."""
        if tree.get("type") == "InsertQuery":
            _check_insert(tree, rows_from)
        places = list(_places(tree))
        by_name = any(self._calls_by_name(place.node) for place in places)
        for place in places:
            self._check(place, rows_from)
            if place.node["type"] == "TableIdentifier" and OVERLAY_DATABASE in place.node.get("name_parts", ()):
                raise Refusal(f"database {OVERLAY_DATABASE}")
            if by_name and place.node["type"] == "Identifier":
                for part in parts_of(place.node, params):
                    if part.lower() in self._functions:
                        raise Refusal(f"function {part}, by name")

    def _calls_by_name(self, node: Tree) -> bool:
        """True if a function could be called by a name written elsewhere, as in `arrayMap(f, ...)`."""
        if node["type"] == "ColumnsApplyTransformer":
            return True
        if node["type"] != "Function" or node.get("kind") not in _CALLED:
            return False
        name = str(node.get("name", "")).lower()
        if name in self._higher_order:
            return True
        names = self._names
        return not (
            names.allows(name) or name in names.refused_functions | names.table_functions | names.owner_table_functions
        )

    def _check(self, place: _Place, rows_from: str) -> None:
        node, kind = place.node, place.node["type"]
        if "out_file" in node or any(node.get(key) for key in _OUTFILE.split()):
            raise Refusal("INTO OUTFILE")
        if "infile" in node and not rows_from:
            raise Refusal("FROM INFILE")
        if kind == "Function":
            name = str(node.get("name", ""))
            table = place.part.endswith("table_function") or place.function.endswith("in")
            if name.lower() in (self._tables if table else self._functions) | self._names.nobody_functions:
                raise Refusal(f"function {name}")
        elif kind == "ColumnsApplyTransformer" and str(node.get("func_name", "")).lower() in self._functions:
            raise Refusal(f"function {node['func_name']}, by name")
        elif kind == "SetQuery":
            for name in [change.get("name") for change in node.get("changes", ())]:
                if name in FIXED_SETTINGS:
                    raise Refusal(f"the setting {name}")
