"""Shares with their confidence intervals: the score interval of Wilson (1927). Pure."""

from math import sqrt
from typing import NamedTuple

#: Quantile of the normal distribution for a 95 % interval.
Z = 1.959963984540054


class Estimate(NamedTuple):
    """A rate and its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(successes: float, n: float, quantile: float = Z) -> Estimate | None:
    """Return a share with its Wilson interval; None for n = 0.

    `n` may be an effective sample size, and `successes` the sum of values from 0 to 1: their variance is never larger than that of
    zeros and ones with the same mean. `quantile`: Student's, where the variance behind an effective size is of few clusters.
    """
    if not n:
        return None
    share, spread = successes / n, quantile**2 / n
    middle = (share + spread / 2) / (1 + spread)
    half = quantile / (1 + spread) * sqrt(share * (1 - share) / n + spread / (4 * n))
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half))
