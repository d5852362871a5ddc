"""How often 95 % intervals hold the truth: the judge's raw rate, labels alone, PPI, Rogan-Gladen. PPI is the one published."""

from typing import Any

import numpy as np

from assay_judge.calibration import Confusion, Estimate, human, ppi, raw, rectifier, rogan_gladen
from tests.bench.result import result

JUDGED, LABELLED, RUNS, SEED = 3_500, 200, 4_000, 20_260_309
#: Share of good answers, how many of them the judge finds, how many of the bad.
WORLDS = {"good judge (TPR .95, TNR .80)": (0.90, 0.95, 0.80), "weak judge (TPR .85, TNR .60)": (0.90, 0.85, 0.60)}
#: Where errors are rare, or all of one kind.
RARE = {
    "all errors one way (TPR 1, TNR .50)": (0.90, 1.0, 0.50),
    "97 % good (TPR .98, TNR .30)": (0.97, 0.98, 0.30),
    "99 % good (TPR .995, TNR .50)": (0.99, 0.995, 0.50),
}
FEW = (50, 100)


def coverage(
    truth: float,
    tpr: float,
    tnr: float,
    *,
    runs: int = RUNS,
    labels_truth: float | None = None,
    labelled: int = LABELLED,
) -> dict[str, Any]:
    """Share of runs whose interval holds the truth, and the mean width, by estimator."""
    random = np.random.default_rng(SEED)
    held: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}
    for _ in range(runs):

        def drawn(n: int, share: float) -> tuple[Any, Any]:
            good = random.random(n) < share
            called = np.where(good, random.random(n) < tpr, random.random(n) >= tnr)
            return good.astype(float), called.astype(float)

        _, judged = drawn(JUDGED - labelled, truth)
        people, verdicts = drawn(labelled, truth if labels_truth is None else labels_truth)
        confusion = Confusion.of([bool(each) for each in people], [bool(each) for each in verdicts])
        found: dict[str, Estimate | None] = {
            "raw": raw(judged),
            "human only": human(people),
            "PPI": ppi(judged, rectifier(people, verdicts)),
            "Rogan-Gladen": rogan_gladen(judged, confusion),
        }
        for name, estimate in found.items():
            held.setdefault(name, []).append(estimate is not None and estimate.low <= truth <= estimate.high)
            widths.setdefault(name, []).append(1.0 if estimate is None else estimate.high - estimate.low)
    return {name: (float(np.mean(held[name])), float(np.mean(widths[name]))) for name in held}


def measure() -> list[dict[str, Any]]:
    """Coverage beside the 95 % that is claimed."""
    rows = []
    for world, (truth, tpr, tnr) in WORLDS.items():
        for name, (share, width) in coverage(truth, tpr, tnr).items():
            target = ">= 0.979" if name == "PPI" else None  # 93 % of 95 %
            rows.append(result(f"{name}, {world}, width {width:.3f}", share, 0.95, "coverage", target, RUNS))
    for world, (truth, tpr, tnr) in (WORLDS | RARE).items():
        for labelled in (*FEW, LABELLED) if world in RARE else FEW:
            share, width = coverage(truth, tpr, tnr, labelled=labelled)["PPI"]
            name = f"PPI, {world}, {labelled} labels, width {width:.3f}"
            rows.append(result(name, share, 0.95, "coverage", ">= 0.979", RUNS))
    for name, (share, width) in coverage(0.90, 0.95, 0.80, labels_truth=0.80).items():
        rows.append(result(f"{name}, labels of another mix, width {width:.3f}", share, 0.95, "coverage", None, RUNS))
    return rows
