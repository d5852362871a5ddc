"""The engine's own parser and lexer, applied to a text before it runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from assay_store.engine import text_bytes
from assay_store.errors import AST_TOO_BIG, TOO_DEEP_RECURSION, StoreError
from assay_store.sql_policy import Token
from assay_store.syntax import Tree

LONGEST_TREE = 2 << 20
"""Maximum bytes of a tree, without numbers and the members of lists.

A tree is read in one piece, while nothing else of this process runs.
"""

_TOO_LONG = "too long"
_SHORT = 4096
"""Bytes of a statement whose tree is used unchanged; it has no space for long lists."""
_SHORTENED = {
    r'\{"field_type":"U?Int64","value":-?[0-9]+\}': "0",
    r',\{"field_type":"String","value":"(?:[^"\\]|\\.)*"\}': ",0",
    r'\{"type":"Literal","value":0\}': "0",
}
"""Numbers, strings after the first of a list, and literals that are numbers: they are not checked.

A quotation mark inside a string has a backslash before it in JSON, so that no text can look like one of these.
"""

_TOKEN = re.compile(r"\((?P<begin>\d+),(?P<end>\d+),'(?P<kind>\w+)'\)")


class EngineParser:
    """Implements `sql_policy.Parser`.

    Args:
        ask: runs one of the store's own statements and gives its result as raw text.
        classify: the engine's class of a text and its number of statements.
    """

    def __init__(self, ask: Callable[[str], str], classify: Callable[[str], tuple[str, int]]) -> None:
        self._ask = ask
        self.classify = classify

    def tree(self, sql: str) -> Tree:
        """Return the syntax tree: see `sql_policy.Parser`."""
        parsed = f"parseQueryToJSON({_quote(sql)})"
        if len(sql) > _SHORT:
            for pattern, short in _SHORTENED.items():
                parsed = f"replaceRegexpAll({parsed}, {_quote(pattern)}, '{short}')"
        asked = f"WITH {parsed} AS tree SELECT if(length(tree) > {LONGEST_TREE}, '{_TOO_LONG}', tree)"
        try:
            found = self._ask(asked).rstrip("\n")
        except StoreError as failure:
            raise StoreError(failure.code, _own_words(failure.text)) from None
        if found == _TOO_LONG:
            raise StoreError(
                AST_TOO_BIG, "AST is too big: shorten the statement, or send the values as an external table"
            )
        try:
            tree: Tree = json.loads(found)
        except RecursionError:
            raise StoreError(TOO_DEEP_RECURSION, "The statement is nested too deeply") from None
        return tree

    def tokens(self, sql: str) -> Iterator[Token]:
        """Return the tokens: see `sql_policy.Parser`."""
        text = text_bytes(sql)
        # The engine's own array functions would take five times as long as the lexer itself.
        for match in _TOKEN.finditer(self._ask(f"SELECT tokenizeQuery({_quote(sql)})")):
            kind = match["kind"]
            if kind not in ("Whitespace", "Comment"):
                begin, end = int(match["begin"]), int(match["end"])
                yield Token(kind, begin, text[begin:end].decode("utf-8", "surrogateescape"))


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _own_words(text: str) -> str:
    """Return the engine's message without the query that was sent to it."""
    return text.split(": In scope SELECT ", 1)[0].split(": In scope WITH ", 1)[0]
