"""Agreement of the judges of a panel, and the preference of a judge for its own family. Pure.

Source: Krippendorff, Content Analysis (4th ed., 2018), chapter 12: alpha for ordinal data with missing values.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from assay_evals.panel.scoring import Judged
from assay_evals.statistics.resampling import generator_of

Floats = npt.NDArray[np.float64]
#: Questions from which an interval is computed, and its resamples.
_QUESTIONS_LEAST, _RESAMPLES = 10, 2_000


class Agreement(NamedTuple):
    """Krippendorff's alpha (1 agreement, 0 as by chance) and its 95 % interval.

    None where nothing can be said: fewer than two scores per question, or all scores equal.
    """

    alpha: float | None
    low: float | None
    high: float | None
    questions: int


def agreement(judged: Iterable[Judged], dimension: str, seed: int = 0) -> Agreement:
    """Return how far judges agree about a dimension.

    A judge that scored several times counts with its mean. The interval resamples questions; None below 10 of them.
    """
    units = [unit for each in judged if len(unit := list(_by_judge(each, dimension).values())) >= 2]
    values = sorted({value for unit in units for value in unit})
    if not units or len(values) < 2:
        return Agreement(None, None, None, len(units))
    tables = _coincidences(units, values)
    total = tables.sum(axis=0)
    alpha = _alpha(total[None])[0]
    if len(units) < _QUESTIONS_LEAST:
        return Agreement(float(alpha), None, None, len(units))
    drawn = generator_of(seed).multinomial(len(units), np.full(len(units), 1 / len(units)), _RESAMPLES)
    resampled = _alpha((drawn @ tables.reshape(len(units), -1)).reshape(-1, *total.shape))
    low, high = np.nanquantile(resampled, [0.025, 0.975])
    return Agreement(float(alpha), float(low), float(high), len(units))


def _by_judge(judged: Judged, dimension: str) -> dict[str, float]:
    said: dict[str, list[float]] = {}
    for reply in judged.replies:
        said.setdefault(reply.judge, []).append(reply.scores[dimension])
    return {judge: fmean(scores) for judge, scores in said.items()}


def _coincidences(units: Sequence[Sequence[float]], values: Sequence[float]) -> Floats:
    """Return the table of coincidences of each unit: shape (units, values, values)."""
    places = {value: place for place, value in enumerate(values)}
    tables = np.zeros((len(units), len(values), len(values)))
    for number, unit in enumerate(units):
        counts = np.bincount([places[value] for value in unit], minlength=len(values)).astype(float)
        tables[number] = (np.outer(counts, counts) - np.diag(counts)) / (len(unit) - 1)
    return tables


def _alpha(tables: Floats) -> Floats:
    """Return alpha for each table of coincidences, by the ordinal difference; `nan` if all values are equal."""
    counts = tables.sum(axis=2)
    n = counts.sum(axis=1)
    ranks = np.cumsum(counts, axis=1) - counts / 2
    distance = (ranks[:, :, None] - ranks[:, None, :]) ** 2
    observed = (tables * distance).sum(axis=(1, 2)) / n
    expected = (counts[:, :, None] * counts[:, None, :] * distance).sum(axis=(1, 2)) / (n * (n - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


class SelfPreference(NamedTuple):
    """Scores of a family for its own answers, compared with the other judges on the same answers.

    `own`, `others`: mean difference (theirs minus the other judges') on answers of their family, and on those of others. `preference`:
    own minus others, so a judge that is mild with all answers has 0; None unless both are known.
    """

    own: float | None
    own_n: int
    others: float | None
    others_n: int

    @property
    def preference(self) -> float | None:
        """Return the difference of the differences, in points of the scale."""
        return None if self.own is None or self.others is None else self.own - self.others


def self_preference(judged: Iterable[Judged], families: Sequence[str]) -> Mapping[str, SelfPreference]:
    """Return each family's preference for its own answers, over all dimensions.

    Answers of an unknown family do not count.
    """
    differences: dict[str, tuple[list[float], list[float]]] = {family: ([], []) for family in families}
    for each in judged:
        means: dict[str, list[float]] = {}
        for reply in each.replies:
            means.setdefault(reply.family, []).append(fmean(reply.scores.values()))
        if each.item.family is None or len(means) < 2:
            continue
        for family, theirs in means.items():
            rest = [fmean(scores) for other, scores in means.items() if other != family]
            differences[family][each.item.family != family].append(fmean(theirs) - fmean(rest))
    return {
        family: SelfPreference(fmean(own) if own else None, len(own), fmean(others) if others else None, len(others))
        for family, (own, others) in differences.items()
    }
