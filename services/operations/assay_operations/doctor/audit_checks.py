"""Health checks of recorded operations and of the audit log. Pure: measurements in, findings out."""

from collections.abc import Sequence
from pathlib import Path

from assay_operations.doctor.finding import Finding, Status, age
from assay_ui.formats import counted

#: Seconds after which an operation without an end counts as killed; a long deletion takes minutes.
OPERATION_S = 3_600.0


def operations(unended: Sequence[tuple[str, str, float]] | None, waiting: int, folder: Path) -> Finding:
    """Check the audit records of a week for operations without an end.

    `unended` has operation, actor and seconds since the start; None if the store does not tell. `waiting`: records that the store has not
    taken, which are in files of `folder`.
    """
    name = "operations"
    killed = [each for each in unended or () if each[2] >= OPERATION_S]
    problems, hints = [], []
    if killed:
        operation, actor, ago = killed[-1]
        problems.append(f"{len(killed)} started and never ended, the latest: {operation} by {actor}, {age(ago)} ago")
        hints.append("if it was killed, run it again; see: assay operations list")
    if waiting:
        problems.append(f"{counted(waiting, 'audit record is', 'audit records are')} not in the store, but in {folder}")
        hints.append("to send those that wait: assay operations list; see docs/operations.md")
    if problems:
        return Finding(name, Status.WARN, "; ".join(problems), "; ".join(hints))
    if unended is None:
        return Finding(name, Status.OK, f"no audit record waits in {folder}")
    running = f", {len(unended)} running" if unended else ""
    return Finding(name, Status.OK, f"all that started in a week have ended{running}")


def unended(found: Sequence[tuple[str, str, float]]) -> Finding:
    """Check the operations of a week without an end: operation, actor, seconds since the start."""
    return operations(found, 0, Path())


#: Seconds without a checkpoint of new leaves after which the audit log is worth a warning.
UNANCHORED_S = 900.0


def audit_log(
    leaves: int, covered: int, unanchored_s: float, behind_s: float, is_ahead: bool, overdue: int = 0
) -> Finding:
    """Check the audit log: leaves, those that the newest checkpoint covers, and two ages in seconds.

    `unanchored_s`: since the first leaf without a checkpoint was written. `behind_s`: how long the newest event that the log lacks has
    been below the watermark; 0 if it lacks none. `is_ahead`: a leaf has a place that no event has reached yet, so it is forged.
    `overdue`: rows that retention should have deleted a week ago.
    """
    name, hint = "audit log", "is the auditor running? see its log, and docs/audit.md"
    if not leaves:
        status = Status.WARN if behind_s > UNANCHORED_S else Status.OK
        return Finding(name, status, "empty", hint if status is Status.WARN else "")
    summary = f"{leaves:,} leaves, {covered:,} covered by a signed checkpoint"
    problems = []
    if unanchored_s > UNANCHORED_S:
        problems.append(f"the others have none for {age(unanchored_s)}")
    if behind_s > UNANCHORED_S:
        problems.append(f"stored events of {age(behind_s)} ago are not in it")
    if is_ahead:
        what = f"{summary}; a leaf has a place that no event has reached yet, and later events might not be written"
        return Finding(name, Status.WARN, what, "run assay audit verify --full; see docs/audit.md")
    if problems:
        return Finding(name, Status.WARN, f"{summary}; {'; '.join(problems)}", hint)
    if overdue:
        what = f"{summary}; {counted(overdue, 'row is', 'rows are')} a week or more older than retention.audit_days"
        return Finding(name, Status.WARN, what, "run assay audit expire, and let a timer run it")
    return Finding(name, Status.OK, summary)


#: Seconds after which a verification of the whole log is due again.
UNVERIFIED_S = 7 * 86_400.0


def audit_verification(first_s: float | None, last: tuple[str, int, float] | None) -> Finding:
    """Check the recorded verifications of the audit log.

    `first_s`: seconds since the first leaf was written; None without one. `last`: outcome, mismatches and age in seconds of the newest
    one that read every row or found a mismatch; None without one.
    """
    name, hint = "audit verification", "run assay audit verify, and let a timer run it; see docs/audit.md"
    if last is None:
        if first_s is None or first_s <= UNVERIFIED_S:
            return Finding(name, Status.OK, "none yet")
        return Finding(
            name, Status.WARN, f"the log is {age(first_s)} old, and no verification of all its rows is recorded", hint
        )
    outcome, mismatches, ago_s = last
    if outcome != "done":
        found = counted(mismatches, "mismatch", "mismatches") if mismatches else "a mismatch"
        what = f"the last one found {found} {age(ago_s)} ago: the log was changed, or a part of it was lost"
        return Finding(name, Status.FAIL, what, "run assay audit verify --full; see docs/audit.md")
    if ago_s > UNVERIFIED_S:
        return Finding(name, Status.WARN, f"the last one of all rows was {age(ago_s)} ago", hint)
    return Finding(name, Status.OK, f"intact {age(ago_s)} ago")


def audit_anchors(found: Sequence[tuple[str, int, float]], patience_s: float) -> Finding:
    """Check the anchors of the audit log.

    Of each: its name, the leaves of its newest checkpoint, the seconds for which there has been a newer one.
    `patience_s`: after which it is worth a warning.
    """
    late = [
        f"{name} has {size:,} leaves, and a newer checkpoint was signed {age(s)} ago"
        for name, size, s in found
        if s > patience_s
    ]
    if late:
        hint = "run assay audit checkpoint --submit: it prints what each answers; see docs/audit.md"
        return Finding("audit anchors", Status.WARN, "; ".join(late), hint)
    return Finding("audit anchors", Status.OK, "; ".join(f"{name} has {size:,} leaves" for name, size, _ in found))
