"""Compare two runs question by question: McNemar's test and the paired bootstrap. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from assay_evals.errors import EvalsError
from assay_evals.longmemeval.results import Result
from assay_evals.statistics.bounded import bounded_intervals
from assay_evals.statistics.intervals import interval
from assay_evals.statistics.mcnemar import mcnemar
from assay_evals.statistics.resampling import Floats, resampled_means
from assay_evals.statistics.significance import flip_tests, holm

#: Cut-offs that are compared, of those that both runs measured.
_COMPARED = (5, 10)


@dataclass(frozen=True)
class Change:
    """Change of one measure over the questions that both runs have it for.

    `low` and `high` are its 95 % interval by the paired bootstrap, which has no width if no question changed. `bounded_low` and
    `bounded_high` also allow for changes that no question shows, as in other comparisons.

    `p_value` is McNemar's exact one if the measure is right or wrong, else that of a sign-flip test; `p_holm` is adjusted for the
    number of measures. `gained` and `lost` count the questions that changed.
    """

    n: int
    baseline: float
    run: float
    change: float
    low: float
    high: float
    method: str
    bounded_low: float
    bounded_high: float
    gained: int
    lost: int
    test: str
    p_value: float
    p_holm: float


@dataclass(frozen=True)
class Compared:
    """Two runs on the same questions.

    `only_baseline` and `only_run` count the questions that are in one run only.
    """

    questions: int
    only_baseline: int
    only_run: int
    changes: Mapping[str, Change]
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as a document."""
        return asdict(self)


def compare(baseline: Sequence[Result], run: Sequence[Result], *, seed: int = 0) -> Compared:
    """Compare two runs. Raises `EvalsError` for runs without a common question, or of different datasets."""
    before = {each.question_id: each for each in baseline}
    after = {each.question_id: each for each in run}
    common = [name for name in after if name in before]
    if not common:
        raise EvalsError("the two runs have no question in common")
    if other := next((name for name in common if before[name].question != after[name].question), None):
        raise EvalsError(f"question {other} differs between the two runs: they are of different datasets")
    pairs, notes = [(before[name], after[name]) for name in common], list[str]()
    columns = _columns(pairs)
    if (unjudged := sum(_is_unjudged(pair) for pair in pairs)) and "correct" in columns:
        notes.append(f"accuracy is compared without {unjudged} question(s) that one of the runs did not judge")
    cutoffs = [{name for one in side for name in one.metrics.get("standard", {})} for side in zip(*pairs, strict=True)]
    if cutoffs[0] != cutoffs[1] and "recall_hit" in columns:
        del columns["recall_hit"]
        notes.append("recall_hit is not compared: the runs requested different numbers of results (--top-k)")
    judges = [sorted({one.judge for one in side if one.judge}) for side in zip(*pairs, strict=True)]
    if judges[0] != judges[1] and "correct" in columns:
        del columns["correct"]
        notes.append(
            f"accuracy is not compared: the baseline was judged by {' and '.join(judges[0]) or 'no judge'}, this run by "
            f"{' and '.join(judges[1]) or 'no judge'}"
        )
    tested = {name: _tested(values, seed) for name, values in columns.items()}
    adjusted = holm({name: each.p_value for name, each in tested.items()})
    changes = {name: Change(**(asdict(each) | {"p_holm": adjusted[name]})) for name, each in tested.items()}
    return Compared(len(common), len(before) - len(common), len(after) - len(common), changes, notes)


def _columns(pairs: Sequence[tuple[Result, Result]]) -> dict[str, Floats]:
    """Return the measures that each pair has, shape (questions, 2).

    A question without an answer is wrong; one that has an answer and was not judged, for example for lack of money, is left out.
    """
    columns: dict[str, Floats] = {}
    judged = [pair for pair in pairs if not _is_unjudged(pair)]
    if any(each.label is not None for pair in judged for each in pair):
        columns["correct"] = np.array([[float(each.label is True) for each in pair] for pair in judged])
    hits = [pair for pair in pairs if all(each.recall_hit is not None for each in pair)]
    if hits:
        columns["recall_hit"] = np.array([[float(bool(each.recall_hit)) for each in pair] for pair in hits])
    for convention, names in (("reference", ("recall_all", "ndcg_any")), ("standard", ("recall", "ndcg"))):
        for name in (f"{name}@{k}" for name in names for k in _COMPARED):
            values = [
                [each.metrics[convention][name] for each in pair]
                for pair in pairs
                if all(name in each.metrics.get(convention, {}) for each in pair)
            ]
            if values:
                columns[name] = np.array(values, dtype=np.float64)
    return columns


def _is_unjudged(pair: tuple[Result, Result]) -> bool:
    return any(each.judge_error is not None for each in pair)


def _tested(values: Floats, seed: int) -> Change:
    deltas = values[:, 1] - values[:, 0]
    bounds = interval(deltas, resampled_means(deltas, seed=seed)[:, 0])
    (bounded,) = bounded_intervals(deltas, -1, 1, seed=seed)
    assert bounded is not None
    gained, lost = int(np.count_nonzero(deltas > 0)), int(np.count_nonzero(deltas < 0))
    if np.isin(values, (0.0, 1.0)).all():
        test, p_value = "mcnemar", mcnemar(gained, lost)
    else:
        test, p_value = "sign-flip", flip_tests(deltas, seed=seed)[0].two_sided
    means = values.mean(axis=0)
    return Change(
        len(values), float(means[0]), float(means[1]), float(deltas.mean()), bounds.low, bounds.high, bounds.method,
        bounded.low, bounded.high, gained, lost, test, p_value, p_value,
    )  # fmt: skip
