"""Agreement between a judge and people, and rates corrected for the judge's errors. Pure.

Positive means good: a person labels the answer good, and the judge gives it `threshold` or more. Rates are shares of
good answers. Sources: prediction-powered inference (PPI): Angelopoulos et al. 2023; Rogan-Gladen with the interval of
Lang and Reiczigel 2014; kappa: Cohen 1960, its standard error Fleiss, Cohen and Everitt 1969; intervals of shares:
Wilson 1927. Answers are weighted by the inverse of their inclusion probability (Hajek). Equal answers may be given once,
with their `counts`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay_runtime.shares import Estimate as Estimate
from assay_runtime.shares import Z
from assay_runtime.shares import wilson as wilson
from assay_schema.settings import DriftSettings

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix of labels by people and verdicts of the judge."""

    true_positives: int
    false_negatives: int
    false_positives: int
    true_negatives: int

    @classmethod
    def of(cls, people: Sequence[bool], judge: Sequence[bool]) -> "Confusion":
        """Count pairs of label and verdict."""
        pairs = list(zip(people, judge, strict=True))
        return cls(
            true_positives=pairs.count((True, True)),
            false_negatives=pairs.count((True, False)),
            false_positives=pairs.count((False, True)),
            true_negatives=pairs.count((False, False)),
        )

    @property
    def n(self) -> int:
        """Number of labelled answers."""
        return self.true_positives + self.false_negatives + self.false_positives + self.true_negatives

    @property
    def agreement(self) -> float:
        """Share of answers on which both agree."""
        return (self.true_positives + self.true_negatives) / self.n

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance; None if chance explains all of it."""
        good = (self.true_positives + self.false_negatives) / self.n
        called_good = (self.true_positives + self.false_positives) / self.n
        chance = good * called_good + (1 - good) * (1 - called_good)
        return None if chance == 1 else (self.agreement - chance) / (1 - chance)

    @property
    def tpr(self) -> Estimate | None:
        """Share of good answers that the judge calls good; None without any."""
        return wilson(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def tnr(self) -> Estimate | None:
        """Share of bad answers that the judge calls bad; None without any."""
        return wilson(self.true_negatives, self.true_negatives + self.false_positives)

    @property
    def bad(self) -> int:
        """Number of answers that people label bad."""
        return self.false_positives + self.true_negatives

    @property
    def kappa_low(self) -> float | None:
        """Lower end of kappa's 95 % interval."""
        return self.kappa_interval.low if self.kappa_interval else None

    @property
    def kappa_interval(self) -> Estimate | None:
        """Kappa with its 95 % interval.

        Half an answer is added to each cell, because few answers that agree prove little.
        """
        if self.kappa is None:
            return None
        cells = np.array(
            [[self.true_positives, self.false_negatives], [self.false_positives, self.true_negatives]], dtype=np.float64
        )
        shares = (cells + 0.5) / (self.n + 2)
        rows, columns, agreed = shares.sum(axis=1), shares.sum(axis=0), shares.trace()
        chance = float(rows @ columns)
        kappa = (agreed - chance) / (1 - chance)
        same = sum(shares[i, i] * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i in (0, 1))
        other = (1 - kappa) ** 2 * sum(shares[i, 1 - i] * (columns[i] + rows[1 - i]) ** 2 for i in (0, 1))
        variance = (same + other - (kappa - chance * (1 - kappa)) ** 2) / ((self.n + 2) * (1 - chance) ** 2)
        half = Z * sqrt(max(0.0, variance))
        return Estimate(self.kappa, max(-1.0, float(kappa - half)), max(self.kappa, min(1.0, float(kappa + half))))

    def lacks(self, settings: DriftSettings) -> list[str]:
        """List the requirements that this judge does not meet for paging; empty if it meets all."""
        reasons = []
        if self.n < settings.calibration_labels:
            reasons.append(f"{self.n} labels, but drift.calibration_labels is {settings.calibration_labels}")
        if self.bad < settings.calibration_bad:
            reasons.append(
                f"{self.bad} answers labelled bad by people, but drift.calibration_bad is {settings.calibration_bad}"
            )
        tnr_low = self.tnr.low if self.tnr else None
        for name, low, least in (("kappa", self.kappa_low, settings.kappa_min), ("tnr", tnr_low, settings.tnr_min)):
            if low is None or low < least:
                shown = "unknown" if low is None else f"at least {low:.3f}"
                reasons.append(f"{name} is {shown}, but drift.{name}_min is {least:g}")
        return reasons


