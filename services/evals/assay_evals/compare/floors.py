"""Check a run against the floors of its rules. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from assay_evals.compare.verdicts import DEFAULT_RULES, Rule, Stage, Verdict
from assay_evals.metrics.retrieval import below
from assay_evals.run.model import CaseResult, Run


@dataclass(frozen=True)
class FloorCheck:
    """Check of one metric against its floor, by its mean.

    A metric that was not measured fails. Answers without a score count as the worst: if a floor is reached only without
    them, the result is inconclusive.
    """

    metric: str
    floor: float
    mean: float | None
    low: float | None
    high: float | None
    n: int
    stage: Stage
    verdict: Verdict
    #: Answers that should have this score and got none.
    unscored: int = 0

    @property
    def blocks(self) -> bool:
        """True if the run fails because of it."""
        return self.verdict is Verdict.FAIL and self.stage is Stage.BLOCK

    @property
    def undecided(self) -> bool:
        """True if the run cannot pass because of it."""
        return self.verdict is Verdict.INCONCLUSIVE and self.stage is Stage.BLOCK

    def __str__(self) -> str:
        if self.mean is None:
            return f"{self.metric}: not measured, but its floor is {self.floor:g}"
        if self.verdict is Verdict.INCONCLUSIVE:
            return f"{self.metric}: {self.mean:.3f} of {self.n:,}, its floor is {self.floor:g}; {without_score(self.unscored)}"
        side = "misses" if self.verdict is Verdict.FAIL else "meets"
        return f"{self.metric}: {self.mean:.3f} {side} its floor of {self.floor:g}"


def unscored(results: Iterable[CaseResult], metric: str) -> int:
    """Return the number of answers that should have a score and have none.

    An answer to which the scorer does not apply lacks the metric altogether.
    """
    return sum(metric in each.metrics and each.metrics[metric] is None for each in results)


def without_score(answers: int) -> str:
    """Describe why answers have no score."""
    return f"{answers:,} answer(s) have no score: the judge's budget was used up, or its API failed"


def floor_checks(run: Run, rules: Mapping[str, Rule], rubrics: Collection[str] = ()) -> list[FloorCheck]:
    """Return a check for each floor.

    `rubrics`: metrics that a model gives, so every answer should have them.
    """
    summaries, latency, found = run.summary(), run.latency(), []
    for metric, rule in {**DEFAULT_RULES, **rules}.items():
        if rule.floor is None:
            continue
        summary = summaries.get(metric)
        mean = summary.mean if summary else latency.get(metric)
        sign = -1.0 if rule.lower_is_better else 1.0
        failed = mean is None or below(sign * mean, sign * rule.floor)
        low, high, n = (summary.low, summary.high, summary.n) if summary else (None, None, 0)
        without = unscored(run.results, metric) if metric in rubrics else 0
        verdict = Verdict.FAIL if failed else Verdict.PASS
        if mean is not None and without and not failed:
            worst = (mean * n + without * float(rule.lower_is_better)) / (n + without)
            verdict = Verdict.INCONCLUSIVE if below(sign * worst, sign * rule.floor) else Verdict.PASS
        found.append(FloorCheck(metric, rule.floor, mean, low, high, n, rule.stage, verdict, without))
    return found
