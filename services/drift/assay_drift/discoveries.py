"""Many series at once: which of them may alert. Pure.

Evidence is an e-value, so Wang and Ramdas' e-BH procedure ("False discovery rate control with e-values", JRSS-B 2022) applies whatever
the dependence between series: of N series those with the k greatest values alert, for the largest k with value_(k) >= N / k. One alone
needs N, as a correction for all of them would ask; when many move together each needs less.
"""

from collections.abc import Iterable


def needed(evidence: Iterable[float], streams: int) -> float:
    """The least evidence that alerts, when 1 would for a single series. `streams` counts the series that are not listed too."""
    found = float(streams)
    for place, value in enumerate(sorted(evidence, reverse=True), 1):
        if value >= streams / place:
            found = streams / place
    return found
