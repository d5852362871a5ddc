"""Published baselines (`plan_publish`, then `apply`), qrels and thresholds of a merge gate."""

import hashlib
import json
import logging
import os
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations import audit
from assay_operations.actor import Actor
from assay_operations.errors import OperationError, explain
from assay_operations.evaluations.files import captured_of, expect_file, lines_of
from assay_operations.numbers import a_number
from assay_schema.ids import new_event_id

if TYPE_CHECKING:
    from assay_evals.dataset.qrels import KnownQuery
    from assay_evals.replay.baseline import Baseline, Heading, Thresholds
    from assay_evals.replay.correctness import Floors

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Published:
    """A published baseline."""

    metadata: dict[str, Any]
    #: Rows that were left out: without a question, and of a question that another row has.
    blank: int
    repeated: int
    #: Of the others, rows that personal data was taken out of.
    scrubbed: int
    #: Why the end of the attempt could not be recorded; empty if it was. The baseline is published in any case.
    unrecorded: str = ""


@dataclass(frozen=True)
class Plan:
    """A baseline to publish."""

    #: Data directory of the audit log.
    data: Path
    source: Path
    to: Path
    label: str
    limits: "Thresholds"
    deduplicate: bool
    #: SHA-256 of the file that is overwritten; empty without one.
    replaces: str


def plan_publish(
    data: Path,
    source: Path,
    to: Path,
    *,
    limits: "Thresholds",
    label: str | None = None,
    force: bool = False,
    deduplicate: bool = False,
) -> Plan:
    """Check where a baseline would be written. Raises `OperationError`."""
    if to.exists() and source.exists() and to.samefile(source):
        raise OperationError("invalid", f"--to: {to} is the file that --from reads: choose another")
    if to.exists() and not force:
        raise OperationError("conflict", f"--to: {to} already exists; to overwrite it: --force")
    named = label or to.name.removesuffix(".ndjson").removesuffix(".baseline")
    return Plan(data, source, to, named, limits, deduplicate, _digest(to))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def apply(plan: Plan, actor: Actor) -> Published:
    """Freeze captured rows as a baseline, and record the attempt in the audit log of the data directory.

    A line is written before the baseline, and one at the end, so an attempt that was killed has a start without an end. Raises
    `OperationError`: of kind `conflict` if another baseline was written since the plan was made, of kind `unavailable` if the start
    cannot be recorded; nothing is published then.
    """
    attempt: dict[str, Any] = {
        "attempt_id": new_event_id(),
        "label": plan.label,
        "source_hash": None,
        "content_hash": None,
        "row_count": 0,
        "output_path": os.fspath(plan.to),
        "thresholds": asdict(plan.limits),
        "actor": actor.name,
        "host": actor.host,
        "through": actor.through,
        "comment": actor.comment,
    }

    def record(outcome: str, **entry: Any) -> str:
        return audit.record(plan.data, "bench-publish", attempt | {"outcome": outcome} | entry)

    if problem := record("started", replaces=plan.replaces):
        raise OperationError(
            "unavailable",
            f"nothing was published, because there is no place for an audit record: {problem}",
            "name a data directory with --data",
        )
    try:
        made = Published(*_publish(plan))
    except BaseException as error:
        outcome = "failed" if isinstance(error, Exception) else "interrupted"
        if problem := record(outcome, success=False, failure_reason=explain(error) or type(error).__name__):
            log.warning("the end of the attempt %s was %s", attempt["attempt_id"], problem)
        raise
    attempt |= {key: made.metadata[key] for key in attempt if key in made.metadata}
    return replace(made, unrecorded=record("done", success=True))


def _publish(plan: Plan) -> tuple[dict[str, Any], int, int, int]:
    """Write the baseline. Returns its metadata, how many rows without a question and repeated ones were left out, and how many of the
    others personal data was taken out of.
    """
    from assay_evals.replay import baseline as baselines
    from assay_evals.replay.replay_metrics import skip_reason
    from assay_runtime.private import write_whole

    source, to = plan.source, plan.to
    if _digest(to) != plan.replaces:
        raise OperationError("conflict", f"--to: {to} was changed meanwhile; run this again to replace it")
    expect_file(to, "--to")
    rows = list(captured_of(source, "--from"))
    asked = [row for row in rows if skip_reason(row) is None]
    chosen = list(baselines.deduplicate(asked)) if plan.deduplicate else asked
    published_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        lines = list(baselines.publish(chosen, label=plan.label, published_at=published_at, thresholds=plan.limits))
    except baselines.BaselineError as error:
        raise OperationError("invalid", f"--from: {source}: {error}") from None
    write_whole(to, "".join(line + "\n" for line in lines).encode())
    scrubbed = sum(row.scrubbed for row in chosen)
    return json.loads(lines[0]), len(rows) - len(asked), len(asked) - len(chosen), scrubbed


def baseline_of(path: Path) -> "Baseline":
    """Read a published baseline. Raises `OperationError`."""
    from assay_evals.replay.baseline import BaselineError, read_baseline

    try:
        return read_baseline(lines_of(path, "--baseline"))
    except BaselineError as error:
        raise OperationError("invalid", f"--baseline: {path}: {error}") from None


def heading_of(source: Path) -> "Heading | None":
    """Read label and thresholds of a baseline to publish again; None for captured rows.

    Pipes are not read. Raises `OperationError`.
    """
    from assay_evals.replay.baseline import BaselineError, read_heading

    try:
        return read_heading(lines_of(source, "--from")) if source.is_file() else None
    except BaselineError as error:
        raise OperationError("invalid", f"--from: {source}: {error}") from None
    except OperationError:
        return None  # publishing reads the file again, and records that it failed


def qrels_of(path: Path) -> "list[KnownQuery]":
    """Read queries with known correct results (qrels). Raises `OperationError`."""
    from assay_evals.dataset.qrels import QrelsError, read_qrels

    try:
        return read_qrels("".join(lines_of(path, "--qrels")))
    except QrelsError as error:
        raise OperationError("invalid", f"--qrels: {path}: {error}") from None


def thresholds_of(default: "Thresholds", jaccard: str | None, top1: str | None, multiplier: str | None) -> "Thresholds":
    """Return the thresholds of a regression gate: options over the default. Raises `OperationError`."""
    given = {
        "jaccard": a_number(jaccard, "--threshold-jaccard"),
        "top1": a_number(top1, "--threshold-top1"),
        "latency_multiplier": a_number(multiplier, "--threshold-latency-multiplier"),
    }
    return replace(default, **{name: value for name, value in given.items() if value is not None})


def floors_given(default: "Floors", recall: str | None, first: str | None, top1: str | None) -> "Floors":
    """Return the floors of a correctness gate: options over the default. Raises `OperationError`."""
    given = {
        "recall": a_number(recall, "--threshold-recall"),
        "first_relevant": a_number(first, "--threshold-first-relevant"),
        "expected_top1": a_number(top1, "--threshold-expected-top1"),
    }
    return replace(default, **{name: value for name, value in given.items() if value is not None})
