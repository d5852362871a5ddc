"""What a series does by itself: its week, and how much its days differ beyond chance. Pure.

The week has 28 slots of six hours, each with a mean of its own, drawn towards the mean of all as far as chance explains the difference.
The design effect (a term of survey statistics) says how many samples count as much as one independent one: 1 for independent samples, more
where answers of a session or of a bad day have something in common. It is the variance of the means of days, or of six hours, whichever
shows more, by what it would be were samples independent; and it is rounded up as far as few days leave it uncertain.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from assay_drift.baseline import Total

#: Hours of a slot, and slots of a week.
SLOT_HOURS, SLOTS = 6, 28
WEEK = 7
#: Standard deviation that is expected of slots before they are known, on the scale of 0 to 1.
TYPICAL = 0.05
#: One-sided 80 % bound of the design effect, in standard deviations of the normal distribution.
_BOUND = -0.84


def slot_of(hour: int) -> int:
    """The slot of an hour, by its number since 1970."""
    return hour // SLOT_HOURS % SLOTS


@dataclass(slots=True)
class Means:
    """The means of like periods (the same six hours of several weeks): how many, and their sums weighted by their samples."""

    periods: int = 0
    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, totals: Iterable[Total]) -> "Means":
        """Those of some periods; the ones without samples do not count."""
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
        """The mean of all samples; 0 without any."""
        return self.total / self.n if self.n else 0.0

    @property
    def between(self) -> float:
        """Sum of the squares by which the periods' means differ from the mean of all, weighted by their samples."""
        return max(0.0, self.squares - self.total**2 / self.n) if self.n else 0.0


@dataclass(frozen=True, slots=True)
class Season:
    """How much each slot differs from the mean (empty: not known yet), the design effect, and the days these are made of."""

    offsets: tuple[float, ...] = ()
    design_effect: float = 1.0
    days: int = 0

    def offset(self, hour: int) -> float:
        """What an hour adds to the mean."""
        return self.offsets[slot_of(hour)] if self.offsets else 0.0

    def effect_at(self, volume: float) -> float:
        """The design effect on a day with `volume` times the usual samples: more samples of one bad day are no more days."""
        return 1 + (self.design_effect - 1) * max(1.0, volume)


def season_of(days: Mapping[int, Total], slots: Mapping[int, Means]) -> Season:
    """What clean days, and the slots of the same days, show."""
    counted = {day: total for day, total in days.items() if total.n}
    overall = sum(counted.values(), Total())
    if len(counted) < WEEK or not overall.deviation:
        return Season(days=len(counted) if overall.deviation else 0)
    weekdays = [Means.of(total for day, total in counted.items() if day % WEEK == weekday) for weekday in range(WEEK)]
    # Two weeks tell a bad Sunday from Sundays; before, every difference counts as chance.
    alike = len(counted) >= 2 * WEEK
    effect = max(_design_effect(groups, overall.deviation, alike=alike) for groups in (weekdays, list(slots.values())))
    offsets = []
    for slot in range(SLOTS):
        found = slots.get(slot, Means())
        known = TYPICAL**2 * found.n / (TYPICAL**2 * found.n + effect * overall.deviation**2)
        offsets.append(known * (found.mean - overall.mean) if found.n else 0.0)
    return Season(tuple(offsets), effect, len(counted))


def _design_effect(groups: list[Means], deviation: float, *, alike: bool) -> float:
    """Variance of the means of periods, by what it would be of independent samples: within groups that are `alike`, or over all."""
    everything = sum(groups, Means())
    between, freedom = everything.between, everything.periods - 1
    if alike:
        between, freedom = sum(each.between for each in groups), everything.periods - sum(each.n > 0 for each in groups)
    if freedom < 1:
        return 1.0
    return max(1.0, bound(between, freedom) / deviation**2)


def bound(between: float, freedom: int) -> float:
    """The upper bound of a variance: a sum of squares by its degrees of freedom, rounded up as far as few of them leave it uncertain."""
    spread = 2 / (9 * freedom)  # Wilson and Hilferty's approximation of chi-square
    return between / freedom / (1 - spread + _BOUND * sqrt(spread)) ** 3
