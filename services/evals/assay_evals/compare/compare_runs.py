"""Two runs paired by case: their comparison, and the cases that changed most. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay_evals.compare.comparison import Comparison, compare
from assay_evals.compare.shrinkage import shrinkages
from assay_evals.compare.slices import (
    SliceChange,
    SliceCheck,
    SliceFloor,
    metrics_shown,
    slice_changes,
    slice_checks,
    worst,
)
from assay_evals.compare.verdicts import DEFAULT_RULES, Rule, Stage, Verdict, rule_of
from assay_evals.metrics.answer_coverage import is_answerable
from assay_evals.metrics.metric_names import LATENCY, QUANTILES
from assay_evals.run.model import CaseResult, Run, RunConfig
from assay_evals.statistics.resampling import RESAMPLES, Floats


@dataclass(frozen=True)
class PairedRuns:
    """Result of comparing two runs: metrics, means by query type, and pairs of results by loss."""

    baseline: Run
    candidate: Run
    comparison: Comparison
    pairs: list[tuple[CaseResult, CaseResult]]
    #: The candidate's slices, and their changes, where they were asked for.
    checks: list[SliceCheck] = field(default_factory=list)
    changes: list[SliceChange] = field(default_factory=list)

    def verdict(self, inconclusive: Verdict = Verdict.INCONCLUSIVE) -> Verdict:
        """Return the verdict of blocking metrics and slice floors.

        `inconclusive`: what inconclusive ones count as.
        """
        return worst(self.comparison.verdict(inconclusive=inconclusive), self.checks, inconclusive)

    def worst(self, metric: str, count: int) -> list[tuple[CaseResult, CaseResult, float]]:
        """Return the cases whose metric dropped most, worst first: both results and the change."""
        rule = next(
            (each.rule for each in self.comparison.metrics if each.metric == metric), rule_of(metric, DEFAULT_RULES)
        )
        sign = -1.0 if rule.lower_is_better else 1.0
        moved = []
        for before, after in self.pairs:
            one, other = before.value(metric), after.value(metric)
            if one is not None and other is not None and sign * other < sign * one:
                moved.append((before, after, other - one))
        return sorted(moved, key=lambda each: sign * each[2])[:count]

    def by_query_type(self, metric: str) -> dict[str, tuple[int, float, float]]:
        """Return the number of pairs and both means, by query type."""
        by_type = {}
        for kind in dict.fromkeys(before.query_type for before, _ in self.pairs):
            values = [
                (one, other, before.weight)
                for before, after in self.pairs
                if before.query_type == kind
                and (one := before.value(metric)) is not None
                and (other := after.value(metric)) is not None
            ]
            if values:
                table = np.array(values)
                one, other = np.average(table[:, :2], axis=0, weights=table[:, 2])
                by_type[kind] = (len(values), float(one), float(other))
        return by_type


def compare_runs(
    baseline: Run,
    candidate: Run,
    *,
    rules: Mapping[str, Rule] | None = None,
    slices: Iterable[str] = (),
    floors: Sequence[SliceFloor] = (),
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> PairedRuns:
    """Pair by case id and compare.

    Cases in only one run are listed, and so are the reasons why the two are not comparable. Metrics in only one run are
    listed and not compared; a blocking metric of the baseline that is missing in the candidate fails. If one of the
    runs is a sample of the dataset, only common cases are compared. `slices`: the fields to slice by, in addition to
    those of `floors`.
    """
    unended = _unended(baseline, candidate)
    baseline, candidate = _common(baseline, candidate)
    before = {result.case_id: result for result in baseline.results}
    after = {result.case_id: result for result in candidate.results}
    shared = [name for name in before if name in after]
    pairs = [(before[name], after[name]) for name in shared]
    names = dict.fromkeys((*baseline.names, *candidate.names, LATENCY))
    columns = [
        {name: run.column(name, [pair[side] for pair in pairs]) for name in names}
        for side, run in enumerate((baseline, candidate))
    ]
    clusters = [pair[0].unit for pair in pairs] if any(pair[0].cluster for pair in pairs) else None
    weights = baseline.weights([pair[0] for pair in pairs])
    comparison = compare(*columns, rules=rules, clusters=clusters, weights=weights, seed=seed, resamples=resamples)
    chosen = {**DEFAULT_RULES, **(rules or {})}
    unpaired = _unpaired(names, columns, [bool(one.error or other.error) for one, other in pairs])
    comparison = replace(
        comparison,
        unpaired={name: count for name, count in unpaired.items() if name not in _alone(comparison)},
        only_baseline=sorted(before.keys() - after.keys()),
        only_candidate=sorted(after.keys() - before.keys()),
        errored=[name for name in shared if before[name].error or after[name].error],
        unlike=[
            *unended,
            *_interrupted(baseline, candidate),
            *_unlike(baseline, candidate, _lost(comparison, unpaired), chosen),
        ],
        shrunk=shrinkages(
            [each.metric for each in comparison.metrics if each.metric in unpaired and each.rule.stage is Stage.BLOCK],
            columns[0],
            columns[1],
            np.array([not (a.error or b.error) and is_answerable(a.query_type) for a, b in pairs], dtype=bool),
            clusters=clusters,
            weights=weights,
            seed=seed,
            resamples=resamples,
        ),
    )
    fields = list(dict.fromkeys([*slices, *(each.field for each in floors)]))
    shown = metrics_shown(candidate.names, floors) if fields else []
    return PairedRuns(
        baseline,
        candidate,
        comparison,
        pairs,
        checks=slice_checks(candidate, fields, floors, chosen),
        changes=slice_changes(pairs, columns, fields, shown, chosen, seed),
    )


def _unended(*runs: Run) -> list[str]:
    """Describe sampled runs that lack cases of their sample."""
    return [
        f"{run.run_id} contains {len(run.results):,} of the {run.config.sample['cases']:,} cases of its sample"
        for run in runs
        if run.config.sample and len(run.results) != run.config.sample["cases"]
    ]


def _interrupted(baseline: Run, candidate: Run) -> list[str]:
    """Describe runs that ended before all cases were done, and lack cases of the other."""
    described = []
    for run, other in ((baseline, candidate), (candidate, baseline)):
        own = {result.case_id for result in run.results}
        if run.completed_at is None and any(result.case_id not in own for result in other.results):
            described.append(f"{run.run_id} was interrupted after {len(own):,} cases: complete it with --resume")
    return described


def _common(baseline: Run, candidate: Run) -> tuple[Run, Run]:
    """Return both runs without the cases that the other's sample left out."""
    kept = []
    for run, other in ((baseline, candidate), (candidate, baseline)):
        asked = {result.case_id for result in other.results}
        chosen = [result for result in run.results if not other.config.sample or result.case_id in asked]
        kept.append(replace(run, results=chosen))
    return kept[0], kept[1]


