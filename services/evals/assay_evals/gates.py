"""The two gates over a target: does it still return what was captured (regression), and does it return what is right (correctness). Pure.

Nothing is left out of a verdict: one errored or skipped row, or one errored question, is a breach. A mean is held against its threshold by
its 95 % interval: all of it below is a breach, none of it below passes, and else there are too few rows to tell. No number of rows can show
that every row passes (a threshold of 1); there the rows that were asked decide.

Rows that personal data was taken out of are asked, counted apart, and decide nothing: an unchanged system may answer them otherwise. Where
they outnumber the others, and those are few, nobody can tell: no option makes that a pass.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from assay_evals.baseline import Baseline, Thresholds
from assay_evals.comparison import intervals
from assay_evals.metrics import below
from assay_evals.qrels import FIRST, RECALL, TOP1, Correctness, Floors
from assay_evals.replay import ReplaySummary, RowResult
from assay_evals.statistics import Floats, Interval, cases_needed, flip_tests, unseen_cases
from assay_evals.verdicts import Verdict

VERSION = 1
#: Rows without personal data that decide however many there are with it.
ENOUGH_ROWS = 50
#: Errors whose reason a breach quotes.
SHOWN_ERRORS = 5
#: Marks what is undecided because it was not measured, rather than because rows are few: that passes under no option.
UNMEASURED = "unmeasured"
NOT_RUN: dict[str, Any] = {"ran": False}
JACCARD, STABLE, DELAY = "mean_jaccard", "top1_stability_rate", "mean_latency_delta_ms"


def regression_gate(
    baseline: Baseline, results: Sequence[RowResult], thresholds: Thresholds, *, path: str, seed: int = 0
) -> dict[str, Any]:
    """Hold a replay of a baseline against thresholds; equality passes. The gate's part of the verdict document, `breaches` in it."""
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
        reason = "rows without a question hold nothing: publish the baseline again, which leaves them out"
        breaches.append({"metric": "rows_skipped", "observed": summary.rows_skipped, "threshold": 0, "reason": reason})
    if not summary.rows_replayed:
        reason = "no row was replayed"
        if apart.rows_total:
            reason = "personal data was taken out of every row: publish a baseline that has others too"
        nothing = {"metric": "rows_replayed", "observed": 0, "threshold": 1, "reason": reason}
        if apart.rows_total:
            undecided.append(nothing | {UNMEASURED: True})
        else:
            breaches.append(nothing)
    else:
        if summary.rows_replayed < (least := min(ENOUGH_ROWS, apart.rows_total)):
            reason = f"personal data was taken out of {apart.rows_total:,} other row(s): publish a baseline with more rows without"
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
    """Hold known-right questions against floors. The gate's part of the verdict document, `breaches` in it."""
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
) -> dict[str, Any]:
    """The whole document: `pass` only if each gate that was asked for passes. `inconclusive` says what undecided thresholds count as.

    `rules`: what a team's own scorers and floors say of the answers, from `rules_gate`.
    """
    gates = (regression, correctness, rules)
    undecided = [each for gate in gates for each in gate.get("undecided", ())]
    verdict = Verdict.PASS
    if any(gate.get("breaches") for gate in gates):
        verdict = Verdict.FAIL
    elif undecided:
        unmeasured = any(each.get(UNMEASURED) for each in undecided) and inconclusive is Verdict.PASS
        verdict = Verdict.INCONCLUSIVE if unmeasured else inconclusive
    return {
        "schema_version": VERSION,
        "verdict": verdict.value,
        "regression_gate": regression,
        "correctness_gate": correctness,
    } | ({"rules_gate": rules} if rules["ran"] else {})


def held(observed: float, bounds: Interval, least: float) -> Verdict:
    """Whether a mean of shares reaches the least it must, by its interval."""
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
        found = {"metric": name, "observed": observed, "threshold": least, "interval": [between.low, between.high]}
        match held(observed, between, least):
            case Verdict.FAIL:
                breaches.append(found)
            case Verdict.INCONCLUSIVE:
                undecided.append(found | {"cases_needed": _more(columns[name], least)})
            case _:
                pass


def _more(values: Floats, least: float) -> int | None:
    """How many rows like these would tell; None where more would not, since the mean lies too close to the threshold."""
    margin = abs(float(values.mean()) - least)
    needed = (cases_needed(values, margin) or 0) + unseen_cases(margin)
    return needed if margin > 0 and needed > len(values) else None


def _of_shares(columns: Mapping[str, Floats], seed: int) -> dict[str, Interval]:
    return intervals(columns, (0, 1), bounded=lambda _: True, seed=seed)


def _shown(bounds: Mapping[str, Interval]) -> dict[str, list[float]]:
    return {f"{name}_interval": [each.low, each.high] for name, each in bounds.items()}
