"""Check statements beyond the engine's grants.

The engine's grants determine the tables and databases that a role reads or writes. They leave gaps. `SqlPolicy` closes
these with the engine's own parser, which returns the complete syntax tree of exactly the text that will run, and with
its lexer, never by searching the SQL:

- one statement per request, so that nothing runs before or after the checked statement;
- for everyone except the owner, only listed elements: kinds of nodes and their parts, functions and table functions
(`functions.toml`), settings (`roles.NAMED_SETTINGS`), tables of the `system` database. Anything new in an engine is
refused;
- for the owner, everything except access outside the store: files, connections, programs, this process, SQL in a
string;
- no change of role or user, which would undo the grants, and no INTO OUTFILE, FROM INFILE or COPY.

Not guaranteed: limits are per query, not per user, so that many queries of one user can keep the store busy; names of
tables in `assay_base` appear in the definitions of the views; an owner is trusted with everything in the store.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from assay_store import syntax
from assay_store.config import OVERLAY_DATABASE
from assay_store.errors import ACCESS_DENIED, BAD_ARGUMENTS, QUERY_IS_TOO_LARGE, READONLY, SYNTAX_ERROR, StoreError
from assay_store.names import listed
from assay_store.roles import Role
from assay_store.syntax import Refusal, Tree

ROWS = "rows"
"""Stands for the file of an INSERT's rows before it exists, so that the INSERT can be refused before its rows are read."""

_MOST_HEREDOCS = 1 << 29
"""The engine's lexer searches from each `$a$` to the end of the text for another one: this number of steps takes half a second."""

_REMEMBERED = 2048
_REMEMBERED_LENGTH = 16_384

_UNSEEN_BY_OWNER = re.compile(r"Set|Copy|Execute|RolesOrUsers|Grant|Revoke|ParallelWith|Check(?:Grant)|MoveAccess")
"""Kinds of statements without a tree that not even the owner may run: they change rights or hide other statements."""

_NAME = r"(?:`|[A-Za-z_]\w*)(?: \. (?:`|[A-Za-z_]\w*))?"
_FIXED_FORMS = re.compile(
    rf"(?:SHOW CREATE (?:TEMPORARY )?(?:TABLE |VIEW |DATABASE )?{_NAME}|EXISTS (?:TEMPORARY )?(?:TABLE |VIEW |DATABASE )?{_NAME}"
    r"|SHOW FUNCTIONS(?: I?LIKE ')?|SHOW (?:ENGINES|GRANTS)|SHOW SETTING \w+)(?: FORMAT (?P<format>[A-Za-z][A-Za-z0-9]*))?",
    re.IGNORECASE,
)
"""Statements without a tree, as tokens: quoted names are a backtick, strings an apostrophe."""


class Parser(Protocol):
    """The engine's parser and lexer."""

    def classify(self, sql: str) -> tuple[str, int]:
        """Return the class of a text and the number of its statements.

        Classes: READ_ONLY, MUTATING, MUTATING_GLOBAL, CONTROL, UNKNOWN.
        """

    def tree(self, sql: str) -> Tree:
        """Return the syntax tree of one statement. Raises `StoreError` (36) if a part has no representation."""

    def tokens(self, sql: str) -> Iterable[Token]:
        """Return the tokens of a text, without blanks and comments."""


@dataclass(frozen=True)
class Token:
    """A token of the engine's lexer: kind (`BareWord`, `QuotedIdentifier`, ...), byte offset and text."""

    kind: str
    begin: int
    text: str

    @property
    def name(self) -> str:
        """Possible name in lower case, without quotation marks; "" for other kinds of tokens."""
        if self.kind == "BareWord":
            return self.text.lower()
        return self.text[1:-1].lower() if self.kind == "QuotedIdentifier" else ""


class _Given(Mapping[str, str]):
    """Parameters of a request, which note whether a check read any of them."""

    def __init__(self, params: Mapping[str, str]) -> None:
        self._params = params
        self.read = False

    def __getitem__(self, name: str) -> str:
        self.read = True
        return self._params[name]

    def __iter__(self) -> Iterator[str]:
        self.read = True
        return iter(self._params)

    def __len__(self) -> int:
        self.read = True
        return len(self._params)


@dataclass(frozen=True)
class Verdict:
    """The parser's result for an allowed statement.

    Attributes:
        kind: `READ_ONLY`, `MUTATING`, `MUTATING_GLOBAL` or `CONTROL`, for logs and metrics.
        reads_only: whether it changes no data.
        keeps_state: whether it leaves something on the handle it runs on.
        format: the name in its FORMAT clause, or "".
    """

    kind: str
    reads_only: bool
    keeps_state: bool
    format: str = ""


