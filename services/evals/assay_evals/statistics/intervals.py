"""Confidence intervals of a mean: Student's, percentiles of resamples, or degenerate. Pure."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assay_evals.statistics.power import _NORMAL
from assay_evals.statistics.resampling import Floats

#: Below this many cases (or clusters) an interval is Student's, above it is that of the percentiles. Changes of retrieval are mostly 0
#: with a few large ones. On 30 such differences 95 % intervals cover the truth in 96 % of simulations by Student, in 89 % by percentiles,
#: and in 82 % by the bias-corrected and accelerated bootstrap.
STUDENT_BELOW = 100
#: 97.5 % quantiles of Student's t for 1 to 9 degrees of freedom; from 10 on a series is exact to three places.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
#: Statistics with a smaller relative difference are equal: sums with the same signs differ by rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Interval:
    """A confidence interval and its method."""

    low: float
    high: float
    method: Literal["bounded", "student", "percentile", "degenerate"]


def interval(
    values: Floats,
    means: Floats,
    *,
    units: int | None = None,
    student: bool | None = None,
    weights: Floats | None = None,
) -> Interval:
    """Return the 95 % interval of a mean, from the cases' values and its bootstrap means, ignoring `nan`.

    `units`: the number of independent units, if cases are clustered. `student` selects the method; None selects it by
    the units. `weights`: those of the bootstrap means. The effective sample size counts (Kish 1965): few heavy cases
    among many light ones count as few.
    """
    present = ~np.isnan(values)
    values, means = values[present], means[~np.isnan(means)]
    if not len(values) or not len(means):
        raise ValueError("no values: an interval needs at least one case")
    shares = np.ones(len(values)) if weights is None else weights[present]
    centre = float(np.average(values, weights=shares))
    count = min(units or len(values), int(shares.sum() ** 2 / np.sum(shares**2) + _ROUNDING))
    if (units or len(values)) == 1 or np.ptp(values) == 0:
        return Interval(centre, centre, "degenerate")
    if student if student is not None else count < STUDENT_BELOW:
        # The variance of resampled means is that of the mean, except for the factor by which a sample's variance is too small.
        count = max(count, 2)
        half = student_quantile(count - 1) * float(means.std()) * math.sqrt(count / (count - 1))
        return Interval(centre - half, centre + half, "student")
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(low), float(high), "percentile")


def student_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t (Cornish and Fisher's series)."""
    if freedom <= len(_STUDENT):
        return _STUDENT[freedom - 1]
    z = _NORMAL.inv_cdf(0.975)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
