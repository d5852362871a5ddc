"""Seasonality of a series: its weekly pattern, and the variance between its days. Pure.

The week has 28 slots of six hours. Each has its own mean, shrunk towards the overall mean as far as chance explains the
difference. The design effect (a term of survey statistics) is the number of samples worth one independent sample: 1 for
independent samples, more if answers of a session or of a bad day are correlated. It is the variance of the means of
days, or of six-hour periods, whichever is larger, divided by the variance expected of independent samples. It is
rounded up to cover the uncertainty of few days.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from assay_drift.baseline import Total

#: Hours of a slot, and slots of a week.
SLOT_HOURS, SLOTS = 6, 28
WEEK = 7
#: Prior standard deviation of the slots, on a scale from 0 to 1.
TYPICAL = 0.05
#: One-sided 80 % bound of the design effect, in standard deviations of the normal distribution.
_BOUND = -0.84


def slot_of(hour: int) -> int:
    """Return the slot of an hour (hours since 1970)."""
    return hour // SLOT_HOURS % SLOTS


@dataclass(slots=True)
class Means:
    """Means of comparable periods (the same six hours of several weeks): their count and weighted sums."""

    periods: int = 0
    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, totals: Iterable[Total]) -> "Means":
        """Combine some periods; those without samples do not count."""
        made = cls()
        for each in totals:
            made.add(each)
        return made

    def add(self, period: Total) -> None:
        """Count a period."""
        if period.n:
            self.periods += 1
            self.n += period.n
            self.total += period.total
            self.squares += period.total**2 / period.n

    def __add__(self, other: "Means") -> "Means":
        return Means(
            self.periods + other.periods, self.n + other.n, self.total + other.total, self.squares + other.squares
        )

    @property
    def mean(self) -> float:
        """Mean of all samples; 0 without samples."""
        return self.total / self.n if self.n else 0.0

    @property
    def between(self) -> float:
        """Weighted sum of the squared differences between the periods' means and the overall mean."""
        return max(0.0, self.squares - self.total**2 / self.n) if self.n else 0.0


@dataclass(frozen=True, slots=True)
class Season:
    """Offset of each slot (empty until known), the design effect and the number of days behind them."""

    offsets: tuple[float, ...] = ()
    design_effect: float = 1.0
    days: int = 0

    def offset(self, hour: int) -> float:
        """Return the usual difference of an hour from the mean."""
        return self.offsets[slot_of(hour)] if self.offsets else 0.0

    def effect_at(self, volume: float) -> float:
        """Return the design effect on a day with `volume` times the usual samples.

        More samples of one bad day do not add days.
        """
        return 1 + (self.design_effect - 1) * max(1.0, volume)


def season_of(days: Mapping[int, Total], slots: Mapping[int, Means]) -> Season:
    """Compute the season from clean days and the slots of the same days."""
    counted = {day: total for day, total in days.items() if total.n}
    overall = sum(counted.values(), Total())
    if len(counted) < WEEK or not overall.deviation:
        return Season(days=len(counted) if overall.deviation else 0)
    weekdays = [Means.of(total for day, total in counted.items() if day % WEEK == weekday) for weekday in range(WEEK)]
    # Two weeks are needed to separate a bad Sunday from Sundays; before that, every difference counts as chance.
    alike = len(counted) >= 2 * WEEK
    effect = max(_design_effect(groups, overall.deviation, alike=alike) for groups in (weekdays, list(slots.values())))
    offsets = []
    for slot in range(SLOTS):
        slot_means = slots.get(slot, Means())
        shrinkage = TYPICAL**2 * slot_means.n / (TYPICAL**2 * slot_means.n + effect * overall.deviation**2)
        offsets.append(shrinkage * (slot_means.mean - overall.mean) if slot_means.n else 0.0)
    return Season(tuple(offsets), effect, len(counted))


def _design_effect(groups: list[Means], deviation: float, *, alike: bool) -> float:
    """Return the variance of the periods' means relative to that of independent samples.

    It is computed within comparable groups if `alike`, else over all periods.
    """
    everything = sum(groups, Means())
    between, freedom = everything.between, everything.periods - 1
    if alike:
        between, freedom = sum(each.between for each in groups), everything.periods - sum(each.n > 0 for each in groups)
    if freedom < 1:
        return 1.0
    return max(1.0, bound(between, freedom) / deviation**2)


def bound(between: float, freedom: int) -> float:
    """Return the upper bound of a variance: a sum of squares by its degrees of freedom.

    It is rounded up to cover the uncertainty of few degrees of freedom.
    """
    spread = 2 / (9 * freedom)  # Wilson and Hilferty's approximation of chi-square
    return between / freedom / (1 - spread + _BOUND * sqrt(spread)) ** 3
