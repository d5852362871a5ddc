"""The engine's own parser and lexer, asked about a text that has not run yet."""

from __future__ import annotations

import json
from collections.abc import Callable

from assay_store.errors import AST_TOO_BIG, TOO_DEEP_RECURSION, StoreError
from assay_store.gate import Words
from assay_store.syntax import Tree

LONGEST_TREE = 4 << 20
"""Bytes of a tree, numbers and the members of lists left out. A tree is read in one piece, while nothing else of this process runs."""

_TOO_LONG = "too long"
# A quotation mark inside a string has a backslash before it in JSON, so that no text can look like one of these.
_NUMBER = r'\{"field_type":"U?Int64","value":-?[0-9]+\}'
_MEMBER = r',\{"field_type":"String","value":"(?:[^"\\]|\\.)*"\}'


class EngineParser:
    """See `gate.Parser`.

    Args:
        ask: runs one of the store's own statements and gives its result as raw text.
        classify: the engine's class of a text and its number of statements.
    """

    def __init__(self, ask: Callable[[str], str], classify: Callable[[str], tuple[str, int]]) -> None:
        self._ask = ask
        self.classify = classify

    def tree(self, sql: str) -> Tree:
        """See `gate.Parser`."""
        numbers = f"replaceRegexpAll(parseQueryToJSON({_quote(sql)}), {_quote(_NUMBER)}, '0')"
        asked = (
            f"WITH replaceRegexpAll({numbers}, {_quote(_MEMBER)}, ',0') AS tree"
            f" SELECT if(length(tree) > {LONGEST_TREE}, '{_TOO_LONG}', tree)"
        )
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

    def opening(self, sql: str) -> list[tuple[str, int, str]]:
        """See `gate.Parser`."""
        listed = self._ask(
            f"WITH {_tokens(sql)} AS tokens SELECT arrayMap(t -> (toString(t.type), t.begin,"
            " substring(sql, t.begin + 1, t.end - t.begin)), arraySlice(tokens, 1, 32)) FORMAT JSONCompactEachRow"
        )
        return [(str(kind), int(begin), str(text)) for kind, begin, text in json.loads(listed)[0]]

    def words(self, sql: str) -> Words:
        """See `gate.Parser`."""
        listed = self._ask(
            f"WITH {_tokens(sql)} AS tokens, arrayShiftLeft(tokens, 1) AS following, \n"
            " (t -> lower(substring(sql, t.begin + 1, t.end - t.begin))) AS text,"
            " (t -> t.type IN ('BareWord', 'QuotedIdentifier')) AS is_name"
            " SELECT arrayDistinct(arrayMap(t -> text(t), arrayFilter(t -> is_name(t), tokens))),"
            " arrayDistinct(arrayMap((t, n) -> if(is_name(t) AND n.type = 'OpeningRoundBracket', text(t), ''), tokens, following))"
            " FORMAT JSONCompactEachRow"
        )
        named, called = json.loads(listed)
        return Words(frozenset(_bare(word) for word in named), frozenset(_bare(word) for word in called))


def _tokens(sql: str) -> str:
    """An expression: the tokens of a text without blanks and comments; the text is `sql` beside it."""
    return f"{_quote(sql)} AS sql, arrayFilter(t -> t.type NOT IN ('Whitespace', 'Comment'), tokenizeQuery(sql))"


def _bare(word: str) -> str:
    return word[1:-1] if word[:1] in '`"' else word.strip("“”")


def _quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _own_words(text: str) -> str:
    """The engine's message without the question that it was asked."""
    return text.split(": In scope SELECT ", 1)[0].split(": In scope WITH ", 1)[0]
