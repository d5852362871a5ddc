"""Whether a run reaches the floors of its rules. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from assay_evals.metrics import below
from assay_evals.runs import CaseResult, Run
from assay_evals.verdicts import DEFAULT_RULES, Rule, Stage, Verdict


@dataclass(frozen=True)
class FloorCheck:
    """One metric beside its floor, as a comparison holds it: by its mean. What was not measured fails. Answers that got no score
    count as the worst: where a floor is reached only without them, nobody can tell.
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
        """Whether the run fails for it."""
        return self.verdict is Verdict.FAIL and self.stage is Stage.BLOCK

    @property
    def undecided(self) -> bool:
        """Whether the run cannot pass for it."""
        return self.verdict is Verdict.INCONCLUSIVE and self.stage is Stage.BLOCK

    def __str__(self) -> str:
        if self.mean is None:
            return f"{self.metric}: not measured, and its floor is {self.floor:g}"
        if self.verdict is Verdict.INCONCLUSIVE:
            return f"{self.metric}: {self.mean:.3f} of {self.n:,}, and its floor is {self.floor:g}; {without_score(self.unscored)}"
        side = "on the wrong side of" if self.verdict is Verdict.FAIL else "on the right side of"
        return f"{self.metric}: {self.mean:.3f} is {side} its floor of {self.floor:g}"


def unscored(results: Iterable[CaseResult], metric: str) -> int:
    """Answers that should have a score and have none. One that the scorer does not apply to has no such metric at all."""
    return sum(metric in each.metrics and each.metrics[metric] is None for each in results)


def without_score(answers: int) -> str:
    """Why answers have no score, in words."""
    return f"{answers:,} answer(s) got no score: the judge's budget did not reach, or its API failed"


def floor_checks(run: Run, rules: Mapping[str, Rule], rubrics: Collection[str] = ()) -> list[FloorCheck]:
    """A check for each floor. `rubrics`: the metrics of which every answer should have a score, since a model was to give it."""
    summaries, latency, found = run.summary(), run.latency(), []
    for metric, rule in {**DEFAULT_RULES, **rules}.items():
        if rule.floor is None:
            continue
        known = summaries.get(metric)
        mean = known.mean if known else latency.get(metric)
        sign = -1.0 if rule.lower_is_better else 1.0
        failed = mean is None or below(sign * mean, sign * rule.floor)
        low, high, n = (known.low, known.high, known.n) if known else (None, None, 0)
        without = unscored(run.results, metric) if metric in rubrics else 0
        verdict = Verdict.FAIL if failed else Verdict.PASS
        if mean is not None and without and not failed:
            worst = (mean * n + without * float(rule.lower_is_better)) / (n + without)
            verdict = Verdict.INCONCLUSIVE if below(sign * worst, sign * rule.floor) else Verdict.PASS
        found.append(FloorCheck(metric, rule.floor, mean, low, high, n, rule.stage, verdict, without))
    return found
