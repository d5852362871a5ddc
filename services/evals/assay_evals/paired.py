"""Two runs, paired by case: their comparison, and the cases that moved most. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from assay_evals.comparison import LATENCY, Comparison, Rule, compare
from assay_evals.runs import CaseResult, Run
from assay_evals.statistics import RESAMPLES


@dataclass(frozen=True)
class PairedRuns:
    """What comparing two runs gives: the metrics, means by type of query, and pairs of results by how much they lost."""

    baseline: Run
    candidate: Run
    comparison: Comparison
    pairs: list[tuple[CaseResult, CaseResult]]

    def worst(self, metric: str, count: int) -> list[tuple[CaseResult, CaseResult, float]]:
        """The cases whose metric fell most, the worst first: both results and the change."""
        found = []
        for before, after in self.pairs:
            one, other = before.metrics.get(metric), after.metrics.get(metric)
            if one is not None and other is not None and other < one:
                found.append((before, after, other - one))
        return sorted(found, key=lambda each: each[2])[:count]

    def by_query_type(self, metric: str) -> dict[str, tuple[int, float, float]]:
        """Number of pairs and both means, by type of query."""
        found = {}
        for kind in dict.fromkeys(before.query_type for before, _ in self.pairs):
            values = [
                (one, other)
                for before, after in self.pairs
                if before.query_type == kind
                and (one := before.metrics.get(metric)) is not None
                and (other := after.metrics.get(metric)) is not None
            ]
            if values:
                one, other = np.mean(values, axis=0)
                found[kind] = (len(values), float(one), float(other))
        return found


def compare_runs(
    baseline: Run,
    candidate: Run,
    *,
    rules: Mapping[str, Rule] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> PairedRuns:
    """Pair by case id and compare. Metrics that only one run measured are left out; cases that only one has are named."""
    before = {result.case_id: result for result in baseline.results}
    after = {result.case_id: result for result in candidate.results}
    shared = [name for name in before if name in after]
    pairs = [(before[name], after[name]) for name in shared]
    names = [name for name in baseline.names if name in set(candidate.names)]
    columns = [
        {name: run.column(name, [pair[side] for pair in pairs]) for name in (*names, LATENCY)}
        for side, run in enumerate((baseline, candidate))
    ]
    clusters = [pair[0].cluster or pair[0].case_id for pair in pairs]
    comparison = compare(
        *columns,
        rules=rules,
        clusters=clusters if any(pair[0].cluster for pair in pairs) else None,
        seed=seed,
        resamples=resamples,
    )
    comparison = replace(
        comparison,
        only_baseline=sorted(before.keys() - after.keys()),
        only_candidate=sorted(after.keys() - before.keys()),
        errored=[name for name in shared if before[name].error or after[name].error],
    )
    return PairedRuns(baseline, candidate, comparison, pairs)
