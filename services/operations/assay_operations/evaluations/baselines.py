"""What a gate compares with: published baselines, known-right questions, thresholds."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.evaluations.files import captured_of, lines_of
from assay_operations.numbers import a_number

if TYPE_CHECKING:
    from assay_evals.baseline import Baseline, Thresholds
    from assay_evals.qrels import Floors, KnownQuery


def publish(
    source: Path, to: Path, label: str, limits: "Thresholds", *, deduplicate: bool
) -> tuple[dict[str, Any], int, int, int]:
    """Write the baselines. Returns its metadata, how many rows without a question and repeated ones were left out, and how many of the
    others personal data was taken out of.
    """
    from assay_evals import baseline as baselines
    from assay_evals.replay import skip_reason
    from assay_runtime.private import write_whole

    if to.is_dir() or not to.parent.is_dir():
        raise OperationError("invalid", f"--to: {to} is a folder" if to.is_dir() else f"--to: no folder {to.parent}")
    rows = list(captured_of(source, "--from"))
    asked = [row for row in rows if skip_reason(row) is None]
    chosen = list(baselines.deduplicate(asked)) if deduplicate else asked
    published_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        lines = list(baselines.publish(chosen, label=label, published_at=published_at, thresholds=limits))
    except baselines.BaselineError as error:
        raise OperationError("invalid", f"--from: {source}: {error}") from None
    write_whole(to, "".join(line + "\n" for line in lines).encode())
    scrubbed = sum(row.scrubbed for row in chosen)
    return json.loads(lines[0]), len(rows) - len(asked), len(asked) - len(chosen), scrubbed


def baseline_of(path: Path) -> "Baseline":
    from assay_evals.baseline import BaselineError, read_baseline

    try:
        return read_baseline(lines_of(path, "--baseline"))
    except BaselineError as error:
        raise OperationError("invalid", f"--baseline: {path}: {error}") from None


def qrels_of(path: Path) -> "list[KnownQuery]":
    from assay_evals.qrels import QrelsError, read_qrels

    try:
        return read_qrels("".join(lines_of(path, "--qrels")))
    except QrelsError as error:
        raise OperationError("invalid", f"--qrels: {path}: {error}") from None


def thresholds_of(default: "Thresholds", jaccard: str | None, top1: str | None, multiplier: str | None) -> "Thresholds":
    from dataclasses import replace

    given = {
        "jaccard": a_number(jaccard, "--threshold-jaccard"),
        "top1": a_number(top1, "--threshold-top1"),
        "latency_multiplier": a_number(multiplier, "--threshold-latency-multiplier"),
    }
    return replace(default, **{name: value for name, value in given.items() if value is not None})


def floors_given(default: "Floors", recall: str | None, first: str | None, top1: str | None) -> "Floors":
    from dataclasses import replace

    given = {
        "recall": a_number(recall, "--threshold-recall"),
        "first_relevant": a_number(first, "--threshold-first-relevant"),
        "expected_top1": a_number(top1, "--threshold-expected-top1"),
    }
    return replace(default, **{name: value for name, value in given.items() if value is not None})
