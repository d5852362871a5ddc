"""How far a judge agrees with people, and rates that make up for where it does not. Pure.

Positive means good: a person calls the answer good, the judge gives it `threshold` or more. Rates are shares of good answers. Sources:
prediction-powered inference (PPI): Angelopoulos et al. 2023; Rogan-Gladen with the interval of Lang and Reiczigel 2014; kappa: Cohen 1960,
its standard error Fleiss, Cohen and Everitt 1969; intervals of shares: Wilson 1927.
Answers count by the inverse of the probability with which they were drawn (Hajek).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay_schema.settings import DriftSettings

Floats = npt.NDArray[np.float64]
#: Of a 95 % interval.
Z = 1.959963984540054


class Estimate(NamedTuple):
    """A rate and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Confusion:
    """People against judge, by answer."""

    true_positives: int
    false_negatives: int
    false_positives: int
    true_negatives: int

    @classmethod
    def of(cls, people: Sequence[bool], judge: Sequence[bool]) -> "Confusion":
        """Count pairs."""
        pairs = list(zip(people, judge, strict=True))
        return cls(
            true_positives=pairs.count((True, True)),
            false_negatives=pairs.count((True, False)),
            false_positives=pairs.count((False, True)),
            true_negatives=pairs.count((False, False)),
        )

    @property
    def n(self) -> int:
        """Labelled answers."""
        return self.true_positives + self.false_negatives + self.false_positives + self.true_negatives

    @property
    def agreement(self) -> float:
        """Share of answers they agree on."""
        return (self.true_positives + self.true_negatives) / self.n

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance; None when chance alone explains all of it."""
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
        """Answers that people call bad."""
        return self.false_positives + self.true_negatives

    @property
    def kappa_low(self) -> float | None:
        """Lower end of the 95 % interval of kappa, half an answer added to each cell: few answers that agree prove little."""
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
        return max(-1.0, float(kappa - Z * sqrt(max(0.0, variance))))

    def lacks(self, settings: DriftSettings) -> list[str]:
        """Why this judge may not wake anybody, in words; empty if it may."""
        found = []
        if self.n < settings.calibration_labels:
            found.append(f"{self.n} labels, and drift.calibration_labels is {settings.calibration_labels}")
        if self.bad < settings.calibration_bad:
            found.append(
                f"{self.bad} answers that people call bad, and drift.calibration_bad is {settings.calibration_bad}"
            )
        tnr_low = self.tnr.low if self.tnr else None
        for name, low, least in (("kappa", self.kappa_low, settings.kappa_min), ("tnr", tnr_low, settings.tnr_min)):
            if low is None or low < least:
                shown = "unknown" if low is None else f"at least {low:.3f}"
                found.append(f"{name} is {shown}, and drift.{name}_min is {least:g}")
        return found


def wilson(successes: int, n: int) -> Estimate | None:
    """A share and its interval; None for none."""
    return _share(successes, n) if n else None


def _share(successes: float, n: float) -> Estimate:
    share, spread = successes / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * sqrt(share * (1 - share) / n + spread / (4 * n))
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half))


class Mean(NamedTuple):
    """A mean and the variance of that mean."""

    value: float
    variance: float


def mean_of(values: Floats, weights: Floats | None = None) -> Mean:
    """The weighted mean."""
    shares = np.ones(len(values)) if weights is None else weights
    value = float(np.average(values, weights=shares))
    count = float(shares.sum() ** 2 / np.sum(shares**2))  # as many of equal weight would vary as much
    spread = float(np.sum(shares**2 * (values - value) ** 2) / shares.sum() ** 2)
    return Mean(value, spread * count / (count - 1) if count > 1 else 0.25)


def rectifier(labels: Floats, verdicts: Floats, weights: Floats | None = None) -> Mean:
    """Label minus verdict: what PPI adds to the judge's rate.

    Four answers are added: one error either way, and two on which they agree (as Agresti and Coull add four to a share). A judge errs
    seldom, and where few labels show none, or only one kind, the plain variance is far too small.
    """
    shares = np.ones(len(labels)) if weights is None else weights
    errors = np.concatenate([labels - verdicts, [1.0, -1.0, 0.0, 0.0]])
    return mean_of(errors, np.concatenate([shares, np.full(4, shares.mean())]))


def raw(judged: Floats, weights: Floats | None = None) -> Estimate:
    """The judge's own rate. Its interval knows of chance only, not of the judge's errors: it is wrong with a biased judge."""
    return _rate(judged, weights)


def human(labels: Floats, weights: Floats | None = None) -> Estimate:
    """The labels' rate, without the judge."""
    return _rate(labels, weights)


def ppi(judged: Floats, correction: Mean, weights: Floats | None = None) -> Estimate:
    """The judge's rate, made right by what a random labelled subset says (see `rectifier`). This is published."""
    rate = mean_of(judged, weights)
    return _normal(rate.value + correction.value, rate.variance + correction.variance)


def rogan_gladen(judged: Floats, confusion: Confusion, weights: Floats | None = None) -> Estimate | None:
    """The rate a judge with these errors must have seen. Holds when the labels are of another mix than the traffic; None for a judge that
    tells nothing apart."""
    good = confusion.true_positives + confusion.false_negatives
    bad = confusion.n - good
    seen = len(judged) if weights is None else float(weights.sum() ** 2 / np.sum(weights**2))
    n = seen + Z * Z
    share = (mean_of(judged, weights).value * seen + Z * Z / 2) / n
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


def _rate(values: Floats, weights: Floats | None) -> Estimate:
    """Of zeros and ones, as many of equal weight as would vary as much; all alike leave room for others too."""
    n = len(values) if weights is None else float(weights.sum() ** 2 / np.sum(weights**2))
    return _share(mean_of(values, weights).value * n, n)


def _normal(value: float, variance: float) -> Estimate:
    half = Z * sqrt(variance)
    return Estimate(*(min(1.0, max(0.0, each)) for each in (value, value - half, value + half)))
