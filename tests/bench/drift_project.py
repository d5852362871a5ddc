"""All series of a project through the service's own monitor, while nothing changes: how many episodes open in a year?

Five metrics (four of them right or wrong), the shares of answers without a claim and without passages, and four checks, at the
default settings.
Answers come at random; weekends are 3 % worse, and every day differs by 1 %.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import numpy as np

from assay_drift.embedding import HASHED_DIMENSIONS, hashed
from assay_drift.monitor import Monitor
from assay_schema.alerts import AlertState
from assay_schema.scores import Metric, Score, ScoreStatus
from assay_schema.settings import DriftSettings

START_MS, DAY_MS = 1_767_225_600_000, 86_400_000
FINGERPRINT = "ab" * 8
#: Shares of answers that are right by these metrics.
RIGHT = {Metric.CITATION_PRECISION: 0.85, Metric.CITATION_RECALL: 0.7, Metric.ANSWER_RELEVANCY: 0.9}


@dataclass(frozen=True)
class Project:
    """Drawn answers a day, and shares of answers: without a claim, without passages, and those that fail the last of four checks."""

    name: str
    per_day: int = 60
    abstained: float = 0.05
    no_context: float = 0.02
    failed: float = 0.03
    #: Standard deviation by day of the share without a claim.
    wanders: float = 0.0


PROJECTS = (
    Project("as usual"),
    Project("seldom", abstained=0.005, no_context=0.001, failed=0.001),
    Project("often", abstained=0.3, no_context=0.1, failed=0.1),
    Project("different every day", wanders=0.02),
)


def episodes(project: Project, years: int, seed: int) -> dict[str, int]:
    """How many episodes open, by metric or kind of alert."""
    random = np.random.default_rng(seed)
    monitor = Monitor(DriftSettings(), embed=(f"hashed-{HASHED_DIMENSIONS}", hashed))
    found: dict[str, int] = {}
    for day in range(365 * years):
        worse = (0.97 if day % 7 >= 5 else 1.0) * (1 + random.normal(0, 0.01))
        abstained = float(np.clip(project.abstained + random.normal(0, project.wanders), 0, 1))
        for at in np.sort(random.uniform(0, DAY_MS, random.poisson(project.per_day))).tolist():
            score = _score(project, START_MS + day * DAY_MS + at, worse, abstained, random)
            monitor.observe_score(score, score.event_time.timestamp() * 1000)
        for alert in monitor.take_alerts():
            if alert.previous is AlertState.OK:
                name = alert.metric or alert.kind.value
                found[name] = found.get(name, 0) + 1
    return found


def _score(project: Project, at_ms: float, worse: float, abstained: float, random: np.random.Generator) -> Score:
    chance = random.random()
    status = (
        ScoreStatus.ABSTAINED
        if chance < abstained
        else ScoreStatus.NO_CONTEXT
        if chance < abstained + project.no_context
        else ScoreStatus.SCORED
    )
    metrics = {}
    if status is ScoreStatus.SCORED:
        mean = min(0.98, 0.85 * worse)
        strength = 0.85 * 0.15 / 0.2**2 - 1
        faithfulness = random.beta(mean * strength, (1 - mean) * strength)
        metrics = {name: float(random.random() < share * worse) for name, share in RIGHT.items()}
        metrics |= {Metric.FAITHFULNESS: faithfulness, Metric.HALLUCINATION_RATE: 1 - faithfulness}
    checks = {f"check_{place}": bool(random.random() >= project.failed * place / 3) for place in range(4)}
    return Score.model_construct(
        event_id=UUID(int=0),
        project="acme",
        fingerprint=FINGERPRINT,
        event_time=datetime.fromtimestamp(at_ms / 1000, UTC),
        status=status,
        base=True,
        metrics=metrics,
        checks=checks,
    )
