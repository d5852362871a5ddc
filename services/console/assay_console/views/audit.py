"""The audit log: can it be trusted, and what happened? Its state, its rows, and one row."""

import asyncio

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_operations.audit_reads.one_row import OneRow, one_row
from assay_operations.audit_reads.row_pages import RowFilter, Rows, log_rows
from assay_operations.audit_reads.rows import KINDS, OUTCOMES
from assay_operations.audit_reads.standing import Standing, standing, with_key
from assay_operations.errors import OperationError
from assay_operations.events.filters import Range
from assay_schema.settings import AuditorSettings

#: Rows of a page.
LIMIT = 50
#: Digits of a leaf's index.
_INDEX_DIGITS = 19

FILTER = (
    Parameter("kind", "Only rows about this.", KINDS),
    Parameter("status", "Only this outcome.", OUTCOMES),
    Parameter("tool", "Only this tool or operation.", longest=1024),
    Parameter("service", "Only calls of this service.", longest=255),
    Parameter("actor", "Only calls of this agent, and operations of this person.", longest=255),
    Parameter("session", "Only calls of this session."),
)


class Audit(Document):
    """The state of the log, and its rows in the range, newest first.

    No value of a personal field of the log is in it: names, comments and sessions are of the records that rows are about, and those that
    were erased from the log are left out.
    """

    filters: dict[str, str]
    standing: Panel[Standing]
    listed: Panel[Rows]


class AuditRow(Document):
    """One row of the log: what happened, its hashes, and the commands that prove and open it."""

    name: str
    found: Panel[OneRow]
    #: Prints a proof of the row; empty if it is not known which row it is.
    prove: str
    show: str


async def read(ask: Ask) -> Audit:
    """Read the state and the rows at the same time."""
    own = await _own(ask)
    wanted = RowFilter(project=ask.scope.project, **{each.name: ask.text(each.name) for each in FILTER})
    span, below = Range(ask.scope.from_ms, ask.scope.to_ms), _below(ask)
    state, rows = await asyncio.gather(
        ask.panel(standing, own), ask.panel(log_rows, own, wanted, span, below=below, limit=LIMIT)
    )
    filters = {each.name: ask.parameters[each.name] for each in FILTER if ask.parameters.get(each.name)}
    return Audit(filters=filters, standing=state, listed=rows)


async def _own(ask: Ask) -> AuditorSettings:
    return await asyncio.to_thread(with_key, ask.settings.auditor)


def _below(ask: Ask) -> int | None:
    text = ask.text("below")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < _INDEX_DIGITS):
        raise OperationError("invalid", f"below: {text[:20]!r} is not the index of a leaf")
    return int(text)


async def read_row(ask: Ask) -> AuditRow:
    """Read one row."""
    found = await ask.panel(one_row, ask.settings.auditor, ask.path["row"])
    index = "" if found.value is None else str(found.value.row.leaf_index)
    return AuditRow(
        name=ask.path["row"],
        found=found,
        prove=index and f"assay audit prove {index} > proof.json",
        show=index and f"assay audit show {index}",
    )


PAGE = Page(
    "audit",
    "/audit",
    "Audit",
    "Can this log be trusted, and what happened?",
    read,
    Audit,
    (*FILTER, Parameter("below", "Cursor of a page: `next` of the page before it.", longest=_INDEX_DIGITS)),
    span="7d",
    key="u",
    sql="SELECT leaf_index, occurred_at, kind, project, tool_name, status, error_kind, pii_attempted, pii_blocked\n"
    "FROM audit_rows ORDER BY log DESC, leaf_index DESC LIMIT 50",
    command="assay audit list{and_project}{and_kind}{and_status}{and_tool}{and_service}{and_actor}{and_session} --since {span}",
)
ROW = Page(
    "audit_row",
    "/audit/{row}",
    "Audit row",
    "What happened, and is it proven?",
    read_row,
    AuditRow,
    span="",
    within="audit",
    command="assay audit show {row}",
)
