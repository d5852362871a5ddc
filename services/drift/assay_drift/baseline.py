"""Totals by day, and the baseline computed from them. Pure.

A baseline is learned once, from enough samples over enough days. It grows with the clean days that follow until it is
full, and then stays fixed until an operator accepts a new one. A rolling baseline would follow a slow decline and never
detect it.
"""

from dataclasses import dataclass
from math import sqrt

#: Days of totals kept for each series, for the rolling mean and for charts.
KEPT_DAYS = 60


@dataclass(slots=True)
class Total:
    """Samples of a day or an hour: count, sum and sum of squares."""

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
        """Mean of the samples; 0 without samples."""
        return self.total / self.n if self.n else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation of a sample; 0 with fewer than two samples."""
        return sqrt(max(0.0, (self.squares - self.total**2 / self.n) / (self.n - 1))) if self.n > 1 else 0.0

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the mean (normal approximation), within [0, 1]."""
        half = 1.96 * self.deviation / sqrt(self.n) if self.n else 1.0
        return max(0.0, self.mean - half), min(1.0, self.mean + half)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A reference mean, and the samples behind it."""

    mean: float
    deviation: float
    n: int
    per_day: float
    #: First and last day (days since 1970, in the configured length of a day).
    first_day: int
    last_day: int
    full: bool = False

    def floor(self, tolerance: float, design_effect: float = 1.0) -> float:
        """Return the lowest acceptable mean: below the tolerance and two standard errors of the baseline."""
        return max(0.0, (1 - tolerance) * self.mean - 2 * self.deviation * sqrt(design_effect / self.n))


def total_of(days: dict[int, Total], first: int, last: int) -> Total:
    """Return the samples of the days from `first` to `last`, both included."""
    total_so_far = Total()
    for day, total in days.items():
        if first <= day <= last:
            total_so_far += total
    return total_so_far


def baseline_of(days: dict[int, Total], full_days: int) -> Baseline | None:
    """Compute the baseline of some days; None without samples. `full` once it has `full_days` days."""
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
