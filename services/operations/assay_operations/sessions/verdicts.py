"""Read the judge's latest verdict on a session."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.clients import open_store, settings_for

if TYPE_CHECKING:
    from assay_runtime.store import Client

_ITEM = ("dimension", "criterion", "absence", "verdict", "demoted", "turn")
_LATEST = """SELECT status, metrics, detail, model, fingerprint, base, revision, judged_at, rubric FROM scores
WHERE session_id = {session:String} AND ({project:String} = '' OR project = {project:String}) AND status != 'not_sampled'
ORDER BY judged_at DESC LIMIT 1"""


@dataclass(frozen=True)
class SessionVerdict:
    """The judge's verdict on a session."""

    status: str
    #: Shares of the rubric's items that it meets: of all (`rubric_score`), and by dimension.
    metrics: dict[str, float]
    #: Items: dimension, criterion, absence, verdict, demoted, turn.
    rubric: tuple[dict[str, Any], ...]
    detail: str
    model: str
    fingerprint: str
    #: True if it is in the unbiased base stream.
    base: bool
    #: Revision of the session that was judged.
    revision: int
    judged_at: datetime

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        return {**vars(self), "rubric": list(self.rubric), "judged_at": self.judged_at.isoformat()}


def items_of(rubric: Any) -> tuple[dict[str, Any], ...]:
    """Return the items of a stored rubric as the driver returns them: tuples, or objects by name."""
    return tuple(dict(item) if isinstance(item, dict) else dict(zip(_ITEM, item, strict=True)) for item in rubric)


def latest_verdict(data: Path, session_id: str, project: str | None = None) -> SessionVerdict | None:
    """Return the latest verdict on a session, or None if it was not judged."""
    with open_store(settings_for("sre", data).store) as store:
        return latest_verdict_in(store, session_id, project)


def latest_verdict_in(client: "Client", session_id: str, project: str | None = None) -> SessionVerdict | None:
    """Return the latest verdict on a session, as `latest_verdict` does, with an open client."""
    parameters = {"session": session_id, "project": project or ""}
    rows = list(client.query(_LATEST, parameters=parameters).named_results())
    if not rows:
        return None
    row = dict(rows[0])
    row |= {"rubric": items_of(row["rubric"]), "base": bool(row["base"])}
    row["judged_at"] = row["judged_at"].replace(tzinfo=UTC)  # the driver returns UTC without a time zone
    return SessionVerdict(**row)
