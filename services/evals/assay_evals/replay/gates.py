"""The two gates of a target: regression (captured results) and correctness (relevance judgements).

Nothing is left out of a verdict: one errored or skipped row, or one errored question, is a breach. A mean is compared
with its threshold by its 95 % interval: entirely below is a breach, entirely above passes, and otherwise there are too
few rows for a decision. No number of rows can show that every row passes (a threshold of 1); there the replayed rows
decide.

Rows from which personal data was removed are replayed and counted separately, and decide nothing: an unchanged system
may answer them differently. If they outnumber the others, and those are few, the result is inconclusive: no option
makes that a pass.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from assay_evals.compare.verdicts import Verdict
from assay_evals.metrics.intervals import intervals
from assay_evals.metrics.retrieval import below
from assay_evals.replay.baseline import Baseline, Thresholds
from assay_evals.replay.correctness import FIRST, RECALL, TOP1, Correctness, Floors
from assay_evals.replay.replay_metrics import ReplaySummary, RowResult
from assay_evals.statistics.intervals import Interval
from assay_evals.statistics.power import cases_needed, unseen_cases
from assay_evals.statistics.resampling import Floats
from assay_evals.statistics.significance import flip_tests

VERSION = 1
#: Rows without personal data that decide however many there are with it.
ENOUGH_ROWS = 50
#: Errors whose reason a breach quotes.
SHOWN_ERRORS = 5
#: Marks a result that is inconclusive because it was not measured, rather than because rows are few: it passes under no
#: option.
UNMEASURED = "unmeasured"
NOT_RUN: dict[str, Any] = {"ran": False}
JACCARD, STABLE, DELAY = "mean_jaccard", "top1_stability_rate", "mean_latency_delta_ms"


def regression_gate(
    baseline: Baseline, results: Sequence[RowResult], thresholds: Thresholds, *, path: str, seed: int = 0
) -> dict[str, Any]:
    """Compare a replay of a baseline with thresholds; equality passes.

    Returns the gate's part of the verdict document, with `breaches`.
    """
    summary, apart = ReplaySummary(), ReplaySummary()
    for result in results:
        (apart if result.row.scrubbed and result.counted else summary).add(result)
    counted = [result for result in results if result.counted and not result.row.scrubbed]
    columns = {
        JACCARD: np.array([result.jaccard for result in counted]),
        STABLE: np.array([float(result.top1) for result in counted]),
        DELAY: np.array([result.latency_delta_ms for result in counted]),
    }
    bounds = intervals(columns, (0, 1), bounded=lambda name: name != DELAY, seed=seed) if counted else {}
    shape = summary.as_json() | {"rows_total": len(results), "rows_scrubbed": apart.rows_total} | _shown(bounds)
    if counted:
        shape["latency_p_value"] = flip_tests(columns[DELAY], seed=seed)[0].two_sided
    breaches: list[dict[str, Any]] = []
    undecided: list[dict[str, Any]] = []
    if summary.rows_errored:
        tail = " | ".join(f"{result.row.id}: {result.error}" for result in summary.errors[:SHOWN_ERRORS])
        breaches.append(
            {"metric": "rows_errored", "observed": summary.rows_errored, "threshold": 0, "error_tail": tail}
        )
    if summary.rows_skipped:
        reason = "rows without a question check nothing: publish the baseline again, which leaves them out"
        breaches.append({"metric": "rows_skipped", "observed": summary.rows_skipped, "threshold": 0, "reason": reason})
    if not summary.rows_replayed:
        reason = "no row was replayed"
        if apart.rows_total:
            reason = "personal data was removed from every row: publish a baseline with other rows too"
        nothing = {"metric": "rows_replayed", "observed": 0, "threshold": 1, "reason": reason}
        if apart.rows_total:
            undecided.append(nothing | {UNMEASURED: True})
        else:
            breaches.append(nothing)
    else:
        if summary.rows_replayed < (least := min(ENOUGH_ROWS, apart.rows_total)):
            reason = f"personal data was removed from {apart.rows_total:,} other row(s): publish a baseline with more rows without"
            short = {"metric": "rows_replayed", "observed": summary.rows_replayed, "threshold": least}
            undecided.append(short | {"reason": reason, UNMEASURED: True})
        _hold(columns, {JACCARD: thresholds.jaccard, STABLE: thresholds.top1}, bounds, breaches, undecided)
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
        "scrubbed": {name: apart.as_json()[name] for name in ("rows_replayed", JACCARD, STABLE)},
        "breaches": breaches,
        "undecided": undecided,
    }


def correctness_gate(total: Correctness, floors: Floors, *, path: str, seed: int = 0) -> dict[str, Any]:
    """Compare relevance judgements (qrels) with floors.

    Returns the gate's part of the verdict document, with `breaches`.
    """
    named = {RECALL: floors.recall, FIRST: floors.first_relevant, TOP1: floors.expected_top1}
    columns = {name: np.array(values) for name, values in total.values.items() if values}
    bounds = dict(each for name, column in columns.items() for each in _of_shares({name: column}, seed).items())
    breaches: list[dict[str, Any]] = []
    undecided: list[dict[str, Any]] = []
    if total.queries_errored:
        tail = " | ".join(f"{name}: {error}" for name, error in total.errors)
        breaches.append(
            {"metric": "queries_errored", "observed": total.queries_errored, "threshold": 0, "error_tail": tail}
        )
    if not total.queries_run:
        reason = "no question was answered"
        breaches.append({"metric": "queries_run", "observed": 0, "threshold": 1, "reason": reason})
    _hold(columns, {name: named[name] for name in columns}, bounds, breaches, undecided)
    return {
        "ran": True,
        "qrels_path": path,
        "summary": total.as_json() | _shown(bounds),
        "thresholds": named,
        "breaches": breaches,
        "undecided": undecided,
        "missed_total": len(total.misses),
        "missed": [miss.as_json() for miss in total.worst()],
    }


def gate_verdict(
    regression: dict[str, Any],
    correctness: dict[str, Any],
    rules: dict[str, Any] = NOT_RUN,
    *,
    inconclusive: Verdict = Verdict.INCONCLUSIVE,
    error: str = "",
) -> dict[str, Any]:
    """Return the whole document: `pass` only if each requested gate passes.

    `inconclusive` is what inconclusive thresholds count as. `rules`: the result of a team's own scorers and floors,
    from `rules_gate`. `error`: the reason why the target could not be queried at all.
    """
    gates = (regression, correctness, rules)
    undecided = [each for gate in gates for each in gate.get("undecided", ())]
    verdict = Verdict.PASS
    if any(gate.get("breaches") for gate in gates):
        verdict = Verdict.FAIL
    elif undecided:
        unmeasured = any(each.get(UNMEASURED) for each in undecided) and inconclusive is Verdict.PASS
        verdict = Verdict.INCONCLUSIVE if unmeasured else inconclusive
    return (
        {
            "schema_version": VERSION,
            "verdict": verdict.value,
            "regression_gate": regression,
            "correctness_gate": correctness,
        }
        | ({"rules_gate": rules} if rules["ran"] else {})
        | ({"error": error} if error else {})
    )


def held(observed: float, bounds: Interval, least: float) -> Verdict:
    """Return the verdict on a mean of shares and its minimum, by its interval."""
    if least >= 1:
        return Verdict.FAIL if below(observed, least) else Verdict.PASS
    if below(bounds.high, least):
        return Verdict.FAIL
    return Verdict.INCONCLUSIVE if below(bounds.low, least) else Verdict.PASS


def _hold(
    columns: Mapping[str, Floats],
    thresholds: Mapping[str, float],
    bounds: Mapping[str, Interval],
    breaches: list[dict[str, Any]],
    undecided: list[dict[str, Any]],
) -> None:
    for name, least in thresholds.items():
        observed, between = float(columns[name].mean()), bounds[name]
        entry = {"metric": name, "observed": observed, "threshold": least, "interval": [between.low, between.high]}
        match held(observed, between, least):
            case Verdict.FAIL:
                breaches.append(entry)
            case Verdict.INCONCLUSIVE:
                undecided.append(entry | {"cases_needed": _more(columns[name], least)})
            case _:
                pass


def _more(values: Floats, least: float) -> int | None:
    """Return the number of similar rows needed for a decision.

    None if more rows would not help, because the mean is too close to the threshold.
    """
    margin = abs(float(values.mean()) - least)
    needed = (cases_needed(values, margin) or 0) + unseen_cases(margin)
    return needed if margin > 0 and needed > len(values) else None


def _of_shares(columns: Mapping[str, Floats], seed: int) -> dict[str, Interval]:
    return intervals(columns, (0, 1), bounded=lambda _: True, seed=seed)


def _shown(bounds: Mapping[str, Interval]) -> dict[str, list[float]]:
    return {f"{name}_interval": [each.low, each.high] for name, each in bounds.items()}
