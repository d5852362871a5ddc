"""Apply the rules to one session. Pure."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from assay_sessions.checks.finding import Finding
from assay_sessions.checks.references import References, first_prompt
from assay_sessions.checks.rules_file import Rules
from assay_sessions.checks.session import FindSecrets, Session, expect_document
from assay_sessions.trajectory import TrajectoryScore, compare


class CheckedSession(NamedTuple):
    """The findings on one session, by rule."""

    session_id: str
    #: The project that the session is stored in; empty for a file without it. An id may be in several.
    project: str
    source: str
    findings: dict[str, Finding]
    score: TrajectoryScore | None
    forked_from: str | None
    #: A hash of what repeated sessions have in common; None for a session without it.
    task: str | None


class Checker:
    """Applies rules to sessions.

    `find_secrets` returns the kinds of secrets in a text. Without it, `no_secrets` applies to no session.
    """

    def __init__(
        self, rules: Rules, *, references: References | None = None, find_secrets: FindSecrets | None = None
    ) -> None:
        self.rules = rules
        self.references = references
        self._find_secrets = find_secrets

    def check(self, document: Mapping[str, Any]) -> CheckedSession:
        """Check the document of one session. Raises `ChecksError` for something else."""
        expect_document(document)
        session = Session(document, self.rules.tools, find_secrets=self._find_secrets)
        reference = self.references.of(session.session_id, document) if self.references else None
        if reference is not None:
            session.score = compare(reference, session.trajectory, self.rules.matching)
        return CheckedSession(
            session_id=session.session_id,
            project=session.project,
            source=session.source,
            findings={name: rule.check(session) for name, rule in self.rules.by_name.items()},
            score=session.score,
            forked_from=session.metadata.get("forked_from"),
            task=self._task(session),
        )

    def _task(self, session: Session) -> str | None:
        by = self.rules.repeats.by
        task = first_prompt(session.document) if by == "prompt" else str(session.metadata.get(by) or "")
        return blake2b(task.encode(errors="replace"), digest_size=16).hexdigest() if task else None
