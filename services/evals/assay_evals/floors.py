"""Whether a run reaches the floors of its rules. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from assay_evals.metrics import below
from assay_evals.runs import Run
from assay_evals.verdicts import DEFAULT_RULES, Rule, Stage, Verdict


@dataclass(frozen=True)
class FloorCheck:
    """One metric beside its floor, as a comparison holds it: by its mean. What was not measured fails."""

    metric: str
    floor: float
    mean: float | None
    low: float | None
    high: float | None
    n: int
    stage: Stage
    verdict: Verdict

    @property
    def blocks(self) -> bool:
        """Whether the run fails for it."""
        return self.verdict is Verdict.FAIL and self.stage is Stage.BLOCK

    def __str__(self) -> str:
        if self.mean is None:
            return f"{self.metric}: not measured, and its floor is {self.floor:g}"
        side = "on the wrong side of" if self.verdict is Verdict.FAIL else "on the right side of"
        return f"{self.metric}: {self.mean:.3f} is {side} its floor of {self.floor:g}"


def floor_checks(run: Run, rules: Mapping[str, Rule]) -> list[FloorCheck]:
    """A check for each floor."""
    summaries, latency, found = run.summary(), run.latency(), []
    for metric, rule in {**DEFAULT_RULES, **rules}.items():
        if rule.floor is None:
            continue
        known = summaries.get(metric)
        mean = known.mean if known else latency.get(metric)
        sign = -1.0 if rule.lower_is_better else 1.0
        failed = mean is None or below(sign * mean, sign * rule.floor)
        low, high, n = (known.low, known.high, known.n) if known else (None, None, 0)
        verdict = Verdict.FAIL if failed else Verdict.PASS
        found.append(FloorCheck(metric, rule.floor, mean, low, high, n, rule.stage, verdict))
    return found
