"""What is normal for a series: totals by day, and the baseline made of them. Pure.

A baseline is learned once, from enough samples over enough days, grows with the clean days that follow until it is full, and then stands
still until somebody accepts another: one that rolls along is dragged down by a slow slide until it no longer sees it.
"""

from dataclasses import dataclass
from math import sqrt

#: Days of totals a series keeps, for the rolling mean and for charts.
KEPT_DAYS = 60


@dataclass(slots=True)
class Total:
    """Samples of a day or an hour: how many, their sum and sum of squares."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, x: float) -> None:
        """Count a sample."""
        self.n += 1
        self.total += x
        self.squares += x * x

    def __add__(self, other: "Total") -> "Total":
        return Total(self.n + other.n, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """The mean; 0 without samples."""
        return self.total / self.n if self.n else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of a sample; 0 without two samples."""
        return sqrt(max(0.0, (self.squares - self.total**2 / self.n) / (self.n - 1))) if self.n > 1 else 0.0

    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean (normal approximation), within [0, 1]."""
        half = 1.96 * self.deviation / sqrt(self.n) if self.n else 1.0
        return max(0.0, self.mean - half), min(1.0, self.mean + half)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A mean to compare with, and what it was made of."""

    mean: float
    deviation: float
    n: int
    per_day: float
    #: First and last day (number of days since 1970, in the length of day in use).
    first_day: int
    last_day: int
    full: bool = False

    def floor(self, tolerance: float, design_effect: float = 1.0) -> float:
        """The least mean that is well: below the tolerance, and below the baseline's own uncertainty (two standard errors)."""
        return max(0.0, (1 - tolerance) * self.mean - 2 * self.deviation * sqrt(design_effect / self.n))


def total_of(days: dict[int, Total], first: int, last: int) -> Total:
    """All samples of the days from `first` to `last`."""
    found = Total()
    for day, total in days.items():
        if first <= day <= last:
            found += total
    return found


def baseline_of(days: dict[int, Total], full_days: int) -> Baseline | None:
    """The baseline that days make; None without any sample. `full` when they are as many as a full one has."""
    counted = sorted(day for day, total in days.items() if total.n)[-full_days:]
    if not counted:
        return None
    total = sum((days[day] for day in counted), Total())
    return Baseline(
        total.mean,
        total.deviation,
        total.n,
        total.n / len(counted),
        counted[0],
        counted[-1],
        full=len(counted) >= full_days,
    )
