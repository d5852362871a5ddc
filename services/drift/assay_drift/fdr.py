"""False discovery control over many series: decide which of them may alert. Pure.

Evidence is an e-value, so Wang and Ramdas' e-BH procedure ("False discovery rate control with e-values", JRSS-B 2022)
applies, however the series depend on each other. Of N series, those with the k greatest values alert, for the largest k
with value_(k) >= N / k. A single series needs N, as with a Bonferroni correction; if many move together, each needs
less.
"""

from collections.abc import Iterable


def evidence_needed(evidence: Iterable[float], streams: int) -> float:
    """Return the evidence needed to alert, where a single series would need 1.

    `streams` is the number of all series, including those not listed.
    """
    threshold = float(streams)
    for place, value in enumerate(sorted(evidence, reverse=True), 1):
        if value >= streams / place:
            threshold = streams / place
    return threshold
