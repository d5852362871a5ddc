"""Check sessions by rules: those in the store, or in a file of `assay sessions export`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.clients import open_store, settings_for
from assay_operations.errors import OperationError
from assay_operations.export.run import stored_watermark
from assay_operations.sessions.stored import Chosen, Seen, documents
from assay_sessions.checks.checker import CheckedSession, Checker
from assay_sessions.checks.errors import ChecksError
from assay_sessions.checks.references import References, read_references
from assay_sessions.checks.rules_file import Rules, default_rules, read_rules
from assay_sessions.checks.tally import ChecksReport, Tally

if TYPE_CHECKING:
    from assay_sessions.checks.session import FindSecrets


@dataclass(frozen=True)
class Checked:
    """The report, findings by session if asked for, and how many were incomplete or malformed."""

    report: ChecksReport
    sessions: tuple[CheckedSession, ...]
    incomplete: int
    malformed: int = 0


def prepare_checks(rules: Path | None, references: Path | None) -> tuple[Rules, References | None]:
    """Read the rules and the reference trajectories.

    Raises `OperationError` that names the file and the key.
    """
    try:
        return (
            read_rules(rules) if rules else default_rules(),
            read_references(references) if references else None,
        )
    except ChecksError as error:
        raise OperationError("invalid", str(error)) from None


def check_stored(
    data: Path,
    rules: Rules,
    references: References | None,
    *,
    after: int = -1,
    project: str | None = None,
    source: str | None = None,
    session_ids: tuple[str, ...] = (),
    keep: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Checked:
    """Check the sessions of people in the store that arrived after a position of the log.

    `keep` returns the findings on each session. Raises `OperationError`.
    """
    settings, seen = settings_for("sre", data), Seen()
    with open_store(settings.store) as client:
        upto = stored_watermark(client, settings.store.database)
        chosen = Chosen(upto, after, project, source, session_ids, of_people=not session_ids)
        found = _all_named(documents(client, chosen, seen), session_ids, seen)
        report, kept = _checked(found, rules, references, keep=keep, progress=progress)
    return Checked(report, kept, len(seen.incomplete), len(seen.malformed))


def check_file(
    file: Path,
    rules: Rules,
    references: References | None,
    *,
    project: str | None = None,
    source: str | None = None,
    session_ids: tuple[str, ...] = (),
    keep: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Checked:
    """Check the sessions in a file of `assay sessions export`, one a line.

    All, or only those of a project, of an agent or with these ids. Raises `OperationError` that names the line.
    """

    def wanted(document: dict[str, Any]) -> bool:
        metadata = document.get("metadata")
        agent = metadata.get("source") if isinstance(metadata, dict) else None
        return (
            (project is None or document.get("project") == project)
            and (source is None or agent == source)
            and (not session_ids or document.get("session_id") in session_ids)
        )

    found = _all_named(filter(wanted, _lines(file)), session_ids, Seen())
    return Checked(*_checked(found, rules, references, keep=keep, progress=progress), 0)


def _all_named(found: Iterator[dict[str, Any]], session_ids: Sequence[str], seen: Seen) -> Iterator[dict[str, Any]]:
    """Yield sessions. Raises `OperationError` at the end if one that was named is not among them."""
    missing = set(session_ids)
    for document in found:
        missing.discard(str(document.get("session_id")))
        yield document
    if missing := missing.difference(seen.incomplete, seen.malformed):
        raise OperationError(
            "not_found",
            f"no session {min(missing)[:100]!r} among those to check; list them with assay sessions list --json (the whole id is needed)",
        )


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with file.open("rb") as opened:
            for number, line in enumerate(opened, 1):
                if line.strip():
                    try:
                        document = orjson.loads(line)
                    except orjson.JSONDecodeError:
                        raise OperationError("invalid", f"{file}: line {number}: not JSON") from None
                    if not isinstance(document, dict):
                        raise OperationError("invalid", f"{file}: line {number}: not a session")
                    yield document
    except OSError as error:
        raise OperationError("invalid", f"{file} cannot be read: {error.strerror or type(error).__name__}") from None


def _checked(
    found: Iterator[dict[str, Any]],
    rules: Rules,
    references: References | None,
    *,
    keep: bool,
    progress: Callable[[int], None],
) -> tuple[ChecksReport, tuple[CheckedSession, ...]]:
    checker, tally = Checker(rules, references=references, find_secrets=_secrets()), Tally(rules)
    kept: list[CheckedSession] = []
    for number, document in enumerate(found, 1):
        try:
            checked = checker.check(document)
        except ChecksError as error:
            raise OperationError("invalid", f"session {number}: {error}") from None
        tally.add(checked)
        kept += [checked] if keep else []
        progress(number)
    unused = references.unused if references else None
    return tally.report(references_unused=unused), tuple(kept)


def _secrets() -> "FindSecrets":
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.policy import Policy

    scrubber = Scrubber(Policy())

    def find(text: str) -> list[str]:
        families = {finding.family: 1 for finding in scrubber.scrub(text).findings}
        return [category for category in scrubber.categories(families) if category == "credential"]

    return find
