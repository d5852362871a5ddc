"""The two gates over a target: does it still return what was captured (regression), and does it return what is right (correctness). Pure.

Nothing is left out of a verdict: one errored or skipped row, or one errored question, is a breach.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from assay_evals.baseline import Baseline, Thresholds
from assay_evals.metrics import below
from assay_evals.qrels import Correctness, Floors
from assay_evals.replay import ReplaySummary, RowResult
from assay_evals.statistics import bounded_intervals, flip_tests, interval, resampled_means

VERSION = 1
#: Errors whose reason a breach quotes.
SHOWN_ERRORS = 5
NOT_RUN: dict[str, Any] = {"ran": False}


def regression_gate(
    baseline: Baseline, results: Sequence[RowResult], thresholds: Thresholds, *, path: str, seed: int = 0
) -> dict[str, Any]:
    """Hold a replay of a baseline against thresholds; equality passes. The gate's part of the verdict document, `breaches` in it."""
    summary = ReplaySummary()
    for result in results:
        summary.add(result)
    shape = summary.as_json() | _intervals([result for result in results if result.counted], seed)
    breaches: list[dict[str, Any]] = []
    if summary.rows_errored:
        tail = " | ".join(f"{result.row.id}: {result.error}" for result in summary.errors[:SHOWN_ERRORS])
        breaches.append(
            {"metric": "rows_errored", "observed": summary.rows_errored, "threshold": 0, "error_tail": tail}
        )
    if summary.rows_skipped:
        reason = "rows without a question hold nothing: publish the baseline again, which leaves them out"
        breaches.append({"metric": "rows_skipped", "observed": summary.rows_skipped, "threshold": 0, "reason": reason})
    if not summary.rows_replayed:
        breaches.append({"metric": "rows_replayed", "observed": 0, "threshold": 1, "reason": "no row was replayed"})
    else:
        for metric, least in (("mean_jaccard", thresholds.jaccard), ("top1_stability_rate", thresholds.top1)):
            if below(shape[metric], least):
                breaches.append({"metric": metric, "observed": shape[metric], "threshold": least})
    captured = baseline.baseline_mean_latency_ms
    skipped = not math.isfinite(captured) or captured <= 0
    if not skipped and summary.rows_replayed:
        ratio = (captured + summary.mean_latency_delta_ms) / captured
        shape["latency_multiplier"] = ratio
        if below(thresholds.latency_multiplier, ratio):
            breaches.append(
                {"metric": "latency_multiplier", "observed": ratio, "threshold": thresholds.latency_multiplier}
            )
    return {
        "ran": True,
        "baseline_path": path,
        "baseline_label": baseline.label,
        "content_hash": baseline.content_hash,
        "summary": shape,
        "thresholds": asdict(thresholds),
        "latency_skipped": skipped,
        "breaches": breaches,
    }


def correctness_gate(total: Correctness, floors: Floors, *, path: str) -> dict[str, Any]:
    """Hold known-right questions against floors. The gate's part of the verdict document, `breaches` in it."""
    named = {
        "mean_recall_at_k": floors.recall,
        "first_relevant_hit_rate": floors.first_relevant,
        "expected_top1_hit_rate": floors.expected_top1,
    }
    return {
        "ran": True,
        "qrels_path": path,
        "summary": total.as_json(),
        "thresholds": named,
        "breaches": total.breaches(floors),
        "missed_total": len(total.misses),
        "missed": [miss.as_json() for miss in total.worst()],
    }


def gate_verdict(regression: dict[str, Any], correctness: dict[str, Any]) -> dict[str, Any]:
    """The whole document: `pass` only if each gate that was asked for passes."""
    failed = any(gate.get("breaches") for gate in (regression, correctness))
    return {
        "schema_version": VERSION,
        "verdict": "fail" if failed else "pass",
        "regression_gate": regression,
        "correctness_gate": correctness,
    }


def _intervals(counted: Sequence[RowResult], seed: int) -> dict[str, Any]:
    """How sure the replay's means are: 95 % bootstrap intervals, and p of "the latency did not change"."""
    if len(counted) < 2:
        return {}
    shares = np.array([[result.jaccard, float(result.top1)] for result in counted])
    delays = np.array([result.latency_delta_ms for result in counted])
    found: dict[str, Any] = {}
    bounds = [*bounded_intervals(shares, 0, 1, seed=seed), interval(delays, resampled_means(delays, seed=seed)[:, 0])]
    for name, each in zip(("mean_jaccard", "top1_stability_rate", "mean_latency_delta_ms"), bounds, strict=True):
        assert each is not None
        found[f"{name}_interval"] = [each.low, each.high]
    return found | {"latency_p_value": flip_tests(delays, seed=seed)[0].two_sided}
