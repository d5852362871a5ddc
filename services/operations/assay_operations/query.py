"""Query the store, by name or in SQL."""

import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.export.lines import BrokenAnswerError, Lines

if TYPE_CHECKING:
    from assay_runtime.queries import NamedQuery
    from assay_runtime.store import Client


_BLOCK_BYTES = 64 * 1024


def known_queries() -> "list[NamedQuery]":
    """Return the named queries."""
    from assay_runtime.queries import named_queries

    return list(named_queries().values())


class Reader:
    """A connection to the store that may only read."""

    def __init__(self, client: "Client") -> None:
        self._client = client

    def blocks(self, sql: str, values: dict[str, str], form: str) -> Iterator[bytes]:
        """Yield the answer of a query in a format of the engine."""
        return blocks(self._client, sql, values, form)

    def rows(self, sql: str, values: dict[str, str]) -> Iterator[list[Any]]:
        """Yield the names of the columns, then the rows."""
        return rows_of(self._client, sql, values)


@contextmanager
def reader(data: Path) -> Iterator[Reader]:
    """Connect to the store as an engineer on call."""
    with open_store(settings_for("sre", data).store) as client:
        yield Reader(client)


def resolve(question: str, parameters: list[str]) -> tuple[str, dict[str, str]]:
    """Return the SQL of a query and its parameter values.

    Raises `OperationError` for an unknown name. Pure.
    """
    from assay_runtime.queries import named_queries

    given = {}
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise OperationError("invalid", f"--param: {text!r} is not of the form NAME=VALUE")
        given[name] = value
    named = named_queries().get(question.strip())
    if named:
        if unknown := [name for name in given if name not in named.defaults]:
            known = ", ".join(named.defaults) or "none"
            raise OperationError("invalid", f"--param: {named.name} has no parameter {unknown[0]!r}; it has: {known}")
        return named.sql, named.defaults | given
    if not re.search(r"\s", question.strip()):
        close = difflib.get_close_matches(question, named_queries(), n=1)
        meant = f"; did you mean {close[0]}?" if close else ""
        raise OperationError(
            "invalid",
            f"no query is named {question!r}{meant} (assay query --list shows them; anything with a space is SQL)",
        )
    return question.strip().removesuffix(";"), given


def names_a_format(sql: str) -> bool:
    """Return True if SQL ends in a FORMAT clause, which the store would refuse. Pure."""
    statement = re.sub(r"/\*.*?\*/|--[^\n]*$", " ", sql, flags=re.DOTALL).rstrip("; \n\t")
    return re.search(r"[\s)'\"`]FORMAT\s+(?!(?:ASC|DESC)$)[A-Za-z]\w*$", statement, re.IGNORECASE) is not None


def blocks(client: "Client", sql: str, values: dict[str, str], form: str) -> Iterator[bytes]:
    """Yield the store's answer in blocks of bytes. Raises `BrokenAnswerError` if it breaks off."""
    from urllib3.exceptions import HTTPError

    answer: Any = client.raw_stream(sql, parameters=values, fmt=form)
    try:
        yield from answer.stream(_BLOCK_BYTES)
    except HTTPError as error:
        raise BrokenAnswerError(f"the connection broke off ({type(error).__name__})") from None
    finally:
        answer.close()


def rows_of(client: "Client", sql: str, values: dict[str, str]) -> Iterator[list[Any]]:
    """Yield the names of the columns, then the rows."""
    for piece in Lines("[").through(blocks(client, sql, values, "JSONCompactEachRowWithNames")):
        for line in piece.splitlines():
            yield orjson.loads(line)
