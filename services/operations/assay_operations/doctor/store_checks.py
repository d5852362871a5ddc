"""Health checks of the store and of what arrives in it. Pure: measurements in, findings out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay_operations.doctor.finding import Finding, Status, age
from assay_ui.formats import counted

if TYPE_CHECKING:
    from assay_sessions.readers import Problem


#: Why a store without Landlock has no separate account, by the reasons in its metrics.
_ACCOUNT_KEPT = {
    "not_root": "no separate uid: it was not started as root",
    "path": "no separate uid: a directory on the path to its data is closed to other accounts",
    "python": "no separate uid: Python or its packages are in a directory that is closed to other accounts",
    "foreign": "no separate uid: its data directory contains files of another account or program",
    "links": "no separate uid: files of its data have hard links elsewhere",
    "refused": "no separate uid: the kernel refused it",
}


def wall(keeps_from: Mapping[str, bool], account_kept: str = "") -> Finding:
    """Check how the kernel confines the embedded store, from the store's metrics (empty for ClickHouse).

    `account_kept` is the reason why the store has no separate account, if there is no Landlock.
    """
    name = "store's process"
    if not keeps_from:
        return Finding(name, Status.OK, "not the embedded store, or one of an older version")
    hint = "see docs/security.md"
    if not keeps_from.get("files") and keeps_from.get("closed_files"):
        summary = (
            "has a separate uid; only the check of statements keeps readers from world-readable files, programs and connections "
            "(no Landlock)"
        )
        return Finding(name, Status.WARN, summary, f"use Linux 5.19 or later with Landlock; {hint}")
    if not keeps_from.get("files"):
        reason = "; ".join(["no Landlock", *filter(None, [_ACCOUNT_KEPT.get(account_kept, "")])])
        summary = f"can open every file of its account; only the check of statements keeps readers from them ({reason})"
        fix = "use Linux 5.19 or later with Landlock"
        if account_kept and account_kept != "not_root":
            fix += ", or follow the store's warning in its log"
        return Finding(name, Status.WARN, summary, f"{fix}; {hint}")
    if not keeps_from.get("network"):
        summary = (
            "can open connections; only the check of statements keeps readers from that (Landlock before Linux 6.7)"
        )
        return Finding(name, Status.WARN, summary, f"use Linux 6.7 or later; {hint}")
    return Finding(name, Status.OK, "can open only its own files, and no connections (Landlock)")


def broken_parts(tables: Mapping[str, int]) -> Finding:
    """Check for table parts that the store could not read when it started."""
    name = "store's parts"
    if not tables:
        return Finding(name, Status.OK, "all are readable")
    words = ", ".join(f"{count} of {table}" for table, count in sorted(tables.items()))
    return Finding(
        name,
        Status.WARN,
        f"unreadable when the store started, and detached: {words}",
        "a write to its disk failed: check the disk; then see docs/store.md, Failed writes",
    )


#: Seconds after which a session whose parts have not all arrived is a warning: parts of one import follow within seconds.
INCOMPLETE_S = 300.0
#: Problems of an agent's last import that are named; the rest is counted.
_PROBLEMS_NAMED = 3


def sessions(
    in_a_week: int, incomplete: int, imported_s_ago: float | None, not_read: Mapping[str, Sequence["Problem"]]
) -> Finding:
    """Check the stored sessions: those imported in a week, and the incomplete ones of any age.

    `imported_s_ago` is None without any session. `not_read` has what the last import of each agent did not read.
    """
    from assay_sessions.readers.explained import fixes, in_words

    latest = "" if imported_s_ago is None else f", the latest {age(imported_s_ago)} ago"
    said = [f"{counted(in_a_week, 'session') if in_a_week else 'none'} imported in a week{latest}"]
    hints: list[str] = []
    if incomplete:
        said.append(f"{incomplete:,} not complete: parts are missing")
        hints.append("import them again (assay sessions import); if that changes nothing, see assay query failures")
    for agent, problems in not_read.items():
        named = [in_words(problem) for problem in problems[:_PROBLEMS_NAMED]]
        named += [f"and {len(problems) - len(named):,} more"] if len(problems) > len(named) else []
        said.append(f"the last import from {agent} did not read: {', '.join(named)}")
    hints += fixes(problem.kind for problems in not_read.values() for problem in problems[:_PROBLEMS_NAMED])
    return Finding("sessions", Status.WARN if hints else Status.OK, "; ".join(said), "; ".join(hints))


def schema(applied: int, known: int) -> Finding:
    """Check that the store's tables are those of this version."""
    summary = f"version {applied}"
    if applied < known:
        return Finding("schema", Status.FAIL, f"{summary}, this version needs {known}", "run: assay migrate")
    if applied > known:
        return Finding("schema", Status.FAIL, f"{summary}, this version needs {known}", "upgrade Assay on this host")
    return Finding("schema", Status.OK, summary)


#: Seconds that the watermark can stand still while entries wait, before it is a warning.
WATERMARK_STALE_S = 60.0


def final_reads(skip_indexes: bool, exact: bool) -> Finding:
    """Check that views show each event once.

    With skip indexes and without exact mode, a window can show a later copy of an event.
    """
    if skip_indexes and not exact:
        return Finding(
            "views",
            Status.FAIL,
            "can show an event twice",
            "set use_skip_indexes_if_final_exact_mode = 1 in the profiles of the store's users",
        )
    return Finding("views", Status.OK, "show each event once")


def watermark(place: int, moved_s_ago: float, waiting: int | None) -> Finding:
    """Check that the watermark advances, since exports end at it. `waiting` is None if it is unknown."""
    moved = f"{place}, moved {age(moved_s_ago)} ago"
    if waiting is None:
        return Finding(
            "watermark",
            Status.WARN,
            f"{moved}; unknown whether entries wait",
            "see the failed checks of Redis and the streams above",
        )
    if waiting and moved_s_ago > WATERMARK_STALE_S:
        return Finding(
            "watermark",
            Status.WARN,
            f"{moved}, while {counted(waiting, 'entry waits', 'entries wait')}",
            "see the logs and /readyz of the scrubber and the writer; exports wait for them",
        )
    return Finding("watermark", Status.OK, moved if waiting else f"{moved}; nothing waits")


@dataclass(frozen=True)
class FailureFacts:
    """Failures of one reason: the total, dead letters, events visible by now, and outages of a sink.

    Dead letters failed too many deliveries. An outage is not the failure of an event: events wait meanwhile.
    """

    reason: str
    count: int
    given_up: int = 0
    recovered: int = 0
    outages: int = 0


def failures(by_reason: Sequence[FailureFacts]) -> Finding:
    """Check the failures of the last 24 hours by reason. Events stored since do not count as a warning."""
    if not by_reason:
        return Finding("failures in 24 h", Status.OK, "none")
    listed = ", ".join(map(_reason, sorted(by_reason, key=lambda facts: -facts.count)))
    if all(facts.recovered == facts.count for facts in by_reason):
        return Finding("failures in 24 h", Status.OK, listed)
    return Finding("failures in 24 h", Status.WARN, listed, "assay query failures")


def _reason(facts: FailureFacts) -> str:
    outages = "outage" if facts.outages == 1 else "outages"
    parts = {
        "dead letters": facts.given_up,
        "stored since": facts.recovered,
        f"{outages} without loss": facts.outages,
    }
    notes = ", ".join(f"{count:,} {what}" for what, count in parts.items() if count)
    return f"{facts.reason} {facts.count:,}" + (f" ({notes})" if notes else "")
