"""Find the end of a statement and the beginning of an INSERT's data.

This is a lexer, not a parser, and no rights depend on it: the engine's parser checks exactly the text that the engine
will run (see `sql_policy`), so an error here can only make a valid statement fail. Its time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Every alternative consumes what it matches, and does not backtrack (`+` after a quantifier): the time is linear in the
# text. An opening quotation mark or comment without its end is `unfinished` and takes the rest of the text.
_TOKEN = re.compile(
    rb"""
      (?P<space>(?:[\s\x00]|--[^\n]*+(?:\n|\Z)|\#[ !][^\n]*+(?:\n|\Z)|/\*(?>.*?\*/))++)
    | (?P<string>'(?:[^'\\]++|\\.|'')*+'|\xe2\x80\x98(?>.*?\xe2\x80\x99))
    | (?P<quoted>`(?:[^`\\]++|\\.|``)*+`|"(?:[^"\\]++|\\.|"")*+"|\xe2\x80\x9c(?>.*?\xe2\x80\x9d))
    | (?P<heredoc>\$(?P<tag>\w*+)\$(?>.*?\$(?P=tag)\$))
    | (?P<unfinished>(?:/\*|'|`|"|\xe2\x80[\x98\x9c]|\$\w*+\$).*)
    | (?P<word>[A-Za-z_][A-Za-z0-9_$]*+)
    | (?P<number>[0-9][0-9A-Za-z_.]*+)
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A token: its kind, its text, its end, and its depth of brackets."""

    kind: str
    text: bytes
    end: int
    depth: int

    @property
    def keyword(self) -> str:
        """Text in upper case if this is a bare word, else ""."""
        return self.text.upper().decode() if self.kind == "word" else ""


def tokens(text: bytes) -> Iterator[Token]:
    """Iterate over the tokens of a statement, without blanks and comments."""
    depth = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        if kind == "tag":
            kind = "heredoc"
        if kind == "space":
            continue
        if kind == "close":
            depth = max(0, depth - 1)
        yield Token(kind, match.group(), match.end(), depth)
        if kind == "open":
            depth += 1


@dataclass(frozen=True)
class Insert:
    """An INSERT whose rows follow the statement.

    Attributes:
        head: the statement up to FORMAT or VALUES, which is what the engine is given.
        format: name of the rows' format.
        data_at: offset of the first byte of the rows.
    """

    head: bytes
    format: str
    data_at: int


@dataclass(frozen=True)
class Statement:
    """Any other statement: all of its text is needed before it can run."""

    first_keyword: str


@dataclass(frozen=True)
class NeedMore:
    """The text ends before its kind is known."""


def recognise(text: bytes, *, complete: bool) -> Insert | Statement | NeedMore:
    """Classify the beginning of a request's text.

    Args:
        text: the statement, followed by an INSERT's rows if there are any.
        complete: whether this is all there will be.
    """
    stream = tokens(text)
    first = next(stream, None)
    if first is None:
        return Statement("") if complete else NeedMore()
    if not complete and _unfinished(text, first):
        return NeedMore()
    if first.keyword == "WITH":
        return _after_with(text, stream, first, complete=complete)
    if first.keyword != "INSERT":
        # A word cut off at the end of the received text may still become INSERT.
        if not complete and first.end == len(text):
            return NeedMore()
        return Statement(first.keyword)
    return _insert(text, stream, first, complete=complete)


def _after_with(text: bytes, stream: Iterator[Token], first: Token, *, complete: bool) -> Insert | Statement | NeedMore:
    """Classify `WITH ... INSERT INTO ...`, or a query."""
    previous = first
    for token in stream:
        if not complete and _unfinished(text, token):
            return NeedMore()
        if token.depth == 0 and token.keyword == "INTO" and previous.keyword == "INSERT":
            return _insert(text, stream, token, complete=complete)
        if token.depth == 0 and token.keyword == "SELECT":
            return Statement("WITH")
        previous = token
    return Statement("WITH") if complete else NeedMore()


def _insert(text: bytes, stream: Iterator[Token], first: Token, *, complete: bool) -> Insert | Statement | NeedMore:
    previous, before = first, first.end - len(first.text)
    is_name = False
    for token in stream:
        if not complete and (token.end == len(text) or _unfinished(text, token)):
            return NeedMore()
        if token.depth == 0:
            start = token.end - len(token.text)
            # After `INSERT INTO TABLE FUNCTION`, names equal to keywords are quoted or in brackets.
            named = previous.keyword in ("INTO", "TABLE") or previous.text == b"."
            if token.keyword in ("SELECT", "WITH", "FROM") and not named:
                return Statement("INSERT SELECT")
            if token.kind == "open" and token.text == b"(" and previous.kind == "close":
                return Statement("INSERT SELECT")
            if previous.keyword == "FORMAT" and not is_name and token.kind == "word":
                rows = _data_start(text, token.end)
                if not complete and rows == len(text) and not text.endswith(b"\n"):
                    return NeedMore()
                return Insert(text[:before], token.text.decode(), rows)
            if token.keyword == "VALUES" and not named:
                return Insert(text[:start], "Values", token.end)
        is_name = previous.keyword in ("INTO", "TABLE") or previous.text == b"."
        previous, before = token, token.end - len(token.text)
    if not complete:
        return NeedMore()
    return Insert(text, "", len(text))


def from_file(head: str, quoted_path: str, input_format: str) -> str:
    """Return an INSERT that reads its rows from a file, which is placed before the statement's SETTINGS."""
    text = head.encode("utf-8", "surrogateescape")
    at, previous = len(text), b""
    for token in tokens(text):
        if token.depth == 0 and token.keyword == "SETTINGS" and previous not in (b"INTO", b"TABLE", b"."):
            at = token.end - len(token.text)
            break
        previous = token.text.upper()
    before, settings = (part.decode("utf-8", "surrogateescape") for part in (text[:at], text[at:]))
    return f"{before} FROM INFILE {quoted_path} {settings} FORMAT {input_format}"


def _unfinished(text: bytes, token: Token) -> bool:
    """True if a token begins a quotation or comment whose end has not arrived."""
    if token.kind != "other":
        return token.kind == "unfinished"
    following = text[token.end : token.end + 1]
    match token.text:
        case b"$" | b"\xe2":
            return True
        case b"/":
            return following in (b"", b"*")
        case b"-":
            return following in (b"", b"-")
        case b"#":
            return following in (b"", b" ", b"!")
        case _:
            return False


def _data_start(text: bytes, at: int) -> int:
    # As in the server: blanks after the format's name, then at most one line break, are not data.
    while at < len(text) and text[at : at + 1] in (b" ", b"\t", b"\f"):
        at += 1
    if text[at : at + 1] == b"\r":
        at += 1
    if text[at : at + 1] == b"\n":
        at += 1
    return at
