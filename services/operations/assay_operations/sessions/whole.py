"""Read one session with everything known about it: its row, transcript, verdict and checks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.events.queries import Queries
from assay_operations.sessions.listing import document_of_row, summaries_of
from assay_operations.sessions.verdicts import SessionVerdict, latest_verdict_in
from assay_sessions.checks.checker import Checker
from assay_sessions.checks.errors import ChecksError
from assay_sessions.checks.finding import Finding
from assay_sessions.checks.rules_file import default_rules

if TYPE_CHECKING:
    from assay_runtime.store import Client


@dataclass(frozen=True)
class WholeSession:
    """A session. Without a transcript (`document`), `reason` says why."""

    #: Its row in the view `sessions`; several if the id is in several projects and none was chosen.
    summaries: tuple[dict[str, Any], ...]
    document: dict[str, Any] | None
    reason: str
    verdict: SessionVerdict | None
    #: Findings of the default rules that need no other file, by rule.
    findings: dict[str, Finding]


def whole_session(client: "Client", session_id: str, project: str = "") -> WholeSession:
    """Return a session by its whole id. Raises `OperationError` if there is none."""
    summaries = tuple(summaries_of(client, session_id, project))
    if not summaries:
        raise OperationError(
            "not_found", f"no session has the id {session_id[:100]!r}", "list them: /sessions, or `assay sessions list`"
        )
    if len(summaries) > 1:
        return WholeSession(summaries, None, "", None, {})
    [summary] = summaries
    with Queries(client).threads() as threads:
        judged = threads.submit(latest_verdict_in, client, session_id, str(summary["project"]))
        imported = threads.submit(document_of_row, client, summary) if summary["source"] != "capture" else None
    verdict = judged.result()
    if imported is None:
        return WholeSession(
            summaries, None, "it is known from captured events alone, so it has no transcript", verdict, {}
        )
    try:
        document = imported.result()
    except OperationError as error:
        if error.kind == "unavailable":
            raise
        return WholeSession(summaries, None, error.message, verdict, {})
    try:
        findings = Checker(default_rules()).check(document).findings
    except ChecksError:
        findings = {}
    return WholeSession(summaries, document, "", verdict, findings)