class SqlPolicy:
    """Checks statements.

    Args:
        parser: the engine's.
        table_functions: all the engine's table functions.
        higher_order: all the engine's functions that take a function.
    """

    def __init__(self, parser: Parser, table_functions: Collection[str], higher_order: Collection[str]) -> None:
        self._parser = parser
        names = listed()
        listed_functions = names.table_functions | names.owner_table_functions | names.nobody_table_functions
        unlisted = frozenset(name.lower() for name in table_functions) - listed_functions
        self._names = names
        self._refused = re.compile(
            rf"(?<![a-z0-9_])(?:{'|'.join(map(re.escape, sorted(names.refused_functions)))})(?![a-z0-9_])"
        )
        self._owner = syntax.Owner(names, unlisted, [name.lower() for name in higher_order])
        self._restricted = {role: syntax.Restricted(role, names) for role in Role if role.restricted}
        self._remembered: OrderedDict[object, Verdict] = OrderedDict()
        self._lock = threading.Lock()
        self._long = threading.Lock()

    def check(self, role: Role, sql: str, params: Mapping[str, str], rows_from: str = "") -> Verdict:
        """Check a statement and return its kind. Exactly this text must run, with these parameters.

        Args:
            role: of the user who sent it.
            sql: the text.
            params: its parameters.
            rows_from: the file that an INSERT reads, if the store made it for the rows of this request.

        Raises:
            StoreError: it is not exactly one statement (62), or this role is not allowed to run it (497).
        """
        # Most statements have parameters only as values, which are not checked: their verdict is that of the text.
        of_text = (role, sql, rows_from)
        of_values = (*of_text, tuple(sorted(params.items())))
        with self._lock:
            for key in (of_text, of_values):
                if (known := self._remembered.get(key)) is not None:
                    self._remembered.move_to_end(key)
                    return known
        given = _Given(params)
        try:
            # One long text at a time: the Python work on it takes turns with the event loop.
            with self._long if len(sql) > _REMEMBERED_LENGTH else contextlib.nullcontext():
                verdict = self._check_once(role, sql, given, rows_from)
        except Refusal as refusal:
            raise _denied(role, str(refusal)) from None
        length = len(sql) + (sum(map(len, params.values())) if given.read else 0)
        if length <= _REMEMBERED_LENGTH:
            with self._lock:
                self._remembered[of_values if given.read else of_text] = verdict
                while len(self._remembered) > _REMEMBERED:
                    self._remembered.popitem(last=False)
        return verdict

    def check_table(self, sql: str) -> None:
        """Check the statement that creates a table sent with a request: names and types only.

        Raises:
            StoreError: it holds anything else (497), or is no such statement (62).
        """
        if self._parser.classify(sql)[1] != 1:
            raise StoreError(SYNTAX_ERROR, "The columns of an external table are names and types")
        try:
            self._check_columns(self._parser.tree(sql))
        except Refusal as refusal:
            raise _denied(Role.WRITER, f"{refusal} of an external table") from None
        except StoreError as failure:
            if failure.code != BAD_ARGUMENTS:
                raise
            raise _denied(Role.WRITER, "a column of this type in an external table") from None

    def check_settings(self, role: Role, names: Collection[str]) -> None:
        """Check the names of settings sent with a request.

        Raises:
            StoreError: this role is not allowed to change one of them (497).
        """
        if role.restricted:
            try:
                self._restricted[role].check_settings(names)
            except Refusal as refusal:
                raise _denied(role, str(refusal)) from None

    def check_values(self, role: Role, rows: bytes) -> None:
        """Check the rows of INSERT ... VALUES, which the engine evaluates as expressions for the owner.

        For every other role the engine takes literals only (`config.LITERAL_VALUES`).

        Raises:
            StoreError: this role is not allowed to run them, or they cannot be checked.
        """
        if role.restricted:
            return
        text = rows.decode("utf-8", "replace").rstrip().rstrip(";")
        lowered = text.lower()
        if "\\" not in text and not any(word in lowered for word in self._owner.called):
            return
        try:
            self.check(role, f"SELECT {text}", {})
        except StoreError as failure:
            if failure.code == ACCESS_DENIED:
                raise
            raise _denied(role, "VALUES that cannot be checked; insert them with FORMAT JSONEachRow") from None

    def _check_once(self, role: Role, sql: str, params: Mapping[str, str], rows_from: str) -> Verdict:
        if sql.count("$") * len(sql) > _MOST_HEREDOCS:
            raise StoreError(
                QUERY_IS_TOO_LARGE, "The statement has too many dollar signs: send the values as parameters"
            )
        if OVERLAY_DATABASE in sql and any(token.name == OVERLAY_DATABASE for token in self._parser.tokens(sql)):
            raise Refusal(f"database {OVERLAY_DATABASE}")
        kind, count = self._parser.classify(sql)
        if count > 1:
            raise StoreError(SYNTAX_ERROR, "Multi-statements are not allowed: send one statement per request")
        try:
            tree = self._parser.tree(sql)
        except StoreError as failure:
            if failure.code != BAD_ARGUMENTS or rows_from:
                raise
            output = self._check_unseen(role, sql, params, failure)
        else:
            if count != 1:
                raise StoreError(SYNTAX_ERROR, "Syntax error: this is not one statement")
            self._check(role, tree, params, rows_from)
            output = str(tree.get("format_ast", {}).get("name", ""))
        if role.restricted:
            self._check_words(sql)
        return Verdict(kind, kind == "READ_ONLY", keeps_state=kind in ("CONTROL", "UNKNOWN"), format=output)

    def _check(self, role: Role, tree: Tree, params: Mapping[str, str], rows_from: str = "") -> None:
        checker = self._owner if role is Role.OWNER else self._restricted[role]
        checker.check(tree, params, rows_from)
        for columns in syntax.structures(tree, params):
            try:
                described = self._parser.tree(f"CREATE TEMPORARY TABLE t ({columns})")
            except StoreError as failure:
                if failure.code == SYNTAX_ERROR:
                    continue  # a value, not columns
                raise Refusal("columns that cannot be checked") from None
            self._check_columns(described)

    def _check_columns(self, tree: Tree) -> None:
        if "select" in tree:
            raise Refusal("AS SELECT in the columns")
        self._restricted[Role.WRITER].check(tree, {})

    def _check_words(self, sql: str) -> None:
        """Check with the engine's lexer as well that no refused function is named anywhere."""
        # Most texts contain nothing of the kind, and the lexer takes a millisecond. A long text delays no other in the
        # lexer.
        if len(sql) <= _REMEMBERED_LENGTH and "\\" not in sql and not self._refused.search(sql.lower()):
            return
        for token in self._parser.tokens(sql):
            if "\\" in token.name:
                raise Refusal("an escape in a quoted name")
            if token.name in self._names.refused_functions:
                raise Refusal(f"function {token.name}")

    def _check_unseen(self, role: Role, sql: str, params: Mapping[str, str], failure: StoreError) -> str:
        """Check a statement without a tree. Returns the name in its FORMAT clause, or ""."""
        tokens = list(itertools.islice(self._parser.tokens(sql), 32))
        if tokens[0].text.upper() in ("DESCRIBE", "DESC") and len(tokens) > 1:
            start = tokens[2] if len(tokens) > 2 and tokens[1].text.upper() == "TABLE" else tokens[1]
            table = sql.encode("utf-8", "surrogateescape")[start.begin :].decode("utf-8", "surrogateescape")
            tree = self._parser.tree(f"SELECT * FROM {table}")  # noqa: S608  checked, not run
            self._check(role, tree, params)
            return str(tree.get("format_ast", {}).get("name", ""))
        shape = " ".join(
            {"QuotedIdentifier": "`", "StringLiteral": "'"}.get(token.kind, token.text) for token in tokens
        )
        if (form := _FIXED_FORMS.fullmatch(shape)) is not None:
            if any("\\" in token.name for token in tokens):
                raise Refusal("an escape in a quoted name")
            return form["format"] or ""
        match = re.search(r"AST node of type '([^']*)'", failure.text)
        kind = match.group(1) if match else "INSERT with its rows in the statement"
        if role.restricted or _UNSEEN_BY_OWNER.match(kind):
            raise Refusal(kind)
        self._check_calls(sql, kind)
        if not match and any(token.name == "values" for token in self._parser.tokens(sql)):
            raise Refusal(kind)
        return ""

    def _check_calls(self, sql: str, kind: str) -> None:
        """Refuse an owner's statement without a tree if it may name anything forbidden to the owner."""
        previous = ""
        for token in self._parser.tokens(sql):
            called = previous if token.kind == "OpeningRoundBracket" else ""
            if called in self._owner.called or token.name in self._names.nobody_functions | {"outfile", "infile"}:
                raise Refusal(f"{called or token.name} in {kind}")
            if "\\" in token.name:
                raise Refusal(f"an escape in a quoted name in {kind}")
            previous = token.name


def _denied(role: Role, what: str) -> StoreError:
    return StoreError(ACCESS_DENIED, f"{role.value}: Not enough privileges: {what} is not allowed")


def refuse_on_get(verdict: Verdict, first_keyword: str) -> None:
    """Refuse changes by GET, which a link or an image in a web page can make a browser send.

    Raises:
        StoreError: the statement would change something (164).
    """
    if not verdict.reads_only and verdict.kind != "UNKNOWN" and first_keyword not in ("SET", "USE"):
        raise StoreError(
            READONLY,
            "Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. Use POST",
        )