class Mean(NamedTuple):
    """A mean and the variance of that mean."""

    value: float
    variance: float


def mean_of(values: Floats, weights: Floats | None = None, counts: Floats | None = None) -> Mean:
    """Return the weighted mean and its variance."""
    shares, times = _ones(values, weights), _ones(values, counts)
    value = float(np.average(values, weights=times * shares))
    count = effective_size(values, weights, counts)
    spread = float(np.sum(times * shares**2 * (values - value) ** 2) / np.sum(times * shares) ** 2)
    return Mean(value, spread * count / (count - 1) if count > 1 else 0.25)


def effective_size(values: Floats, weights: Floats | None = None, counts: Floats | None = None) -> float:
    """Return the number of equally weighted answers that say as much."""
    shares, times = _ones(values, weights), _ones(values, counts)
    return float(np.sum(times * shares) ** 2 / np.sum(times * shares**2))


def _ones(values: Floats, given: Floats | None) -> Floats:
    return np.ones(len(values)) if given is None else given


def rectifier(labels: Floats, verdicts: Floats, weights: Floats | None = None) -> Mean:
    """Return the mean of label minus verdict: the correction that PPI adds to the judge's rate.

    Four answers are added: one error in each direction, and two agreements (as Agresti and Coull add four to a share).
    A judge errs seldom, and if few labels show no errors, or only one kind, the plain variance is far too small.
    """
    shares = np.ones(len(labels)) if weights is None else weights
    errors = np.concatenate([labels - verdicts, [1.0, -1.0, 0.0, 0.0]])
    return mean_of(errors, np.concatenate([shares, np.full(4, shares.mean())]))


def raw(judged: Floats, weights: Floats | None = None, counts: Floats | None = None) -> Estimate:
    """Return the judge's own rate.

    Its interval covers sampling error only, not the judge's errors, so it is wrong for a biased judge.
    """
    return _rate(judged, weights, counts)


def human(labels: Floats, weights: Floats | None = None) -> Estimate:
    """Return the rate by the labels alone."""
    return _rate(labels, weights)


def ppi(judged: Floats, correction: Mean, weights: Floats | None = None, counts: Floats | None = None) -> Estimate:
    """Return the judge's rate, corrected by a random labelled subset (see `rectifier`).

    This is published.
    """
    rate = mean_of(judged, weights, counts)
    return _normal(rate.value + correction.value, rate.variance + correction.variance)


def rogan_gladen(
    judged: Floats, confusion: Confusion, weights: Floats | None = None, counts: Floats | None = None
) -> Estimate | None:
    """Return the rate corrected by the judge's error rates.

    Valid even if the labels come from a different mix than the traffic. None for a judge that cannot discriminate.
    """
    good = confusion.true_positives + confusion.false_negatives
    bad = confusion.n - good
    size = effective_size(judged, weights, counts)
    n = size + Z * Z
    share = (mean_of(judged, weights, counts).value * size + Z * Z / 2) / n
    sensitivity, specificity = (confusion.true_positives + 1) / (good + 2), (confusion.true_negatives + 1) / (bad + 2)
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return None
    value = (share + specificity - 1) / youden
    of_good = sensitivity * (1 - sensitivity) / (good + 2)
    of_bad = specificity * (1 - specificity) / (bad + 2)
    shift = 2 * Z * Z * (value * of_good - (1 - value) * of_bad)
    half = Z * sqrt(share * (1 - share) / n + value**2 * of_good + (1 - value) ** 2 * of_bad) / youden
    middle = value + shift
    return Estimate(min(1.0, max(0.0, value)), max(0.0, middle - half), min(1.0, middle + half))


def _rate(values: Floats, weights: Floats | None, counts: Floats | None = None) -> Estimate:
    """Return the rate of zeros and ones at their effective sample size.

    Its interval is not empty even if all values are equal.
    """
    n = effective_size(values, weights, counts)
    estimate = wilson(mean_of(values, weights, counts).value * n, n)
    assert estimate is not None
    return estimate


def _normal(value: float, variance: float) -> Estimate:
    half = Z * sqrt(variance)
    return Estimate(*(min(1.0, max(0.0, each)) for each in (value, value - half, value + half)))
