"""Which part of a project moved when a metric did: Kitagawa's decomposition, by service, model and source. Pure.

The change of a mean is split exactly into what changed within each group and what its share of the traffic did to the mean of all:
`sum of mean share * change of mean` and `sum of mean mean * change of share`. A group is only named when what it did is beyond what chance
gives to so many groups (3.5 standard errors).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from assay_drift.baseline import Total
from assay_schema.alerts import one_line

#: Standard errors beyond which a group is named.
ERRORS = 3.5
#: Groups of a dimension that stand by themselves, those with the most samples; the rest are one group. And the longest name that is shown.
GROUPS, NAME_CHARS = 12, 60
#: Samples in each time that a comparison needs.
LEAST = 30
REST = "(others)"


@dataclass(frozen=True, slots=True)
class Part:
    """What a group did to the mean. `within` and `mix` are in units of the metric, and add up to its change over all groups."""

    dimension: str
    name: str
    within: float
    mix: float
    #: Their standard errors.
    within_error: float
    mix_error: float
    share_before: float
    share_after: float
    mean_before: float
    mean_after: float

    @property
    def moved(self) -> bool:
        """Whether the group itself got better or worse, beyond chance."""
        return abs(self.within) > ERRORS * self.within_error > 0

    @property
    def shifted(self) -> bool:
        """Whether its share of the traffic changed the mean, beyond chance."""
        return abs(self.mix) > ERRORS * self.mix_error > 0


@dataclass(frozen=True, slots=True)
class Split:
    """The change of one metric by one dimension."""

    dimension: str
    change: float
    parts: tuple[Part, ...]

    @property
    def mix(self) -> float:
        """What the shares of all groups did together."""
        return sum(each.mix for each in self.parts)

    @property
    def mix_error(self) -> float:
        """Its standard error: the shares' alone, since the means they are weighted with are as they are."""
        return sqrt(sum(each.mix_error**2 for each in self.parts))

    def told(self) -> list[str]:
        """What is certain, in words, the greatest first. Names are bounded and hold no unseen characters."""
        if not self.change:
            return []
        found = [
            f"{self.dimension} {each.name}: {each.mean_before:.3g} to {each.mean_after:.3g}, "
            f"{each.within / self.change:.0%} of the change"
            for each in sorted(self.parts, key=lambda part: -abs(part.within))
            if each.moved and each.within * self.change > 0
        ]
        if abs(self.mix) > ERRORS * self.mix_error > 0 and self.mix * self.change > 0:
            shares = [each for each in self.parts if each.shifted]
            most = max(shares or self.parts, key=lambda part: abs(part.share_after - part.share_before))
            found.append(
                f"mix of {self.dimension}s: {most.name} from {most.share_before:.0%} to {most.share_after:.0%} of the traffic, "
                f"{self.mix / self.change:.0%} of the change"
            )
        return found


def split(dimension: str, before: Mapping[str, Total], after: Mapping[str, Total]) -> Split | None:
    """The change from `before` to `after`; None where there are too few samples or nothing to tell apart."""
    before, after = _bounded(before, after)
    n_before, n_after = (sum(each.n for each in totals.values()) for totals in (before, after))
    names = sorted(before.keys() | after.keys())
    if min(n_before, n_after) < LEAST or len(names) < 2:
        return None
    total_before, total_after = (sum(totals.values(), Total()) for totals in (before, after))
    # A constant would be as good as any to measure shares against; the mean of both makes a group's mix what it did to the mean of all.
    middle = (total_before.mean + total_after.mean) / 2
    # At least what a right-or-wrong sample of the whole has: a group of few equal samples is not certain.
    least = max(total_before.deviation, total_after.deviation) / 2
    parts = []
    for name in names:
        old, new = before.get(name, Total()), after.get(name, Total())
        share_old, share_new = old.n / n_before, new.n / n_after
        mean_old = old.mean if old.n else new.mean  # one that is new, or gone, changed its share alone
        mean_new = new.mean if new.n else mean_old
        weight = (share_old + share_new) / 2
        within_error = (
            weight * sqrt(_variance(old, least) + _variance(new, least)) if min(old.n, new.n) >= LEAST / 3 else 0.0
        )
        level = (mean_old + mean_new) / 2 - middle
        pooled = (old.n + new.n) / (n_before + n_after)
        share_error = sqrt(pooled * (1 - pooled) * (1 / n_before + 1 / n_after))
        level_error = sqrt(_variance(old, least) + _variance(new, least)) / 2
        shift = share_new - share_old
        mix_error = sqrt((level * share_error) ** 2 + (shift * level_error) ** 2)
        parts.append(
            Part(
                dimension, name, weight * (mean_new - mean_old), shift * level, within_error, mix_error,
                share_old, share_new, mean_old, mean_new,
            )
        )  # fmt: skip
    return Split(dimension, total_after.mean - total_before.mean, tuple(parts))


def groups(rows: Iterable[tuple[str, int, float, float]]) -> dict[str, Total]:
    """Totals by name, of rows: name, samples, their sum, their sum of squares. Names that are shown alike are one."""
    found: dict[str, Total] = {}
    for name, n, total, squares in rows:
        shown = one_line(name)[:NAME_CHARS] or "(none)"
        found[shown] = found.get(shown, Total()) + Total(n, total, squares)
    return found


def _variance(total: Total, least: float) -> float:
    return max(total.deviation, least) ** 2 / total.n if total.n else 0.0


def _bounded(
    before: Mapping[str, Total], after: Mapping[str, Total]
) -> tuple[Mapping[str, Total], Mapping[str, Total]]:
    """The groups with the most samples, and all others as one."""
    size = {name: before.get(name, Total()).n + after.get(name, Total()).n for name in before.keys() | after.keys()}
    kept = set(sorted(size, key=lambda name: (-size[name], name))[:GROUPS])
    made: list[dict[str, Total]] = []
    for totals in (before, after):
        bounded: dict[str, Total] = {}
        for name, total in totals.items():
            place = name if name in kept else REST
            bounded[place] = bounded.get(place, Total()) + total
        made.append(bounded)
    return made[0], made[1]
