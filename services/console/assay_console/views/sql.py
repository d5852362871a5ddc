"""The page of SQL."""

import asyncio
import re

from assay_console.page import Ask, Document, File, Page, Panel, Parameter
from assay_console.sql_results import Chart, chart_of, csv_lines, ndjson
from assay_operations.errors import OperationError
from assay_operations.query import known_queries
from assay_operations.sql import FILE_ROWS_MAX, ROWS_MAX, SqlAnswer, SqlError, View, schema, sql_answer, sql_rows

_PREFIX = "param_"
_TEXTS = re.compile(r"\{(\w+):\s*String\s*\}")
_PLACES = re.compile(r"\{(\w+):[^{}]+\}")


class QueryParameter(Document):
    """A parameter of a named query, with the value that it has here."""

    name: str
    type: str
    value: str
    meaning: str


class NamedQuery(Document):
    """A named query."""

    name: str
    summary: str
    parameters: tuple[QueryParameter, ...]


class Sql(Document):
    """SQL and its answer.

    `waits`: a link from elsewhere brought it, so a person must start it. `away`: why there is no answer, if the store gave none.
    """

    name: str
    sql: str
    values: dict[str, str]
    waits: bool
    answer: SqlAnswer | None
    #: The answer over time, if its columns are a time and a number.
    chart: Chart | None
    error: SqlError | None
    away: Panel[None] | None
    rows_max: int
    #: Rows of a file, at most.
    file_rows_max: int
    named: tuple[NamedQuery, ...]
    views: Panel[tuple[View, ...]]


async def read(ask: Ask) -> Sql:
    """Answer the SQL of the URL, or that of a named query with its parameters."""
    name, sql, values = _asked(ask)
    queries = {each.name: each for each in known_queries()}
    named = tuple(
        NamedQuery(
            name=each.name,
            summary=each.summary,
            parameters=tuple(
                QueryParameter(
                    name=one.name,
                    type=one.type,
                    value=values.get(one.name, one.default) if each.name == name else one.default,
                    meaning=one.meaning,
                )
                for one in each.parameters
            ),
        )
        for each in queries.values()
    )
    runs = bool(sql) and ask.same_origin
    views, found = await asyncio.gather(ask.panel(schema), _answer(ask, sql, values) if runs else _nothing())
    return Sql(
        name=name,
        sql=sql,
        # Also those without a value, so that the form has a field for each.
        values=dict.fromkeys(_PLACES.findall(sql), "") | values,
        waits=bool(sql) and not runs,
        answer=found if isinstance(found, SqlAnswer) else None,
        chart=chart_of(found) if isinstance(found, SqlAnswer) else None,
        error=found if isinstance(found, SqlError) else None,
        away=found if isinstance(found, Panel) else None,
        rows_max=ROWS_MAX,
        file_rows_max=FILE_ROWS_MAX,
        named=named,
        views=views,
    )


def _asked(ask: Ask) -> tuple[str, str, dict[str, str]]:
    """Return the name of the query, the SQL, and the values of its parameters. Raises `OperationError`."""
    name, sql = ask.text("name"), ask.text("q").strip().removesuffix(";")
    values = {each.removeprefix(_PREFIX): value for each, value in ask.parameters.items() if each.startswith(_PREFIX)}
    if name:
        queries = {each.name: each for each in known_queries()}
        if name not in queries:
            raise OperationError("invalid", f"no query is named {name[:60]!r}", "choose one of the list: /sql")
        if unknown := values.keys() - queries[name].defaults.keys():
            raise OperationError("invalid", f"{name} has no parameter {min(unknown)[:60]!r}")
        sql, values = queries[name].sql, queries[name].defaults | values
    # A link leaves out parameters that are empty.
    return name, sql, dict.fromkeys(_TEXTS.findall(sql), "") | values


async def export(ask: Ask) -> File:
    """Answer the SQL of the URL with a file. Only a link of this console starts it."""
    name, sql, values = _asked(ask)
    if not ask.same_origin:
        raise OperationError(
            "refused", "only a link of this console's page runs SQL", "open /sql, run it, then download"
        )
    if not sql:
        raise OperationError("invalid", "there is no SQL to run", "open /sql")
    found = (await ask.sql_reads.ask(sql_rows, sql, values)).value
    if isinstance(found, SqlError):
        raise OperationError("invalid", found.message)
    cut = f"-first-{len(found.rows)}" if found.more else ""
    if ask.text("format", "csv") == "ndjson":
        return File(f"{name or 'result'}{cut}.ndjson", "application/x-ndjson", ndjson(found))
    return File(f"{name or 'result'}{cut}.csv", "text/csv; charset=utf-8; header=present", csv_lines(found))


async def _answer(ask: Ask, sql: str, values: dict[str, str]) -> SqlAnswer | SqlError | Panel[None]:
    try:
        answer = await ask.sql_reads.ask(sql_answer, sql, values)
    except OperationError as error:
        if error.kind != "unavailable":
            raise
        return Panel(state="unavailable", message=error.message, fix=error.fix)
    ask.cost.took_ms += answer.took_ms
    if isinstance(answer.value, SqlAnswer):
        ask.cost.rows_read += answer.value.rows_read or 0
    return answer.value


async def _nothing() -> None:
    return None


PAGE = Page(
    "sql",
    "/sql",
    "SQL",
    "Anything else?",
    read,
    Sql,
    (
        Parameter("q", "SQL that reads the views.", longest=20_000),
        Parameter("name", "A named query, instead of `q`."),
        Parameter("format", "Form of the file that `/sql/export` sends.", ("csv", "ndjson")),
        Parameter(_PREFIX, "Values of the parameters `{NAME:Type}`, each as `param_NAME`.", longest=4_000, prefix=True),
    ),
    span="",
    key="x",
    export=export,
    export_types=("text/csv", "application/x-ndjson"),
)
