"""What is wrong whatever the scores say: silence, judge errors, lost events. Pure; time is that of the samples.

Silence is not health: a judge that stopped would otherwise look like a judge that found nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from assay_drift.episodes import Episode, Level, Patience
from assay_drift.series import HOURS, Calendar, dump_episode, load_episode
from assay_schema.alerts import AlertKind
from assay_schema.settings import DriftSettings

#: Days of hourly counts that say what is usual at this hour of the day.
USUAL_DAYS = 7
#: Fewer expected samples than this are no expectation.
LEAST_EXPECTED = 10
#: Judged answers, and errors, that a share of errors needs.
LEAST_JUDGED, LEAST_ERRORS = 20, 5
#: Clean evaluations, one an hour, until such an episode recovers; it resolves with the next.
CONDITION_PATIENCE = Patience(clean_evaluations=1, cooldown_ms=0.0)
KINDS = (AlertKind.SILENCE, AlertKind.JUDGE_ERRORS, AlertKind.FAILURES)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a condition says now, with its numbers."""

    level: Level
    value: float
    limit: float
    n: int


@dataclass(slots=True)
class Project:
    """Hourly counts of one project, and where its clock stands: the time of its latest sample, and the wall clock when it came."""

    first_ms: float = 0.0
    last_ms: float = 0.0
    wall_ms: float = 0.0
    sampled: dict[int, int] = field(default_factory=dict)
    errors: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    evaluated_hour: int = 0
    episodes: dict[AlertKind, Episode] = field(default_factory=lambda: {kind: Episode() for kind in KINDS})

    def meet(self, at_ms: float, wall_ms: float) -> None:
        """Let the clock follow a sample."""
        self.first_ms = min(self.first_ms or at_ms, at_ms)
        if at_ms > self.last_ms:
            self.last_ms, self.wall_ms = at_ms, wall_ms

    def now(self, wall_ms: float) -> float:
        """The time of the samples now: while none come, it goes on as the wall clock does. So a simulated stream works too."""
        return self.last_ms + max(0.0, wall_ms - self.wall_ms)

    def prune(self, hour: int) -> None:
        """Forget counts of which nothing depends any more."""
        oldest = hour - (USUAL_DAYS + 2) * HOURS
        for counts in (self.sampled, self.errors, self.failures):
            for each in [each for each in counts if each < oldest]:
                del counts[each]

    def silence(self, now_ms: float, settings: DriftSettings, calendar: Calendar) -> Finding:
        """Fewer samples than half of what is usual at this time of day, over the last full hours."""
        hour, width = calendar.hour(now_ms), settings.silence_hours
        value = _sum(self.sampled, hour - width, hour)
        if now_ms - self.first_ms < max(2.0, settings.learning_days) * calendar.day_ms:
            return Finding("ok", value, 0.0, value)
        known = min(USUAL_DAYS, int((now_ms - self.first_ms) // calendar.day_ms))
        usual = [_sum(self.sampled, hour - width - HOURS * day, hour - HOURS * day) for day in range(1, known + 1)]
        expected = min(median(usual), *(usual[6:7] or usual[:1]))  # a Sunday is compared with the last Sunday too
        if expected < LEAST_EXPECTED or value >= settings.silence_ratio * expected:
            return Finding("ok", value, expected, value)
        return Finding("warn" if value else "critical", value, expected, value)

    def judge_errors(self, now_ms: float, settings: DriftSettings, calendar: Calendar) -> Finding:
        """The share of judged answers in the last day that ended in an error of the judge."""
        hour = calendar.hour(now_ms) + 1
        judged, errors = _sum(self.sampled, hour - HOURS, hour), _sum(self.errors, hour - HOURS, hour)
        share = errors / judged if judged else 0.0
        too_many = judged >= LEAST_JUDGED and errors >= LEAST_ERRORS and share > settings.judge_error_ratio
        level: Level = "ok" if not too_many else "critical" if share > 0.5 else "warn"
        return Finding(level, share, settings.judge_error_ratio, judged)

    def lost(self, now_ms: float, calendar: Calendar) -> Finding:
        """Events lost in the last day."""
        hour = calendar.hour(now_ms) + 1
        count = _sum(self.failures, hour - HOURS, hour)
        return Finding("warn" if count else "ok", count, 0.0, count)

    def dump(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "wall_ms": self.wall_ms,
            "sampled": sorted(self.sampled.items()),
            "errors": sorted(self.errors.items()),
            "failures": sorted(self.failures.items()),
            "hour": self.evaluated_hour,
            "episodes": {kind.value: dump_episode(episode) for kind, episode in self.episodes.items()},
        }

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> "Project":
        """From JSON."""
        return cls(
            found["first_ms"],
            found["last_ms"],
            found["wall_ms"],
            dict(found["sampled"]),
            dict(found["errors"]),
            dict(found["failures"]),
            found["hour"],
            {AlertKind(kind): load_episode(episode) for kind, episode in found["episodes"].items()},
        )


def _sum(counts: Mapping[int, int], first: int, end: int) -> int:
    return sum(counts.get(hour, 0) for hour in range(first, end))