def _unpaired(names: Iterable[str], columns: Sequence[Mapping[str, Floats]], errored: Sequence[bool]) -> dict[str, int]:
    """Return by metric the number of cases, answered in both runs, with a value in only one."""
    answered = ~np.array(errored, dtype=bool)
    before, after = columns
    alone = {
        name: int(np.count_nonzero(answered & (np.isnan(before[name]) != np.isnan(after[name])))) for name in names
    }
    return {name: count for name, count in alone.items() if count}


def _alone(comparison: Comparison) -> set[str]:
    return {*comparison.metrics_only_baseline, *comparison.metrics_only_candidate}


def _lost(comparison: Comparison, unpaired: Mapping[str, int]) -> list[str]:
    """Return metrics of the baseline that could not be compared.

    The candidate has them for no case, or for none of the same cases.
    """
    compared = {each.metric for each in comparison.metrics}
    disjoint = [name for name in unpaired if name not in compared | _alone(comparison)]
    return [*comparison.metrics_only_baseline, *disjoint]


def comparable(before: Run, config: RunConfig) -> Run | None:
    """Return an earlier run if its configuration matches `config`, else None.

    After an edit of the dataset, the series starts again. A changed scorer restarts its metric only: the run is
    returned without the values of scorers that differ from `config`.
    """
    if (before.config.dataset_fingerprint, before.config.judge) != (config.dataset_fingerprint, config.judge):
        return None
    changed = {name for name, digest in before.config.scorers.items() if config.scorers.get(name) != digest}
    if not changed:
        return before
    kept = {name: digest for name, digest in before.config.scorers.items() if name not in changed}
    results = [
        replace(each, metrics={name: value for name, value in each.metrics.items() if name not in changed})
        for each in before.results
    ]
    return replace(before, config=replace(before.config, scorers=kept), results=results)


def _other_cases(baseline: Run, candidate: Run) -> str:
    """Describe why the runs' datasets differ: by `--limit`, or by an edit."""
    before, after = ({result.case_id for result in run.results} for run in (baseline, candidate))
    ours, theirs = baseline.config, candidate.config
    same = (ours.dataset, ours.dataset_version) == (theirs.dataset, theirs.dataset_version)
    if same and (before < after or after < before):
        fewer = "the baseline" if before < after else "the candidate"
        return (
            f"{fewer} ran only {min(len(before), len(after)):,} of {max(len(before), len(after)):,} cases: if that was --limit, run both "
            "with the same one, or use --sample, which stays comparable; if cases were added since, run both on the same version"
        )
    return "the dataset was changed between the runs: run both on the same version"


def _unlike(baseline: Run, candidate: Run, gone: Sequence[str], rules: Mapping[str, Rule]) -> list[str]:
    """Describe differences in how two runs were measured, so that they are not compared silently.

    `gone`: metrics of the baseline that could not be compared.
    """
    one, other = baseline.config, candidate.config
    reasons = []
    if one.dataset_fingerprint != other.dataset_fingerprint:
        reasons.append(_other_cases(baseline, candidate))
    if one.gain != other.gain:
        reasons.append(f"nDCG has the gain {one.gain} in the baseline and {other.gain} in the candidate")
    if max(one.cutoffs) != max(other.cutoffs):
        reasons.append("the deepest cut-offs differ, and with them the reciprocal rank")
    if one.judge and other.judge and one.judge != other.judge:
        reasons.append("answers were judged by different judges")
    blocks = any(rule_of(name, rules).stage is Stage.BLOCK for name in QUANTILES)
    if blocks and one.concurrency and other.concurrency and one.concurrency != other.concurrency:
        asked = f"{one.concurrency} in the baseline and {other.concurrency} in the candidate"
        reasons.append(f"latency was measured with different concurrency: {asked}")
    ours, theirs = one.scorers, other.scorers
    if others := sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]):
        reasons.append(f"{', '.join(others)} measures something different in the candidate: its scorer was changed")
    lost = [name for name in gone if rule_of(name, rules).stage is Stage.BLOCK and candidate.names]
    return [*reasons, f"the candidate does not measure {', '.join(lost)}"] if lost else reasons
