"""What a statement may not contain, whatever the engine's grants say. Deny by default for every role but the owner.

The engine's grants decide which tables and databases a role reads or writes. They leave gaps, closed here by the engine's
own parser (its statement classes and EXPLAIN AST, parameters filled in), never by searching the SQL for words:

- one statement per request, so that nothing runs before or after the one that was judged;
- no change of role or user, which would undo the grants;
- no INTO OUTFILE, FROM INFILE or COPY, and no function or table function that reads files, opens connections, runs
  programs, looks into this Python process or evaluates SQL from a string; the rows of INSERT ... VALUES, which are
  expressions, are judged too, and settings that hold SQL cannot be changed (`config.FIXED_SETTINGS`);
- for roles other than owner: only known kinds of statements, and of the `system` database only tables that tell nothing
  of other people's queries.

Not guaranteed: limits are per query, not per user, so that many queries of one user can keep the store busy; names of
tables in `assay_base` appear in the definitions of the views; an owner is trusted with everything in the store.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from assay_store.errors import ACCESS_DENIED, READONLY, SYNTAX_ERROR, StoreError
from assay_store.roles import Role

ALLOWED_TABLE_FUNCTIONS = frozenset(
    {
        "fuzzjson", "fuzzquery", "generaterandom", "generateseries", "generate_series", "input", "null",
        "numbers", "numbers_mt", "primes", "values", "view", "viewexplain", "viewifpermitted", "zeros", "zeros_mt",
    }
)  # fmt: skip
OWNER_TABLE_FUNCTIONS = frozenset(
    {
        "loop",
        "merge",
        "dictionary",
        "mergetreeindex",
        "mergetreeprojection",
        "mergetreetextindex",
        "mergetreeanalyzeindexes",
    }
)
DENIED_FUNCTIONS = frozenset(
    {
        "file", "eval", "python", "executable", "catboostevaluate", "aiclassify", "aiembed", "aiextract", "aifilter",
        "aigenerate", "airedact", "aisimilarity", "aitranslate", "generatesql", "getserversetting", "showcertificate",
    }
)  # fmt: skip
"""Denied whatever the engine's list of table functions says."""

ALLOWED_SYSTEM_TABLES = frozenset(
    {
        "aggregate_function_combinators", "build_options", "codecs", "collations", "columns", "completions", "constraints",
        "contributors", "current_roles", "data_skipping_indices", "data_type_families", "database_engines", "databases",
        "enabled_roles", "formats", "functions", "keywords", "licenses", "numbers", "numbers_mt", "one", "primes",
        "settings", "table_engines", "table_functions", "tables", "time_zones", "tokenizers", "zeros", "zeros_mt",
    }
)  # fmt: skip
WRITER_SYSTEM_TABLES = frozenset({"parts", "disks", "view_refreshes", "merges", "metrics"})

_READING_KINDS = frozenset(
    {
        "SelectWithUnionQuery", "SelectQuery", "SelectIntersectExceptQuery", "Explain", "DescribeQuery", "ShowTables",
        "ShowColumns", "ShowIndexes", "ShowFunctions", "ShowCreateTableQuery", "ShowCreateViewQuery",
        "ShowCreateDatabaseQuery", "ExistsTableQuery", "ExistsViewQuery", "ExistsDatabaseQuery", "ShowEngineQuery",
        "ShowGrantsQuery", "Set", "UseQuery", "TablesInSelectQuery",
    }
)  # fmt: skip
_WRITTEN_KINDS = {
    Role.WRITER: frozenset({"InsertQuery", "CreateQuery", "DropQuery"}),
    Role.EVALUATOR: frozenset({"InsertQuery"}),
}
_FORBIDDEN_KINDS = ("SetRole", "CopyQuery", "ExecuteAs", "RolesOrUsersSet", "Grant", "SetDefaultRole", "ParallelWith")
_HIDING_KINDS = frozenset({"ShowTables", "ShowColumns", "ShowIndexes", "ShowFunctions"})
"""Their WHERE clause is an expression that EXPLAIN AST does not print."""

