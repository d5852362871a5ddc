"""How far a judge agrees with people, and rates that make up for where it does not. Pure.

Positive means good: a person calls the answer good, the judge gives it `threshold` or more. Rates are shares of good answers. Sources:
prediction-powered inference (PPI): Angelopoulos et al. 2023; PPI++ (power tuning): Angelopoulos, Duchi, Zrnic 2023; Rogan-Gladen with the
interval of Lang and Reiczigel 2014; kappa: Cohen 1960; intervals of shares: Wilson 1927.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

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
    def rectifier(self) -> float:
        """Mean of label minus verdict: what PPI adds to the raw rate."""
        return (self.false_negatives - self.false_positives) / self.n

    @property
    def rectifier_variance(self) -> float:
        """Variance of label minus verdict."""
        squares = (self.false_negatives + self.false_positives) / self.n - self.rectifier**2
        return squares * self.n / (self.n - 1) if self.n > 1 else 0.0

    def pages(self, kappa_min: float, tnr_min: float) -> bool:
        """Whether this judge may wake somebody."""
        return self.kappa is not None and self.kappa >= kappa_min and self.tnr is not None and self.tnr.value >= tnr_min


def wilson(successes: int, n: int) -> Estimate | None:
    """A share and its interval; None for none."""
    if n == 0:
        return None
    share, spread = successes / n, Z * Z / n
    middle = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * sqrt(share * (1 - share) / n + spread / (4 * n))
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half))


def raw(judged: Floats) -> Estimate:
    """The judge's own rate. Its interval knows of chance only, not of the judge's errors: it is wrong with a biased judge."""
    return _normal(float(judged.mean()), float(judged.var(ddof=1)) / len(judged))


def human(labels: Floats) -> Estimate:
    """The labels' rate, without the judge."""
    return _normal(float(labels.mean()), float(labels.var(ddof=1)) / len(labels))


def ppi(judged: Floats, labels: Floats, verdicts: Floats) -> Estimate:
    """The judge's rate, made right by a random labelled subset (`verdicts` are the judge's, on the labelled answers). This is published."""
    errors = labels - verdicts
    variance = float(judged.var(ddof=1)) / len(judged) + float(errors.var(ddof=1)) / len(errors)
    return _normal(float(judged.mean() + errors.mean()), variance)


def ppi_plus(judged: Floats, labels: Floats, verdicts: Floats) -> Estimate:
    """PPI with the weight of the judge tuned to how much it helps."""
    n, more = len(labels), len(judged)
    spread = float(np.concatenate([judged, verdicts]).var(ddof=1))
    weight = float(np.cov(labels, verdicts, ddof=1)[0, 1]) / ((1 + n / more) * spread) if spread else 0.0
    weight = min(1.0, max(0.0, weight))
    value = labels.mean() + weight * (judged.mean() - verdicts.mean())
    variance = float((labels - weight * verdicts).var(ddof=1)) / n + weight**2 * float(judged.var(ddof=1)) / more
    return _normal(float(value), variance)


def rogan_gladen(judged: Floats, confusion: Confusion) -> Estimate | None:
    """The rate a judge with these errors must have seen. Holds when the labels are of another mix than the traffic; None for a judge that
    tells nothing apart."""
    good = confusion.true_positives + confusion.false_negatives
    bad = confusion.n - good
    n = len(judged) + Z * Z
    share = (float(judged.sum()) + Z * Z / 2) / n
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


def _normal(value: float, variance: float) -> Estimate:
    half = Z * sqrt(variance)
    return Estimate(value, value - half, value + half)
