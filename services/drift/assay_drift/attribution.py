"""Find the part of a project that moved a metric, by service, model, source and so on. Pure.

Kitagawa's decomposition splits the change of a mean exactly into the change within each group and the effect of its
share of the traffic: `sum of mean share * change of mean` and `sum of mean mean * change of share`. A group is named
only when its effect is statistically significant among this many groups (3.5 standard errors), and only if its
dimension separates groups: if a service becomes slower, all of its models are slower, which says nothing about the
models.

Answers of one session or of one bad day are correlated, so the standard errors include the variance of the daily means,
rounded up to cover the uncertainty of few days. Any two days differ by more than independent samples would.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import hypot, sqrt

from assay_drift.baseline import Total
from assay_drift.season import Means, bound
from assay_schema.alerts import one_line

#: Standard errors above which a group is named.
ERRORS = 3.5
#: Standard errors by which one group must differ from the rest for a dimension to separate groups.
APART = 3.0
#: Largest groups of a dimension that are listed separately (the rest are one group), and the longest name shown, in
#: characters.
GROUPS, NAME_CHARS = 12, 60
#: Samples needed before and after the change for a comparison.
LEAST = 30
#: Degrees of freedom (days, less one before and one after) needed to estimate the variance between days.
LEAST_FREEDOM = 3
REST = "(others)"

#: Samples of a group by day number.
Days = Mapping[int, Total]


def number(value: float) -> str:
    """Format a mean."""
    return f"{value:.3g}"


def percent(value: float) -> str:
    """Format a share."""
    return f"{value:.1%}"


@dataclass(frozen=True, slots=True)
class Part:
    """Effect of one group on the mean, in units of the metric.

    Over all groups, `within` and `mix` add up to the change of the metric.
    """

    dimension: str
    name: str
    within: float
    mix: float
    #: Standard errors. None if the group has too few samples.
    within_error: float | None
    mix_error: float
    share_before: float
    share_after: float
    mean_before: float
    mean_after: float
    #: True if its mean changed significantly more than the mean of the rest.
    apart: bool = False

    @property
    def moved(self) -> bool:
        """True if the group itself got significantly better or worse."""
        return self.within_error is not None and abs(self.within) > ERRORS * self.within_error

    @property
    def shifted(self) -> bool:
        """True if its share of the traffic changed the mean significantly."""
        return abs(self.mix) > ERRORS * self.mix_error


@dataclass(frozen=True, slots=True)
class Split:
    """Change of one metric, split by one dimension."""

    dimension: str
    before: float
    after: float
    parts: tuple[Part, ...]
    #: The standard error of `mix`.
    mix_error: float

    @property
    def change(self) -> float:
        """Change of the mean."""
        return self.after - self.before

    @property
    def mix(self) -> float:
        """Combined effect of the shares of all groups."""
        return sum(each.mix for each in self.parts)

    def told(self, shown: Callable[[float], str] = number) -> list[str]:
        """Describe the significant effects, the largest first.

        Names are bounded in length and contain no invisible characters.
        """
        if not self.change:
            return []
        sentences = [
            f"{self.dimension} {each.name}: {shown(each.mean_before)} to {shown(each.mean_after)}, "
            f"{each.within / self.change:.0%} of the change"
            for each in sorted(self.parts, key=lambda part: -abs(part.within))
            if each.apart and each.moved and each.within * self.change > 0
        ]
        if abs(self.mix) > ERRORS * self.mix_error and self.mix * self.change > 0:
            shares = [each for each in self.parts if each.shifted]
            most = max(shares or self.parts, key=lambda part: abs(part.share_after - part.share_before))
            sentences.append(
                f"mix of {self.dimension}s: {most.name} from {most.share_before:.0%} to {most.share_after:.0%} of the traffic, "
                f"{self.mix / self.change:.0%} of the change"
            )
        return sentences


def split(dimension: str, before: Mapping[str, Days], after: Mapping[str, Days]) -> Split | None:
    """Split the change from `before` to `after`. None if there are too few samples or only one group."""
    before, after = _bounded(before, after)
    n_before, n_after = (sum(_sum(days).n for days in totals.values()) for totals in (before, after))
    names = sorted(before.keys() | after.keys())
    if min(n_before, n_after) < LEAST or len(names) < 2:
        return None
    all_before, all_after = _everything(before), _everything(after)
    total_before, total_after = _sum(all_before), _sum(all_after)
    # Shares can be measured against any constant. With the mean of both periods, a group's mix is its effect on the
    # overall mean.
    middle = (total_before.mean + total_after.mean) / 2
    # A small group whose samples happen to be equal is not more certain than all groups together.
    least = _pooled(_sum(days) for totals in (before, after) for days in totals.values())
    parts, levels = [], {}
    levels_error = 0.0
    for name in names:
        days_old, days_new = before.get(name, {}), after.get(name, {})
        old, new = _sum(days_old), _sum(days_new)
        share_old, share_new = old.n / n_before, new.n / n_after
        mean_old = old.mean if old.n else new.mean  # a new or a vanished group changed only its share
        mean_new = new.mean if new.n else mean_old
        weight = (share_old + share_new) / 2
        mean_error = error_of_change(days_old, days_new, least)
        within_error = weight * mean_error if min(old.n, new.n) >= LEAST else None
        level = levels[name] = (mean_old + mean_new) / 2 - middle
        share_error = error_of_change(_share(days_old, all_before), _share(days_new, all_after))
        shift = share_new - share_old
        levels_error += (shift * mean_error / 2) ** 2
        mix_error = hypot(level * share_error, shift * mean_error / 2)
        apart = False
        if within_error is not None and min(n_before - old.n, n_after - new.n) >= LEAST:
            rest_old, rest_new = _without(all_before, days_old), _without(all_after, days_new)
            otherwise = (mean_new - mean_old) - (_sum(rest_new).mean - _sum(rest_old).mean)
            apart = abs(otherwise) > APART * hypot(mean_error, error_of_change(rest_old, rest_new, least))
        parts.append(
            Part(
                dimension, name, weight * (mean_new - mean_old), shift * level, within_error, mix_error,
                share_old, share_new, mean_old, mean_new, apart,
            )
        )  # fmt: skip
    # The combined effect of the shares is a change of a mean too: of the group level of each sample.
    mix_error = error_of_change(_levels(before, levels), _levels(after, levels))
    return Split(
        dimension, total_before.mean, total_after.mean, tuple(parts), sqrt(mix_error**2 + levels_error)
    )  # fmt: skip


def error_of_change(before: Days, after: Days, least: float = 0.0) -> float:
    """Standard error of the difference of two means, where samples of the same day may be correlated.

    The deviation of a sample counts as `least` or more.
    """
    old, new = _sum(before), _sum(after)
    periods = [Means.of(before.values()), Means.of(after.values())]
    freedom = sum(max(0, each.periods - 1) for each in periods)
    # Samples that are equal within each period but differ between periods show how much they can vary.
    least = max(least, (old + new).deviation / 2)
    deviation = max(_pooled((old, new)), least)
    variance = 0.0
    for total in (old, new):
        variance += max(total.deviation, least) ** 2 / total.n if total.n else 0.0
    if freedom < LEAST_FREEDOM:
        return sqrt(variance)
    # The variance between days (DerSimonian and Laird's estimate), from the upper bound of the spread of their means.
    between = bound(sum(each.between for each in periods), freedom) * freedom
    weights = sum(total.n - _squares(days) / total.n for total, days in ((old, before), (new, after)) if total.n)
    of_days = max(0.0, between - freedom * deviation**2) / weights if weights else 0.0
    usual = (old.n + new.n) / sum(each.periods for each in periods)
    for total, days in ((old, before), (new, after)):
        if total.n:  # samples of less than a day are at least as correlated as those of a whole day
            variance += of_days * max(_squares(days) / total.n**2, usual / total.n)
    return sqrt(variance)


def groups(rows: Iterable[tuple[str, int, int, float, float]]) -> dict[str, dict[int, Total]]:
    """Sum rows of (name, day, samples, sum, sum of squares) by name and day.

    Names that are displayed alike are one group.
    """
    totals: dict[str, dict[int, Total]] = {}
    for name, day, n, total, squares in rows:
        shown = one_line(name)[:NAME_CHARS] or "(none)"
        days = totals.setdefault(shown, {})
        days[day] = days.get(day, Total()) + Total(n, total, squares)
    return totals


def _sum(days: Days) -> Total:
    return sum(days.values(), Total())


def _squares(days: Days) -> float:
    return sum(each.n**2 for each in days.values())


def _pooled(totals: Iterable[Total]) -> float:
    """Standard deviation of a sample from the mean of its total."""
    estimable = [each for each in totals if each.n > 1]
    freedom = sum(each.n - 1 for each in estimable)
    return sqrt(sum(each.deviation**2 * (each.n - 1) for each in estimable) / freedom) if freedom else 0.0


def _everything(totals: Mapping[str, Days]) -> dict[int, Total]:
    by_day: dict[int, Total] = {}
    for days in totals.values():
        for day, total in days.items():
            by_day[day] = by_day.get(day, Total()) + total
    return by_day


def _without(everything: Days, days: Days) -> dict[int, Total]:
    """Return the samples of all other groups, by day."""
    return {
        day: Total(
            total.n - days[day].n, total.total - days[day].total, total.squares - days[day].squares
        ) if day in days else total
        for day, total in everything.items()
    }  # fmt: skip


def _share(days: Days, everything: Days) -> dict[int, Total]:
    """Return indicators by day: 1 for a sample of the group, 0 for any other."""
    counts = {day: days[day].n if day in days else 0 for day in everything}
    return {day: Total(total.n, counts[day], counts[day]) for day, total in everything.items()}


def _levels(totals: Mapping[str, Days], levels: Mapping[str, float]) -> dict[int, Total]:
    """Return each sample as the level of its group, by day."""
    return _everything(
        {
            name: {day: Total(each.n, each.n * levels[name], each.n * levels[name] ** 2) for day, each in days.items()}
            for name, days in totals.items()
        }
    )


def _bounded(
    before: Mapping[str, Days], after: Mapping[str, Days]
) -> tuple[dict[str, dict[int, Total]], dict[str, dict[int, Total]]]:
    """Return the largest groups, and all others combined into one."""
    size = {name: _sum(before.get(name, {})).n + _sum(after.get(name, {})).n for name in before.keys() | after.keys()}
    kept = set(sorted(size.keys() - {REST}, key=lambda name: (-size[name], name))[:GROUPS])
    made: list[dict[str, dict[int, Total]]] = []
    for totals in (before, after):
        bounded: dict[str, dict[int, Total]] = {}
        for name, days in totals.items():
            place = bounded.setdefault(name if name in kept else REST, {})
            for day, total in days.items():
                place[day] = place.get(day, Total()) + total
        made.append(bounded)
    return made[0], made[1]