_REMEMBERED = 2048
_REMEMBERED_LENGTH = 16_384


@dataclass(frozen=True)
class Verdict:
    """What the engine's parser says of an allowed statement.

    Attributes:
        kind: `READ_ONLY`, `MUTATING`, `MUTATING_GLOBAL` or `CONTROL`, for logs and metrics.
        reads_only: whether it changes no data.
        keeps_state: whether it leaves something on the handle it runs on.
    """

    kind: str
    reads_only: bool
    keeps_state: bool


@dataclass(frozen=True)
class _Node:
    depth: int
    kind: str
    name: str


def nodes(explained: str) -> list[_Node]:
    """The lines of EXPLAIN AST (raw text) as nodes."""
    found = []
    for line in explained.split("\n"):
        body = line.lstrip(" ")
        if body:
            kind, _, rest = body.partition(" ")
            name = rest.strip().split(" (", 1)[0].strip()
            found.append(_Node(len(line) - len(body), kind, name))
    return found


class Gate:
    """Judges statements.

    Args:
        classify: the engine's statement class and number of statements of a text.
        explain: the engine's raw EXPLAIN AST of a text with parameters.
        table_functions: names of all the engine's table functions; those not allowed here by name are denied.
    """

    def __init__(
        self,
        classify: Callable[[str], tuple[str, int]],
        explain: Callable[[str, Mapping[str, str]], str],
        table_functions: frozenset[str],
    ) -> None:
        self._classify = classify
        self._explain = explain
        denied = frozenset(name.lower() for name in table_functions) - ALLOWED_TABLE_FUNCTIONS
        # `format` is a scalar function as well; where it stands tells which one is meant.
        denied -= {"format"}
        self._denied = {
            role: DENIED_FUNCTIONS | (denied - (OWNER_TABLE_FUNCTIONS if role is Role.OWNER else frozenset()))
            for role in Role
        }
        self._suspect = (*self._denied[Role.SRE], "outfile", "infile", "copy", "role", "\\")
        self._remembered: OrderedDict[object, Verdict] = OrderedDict()
        self._lock = threading.Lock()

    def judge(self, role: Role, sql: str, params: Mapping[str, str]) -> Verdict:
        """Say what kind of statement this is.

        Raises:
            StoreError: it is not exactly one statement (62), or this role may not run it (497).
        """
        key = (role, sql, tuple(sorted(params.items())))
        with self._lock:
            verdict = self._remembered.get(key)
            if verdict is not None:
                self._remembered.move_to_end(key)
                return verdict
        verdict = self._judge(role, sql, params)
        if len(sql) + sum(map(len, params.values())) <= _REMEMBERED_LENGTH:
            with self._lock:
                self._remembered[key] = verdict
                while len(self._remembered) > _REMEMBERED:
                    self._remembered.popitem(last=False)
        return verdict

    def judge_values(self, role: Role, rows: bytes) -> None:
        """Judge the rows of INSERT ... VALUES, which the engine evaluates as expressions, subqueries and all.

        Raises:
            StoreError: they hold what this role may not run, or cannot be judged.
        """
        lowered = rows.lower().decode("utf-8", "replace")
        words = (*self._suspect, "system") if role.restricted else self._suspect
        if not any(word in lowered for word in words if word != "\\") and not (
            b"\\" in rows and (b"`" in rows or b'"' in rows)
        ):
            return
        text = rows.decode("utf-8", "replace").rstrip().rstrip(";")
        try:
            self._judge(role, f"SELECT {text}", {})
        except StoreError as failure:
            if failure.code == ACCESS_DENIED:
                raise
            raise StoreError(
                ACCESS_DENIED, f"{role.value}: these VALUES cannot be judged; insert them with FORMAT JSONEachRow"
            ) from None

    def _judge(self, role: Role, sql: str, params: Mapping[str, str]) -> Verdict:
        kind, count = self._classify(sql)
        if count > 1:
            raise StoreError(SYNTAX_ERROR, "Multi-statements are not allowed: send one statement per request")
        verdict = Verdict(kind, reads_only=kind == "READ_ONLY", keeps_state=kind in ("CONTROL", "UNKNOWN"))
        lowered = sql.lower()
        # A name that appears nowhere in the text, and cannot be spelt with an escape, is not in the tree either.
        if role is Role.OWNER and kind != "CONTROL" and not any(word in lowered for word in self._suspect):
            return verdict
        tree = nodes(self._explain(sql, params))
        if not tree:
            raise StoreError(SYNTAX_ERROR, "Empty query")
        self._check_everyone(role, kind, tree)
        if "values" in lowered and any(node.kind == "Function" and node.name == "input" for node in tree):
            raise _denied(role, "function input with the format Values; insert the rows with FORMAT JSONEachRow")
        if tree[0].kind in _HIDING_KINDS and "where" in lowered:
            raise _denied(role, f"{tree[0].kind} with WHERE; select from the system tables instead")
        if role is not Role.OWNER:
            _check_restricted(role, tree, lowered)
        return verdict

    def _check_everyone(self, role: Role, kind: str, tree: list[_Node]) -> None:
        root = tree[0]
        if kind == "CONTROL" and root.kind.startswith(("Select", "Explain", "Show", "Describe", "Exists", "Check")):
            raise _denied(role, "INTO OUTFILE")
        if root.kind == "InsertQuery" and any(node.depth == 1 and node.kind == "Literal" for node in tree):
            raise _denied(role, "FROM INFILE")
        above: list[_Node] = []
        for node in tree:
            del above[node.depth :]
            above.append(node)
            if node.kind.startswith(_FORBIDDEN_KINDS):
                raise _denied(role, node.kind)
            if node.kind == "Function" and node.name.lower() == "format" and _is_table_function(above):
                raise _denied(role, "table function format")
            if node.kind == "Function" and node.name.lower() in self._denied[role]:
                raise _denied(role, f"function {node.name}")


def _is_table_function(above: list[_Node]) -> bool:
    """Whether the last of a node and those above it stands where a table is meant: after FROM, INTO FUNCTION or IN."""
    if len(above) < 2 or above[-2].kind in ("TableExpression", "InsertQuery", "CreateQuery"):
        return True
    return len(above) >= 3 and above[-3].kind == "Function" and above[-3].name.lower().endswith("in")


def _check_restricted(role: Role, tree: list[_Node], lowered: str) -> None:
    allowed = _READING_KINDS | _WRITTEN_KINDS.get(role, frozenset())
    tables = ALLOWED_SYSTEM_TABLES | (WRITER_SYSTEM_TABLES if role is Role.WRITER else frozenset())
    root = tree[0]
    if root.kind not in allowed:
        raise _denied(role, root.kind)
    if root.kind == "UseQuery" and root.name == "system":
        raise _denied(role, "USE system")
    if root.kind == "Set" and "profile" in lowered:
        raise _denied(role, "SET profile")
    for node in tree:
        if node.kind in ("TableIdentifier", "Identifier") and node.name.startswith("system."):
            if node.name.split(".")[1].split(" ")[0] not in tables:
                raise _denied(role, f"table {'.'.join(node.name.split('.')[:2])}")
        elif (node.kind.endswith("Query") or node.kind.startswith("Show")) and node.kind not in allowed:
            raise _denied(role, node.kind)


def _denied(role: Role, what: str) -> StoreError:
    return StoreError(ACCESS_DENIED, f"{role.value}: Not enough privileges: {what} is not allowed")


def refuse_on_get(verdict: Verdict, first_keyword: str) -> None:
    """A GET may change nothing: a link or an image in a web page can make a browser send one.

    Raises:
        StoreError: the statement would change something (164).
    """
    if not verdict.reads_only and verdict.kind != "UNKNOWN" and first_keyword not in ("SET", "USE"):
        raise StoreError(
            READONLY,
            "Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. Use POST",
        )
