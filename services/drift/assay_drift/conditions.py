"""Conditions that do not depend on scores: silence, judge errors, lost events.

Pure; time is that of the samples.

Silence is not health: without this check a stopped judge would look like a judge without findings. Sampled answers that
were skipped because the budget was used up are not silence; they have their own alert.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log
from statistics import median
from typing import Any

from assay_drift.episodes import Episode, Hysteresis, Level, Transition, resolve
from assay_drift.series import HOURS, Calendar, dump_episode, load_episode
from assay_schema.alerts import AlertKind
from assay_schema.settings import DriftSettings

#: Days of hourly counts that define the usual count at this hour of the day.
USUAL_DAYS = 7
#: With fewer expected samples than this, there is no expectation.
LEAST_EXPECTED = 10
#: Probability below which so few answers count as silence, if they usually arrive at random. With 12 expected in six
#: hours, fewer than half happen by chance every few days: a plain limit of one half raised 90 false alerts a year for a
#: project that judges 50 answers a day. This limit raises one in ten years.
SILENCE_BY_CHANCE = 1e-5
#: Judged answers, and errors, needed to compute a share of errors.
LEAST_JUDGED, LEAST_ERRORS = 20, 5
#: A notice about lost events is repeated when their number has grown by this factor.
LOST_AGAIN = 10
#: Clean hourly evaluations until such an episode recovers; it resolves with the next.
CONDITION_HYSTERESIS = Hysteresis(clean_evaluations=1, cooldown_ms=0.0)
KINDS = (AlertKind.SILENCE, AlertKind.JUDGE_ERRORS, AlertKind.FAILURES)


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of a condition's check, with its numbers."""

    level: Level
    value: float
    limit: float
    n: int
    why: str = ""


@dataclass(slots=True)
class Project:
    """Hourly counts and the clock of one project.

    The clock is the time of the latest sample, and the wall clock at which that arrived.
    """

    first_ms: float = 0.0
    last_ms: float = 0.0
    wall_ms: float = 0.0
    #: By hour: questions asked; answers that the judge received; sampled and judged; sampled, but skipped for lack of
    #: budget.
    asked: dict[int, int] = field(default_factory=dict)
    answers: dict[int, int] = field(default_factory=dict)
    sampled: dict[int, int] = field(default_factory=dict)
    skipped: dict[int, int] = field(default_factory=dict)
    errors: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    #: Lost events that the latest notice of the episode counted.
    told_lost: int = 0
    evaluated_hour: int = 0
    episodes: dict[AlertKind, Episode] = field(default_factory=lambda: {kind: Episode() for kind in KINDS})

    def meet(self, at_ms: float, wall_ms: float) -> None:
        """Advance the clock to a sample."""
        self.first_ms = min(self.first_ms or at_ms, at_ms)
        if at_ms > self.last_ms:
            self.last_ms, self.wall_ms = at_ms, wall_ms

    def now(self, wall_ms: float) -> float:
        """Return the time of the samples now.

        While none arrive, it advances with the wall clock, also in a simulated stream.
        """
        return self.last_ms + max(0.0, wall_ms - self.wall_ms)

    def prune(self, hour: int) -> None:
        """Remove counts that are no longer needed."""
        oldest = hour - (USUAL_DAYS + 2) * HOURS
        for counts in (self.asked, self.answers, self.sampled, self.skipped, self.errors, self.failures):
            for each in [each for each in counts if each < oldest]:
                del counts[each]

    def silence(self, now_ms: float, settings: DriftSettings, calendar: Calendar) -> Finding:
        """Check for silence: fewer than half of the usual answers sampled over the last full hours."""
        hour, width = calendar.hour(now_ms), settings.silence_hours

        def drawn(end: int) -> int:
            return _sum(self.sampled, end - width, end) + _sum(self.skipped, end - width, end)

        value = drawn(hour)
        if now_ms - self.first_ms < max(2.0, settings.learning_days) * calendar.day_ms:
            return Finding("ok", value, 0.0, value)
        full_days = min(USUAL_DAYS, int((now_ms - self.first_ms) // calendar.day_ms))
        usual = [drawn(hour - HOURS * day) for day in range(1, full_days + 1)]
        expected = min(median(usual), *(usual[6:7] or usual[:1]))  # compare a Sunday with the previous Sunday as well
        few = value < settings.silence_ratio * expected and _tail(value, expected) < SILENCE_BY_CHANCE
        if expected < LEAST_EXPECTED or not few:
            return Finding("ok", value, expected, value)
        return Finding(
            "warn" if value else "critical", value, expected, value, self._why_silent(hour - width, hour, value)
        )

    def _why_silent(self, first: int, end: int, drawn: int) -> str:
        answers, asked = _sum(self.answers, first, end), _sum(self.asked, first, end)
        if answers > drawn:
            return f"{answers} answers arrived and {drawn} were sampled (judge.base_rate, judge.base_floor_per_day)"
        if asked > answers:
            return f"{asked} questions arrived and the judge received {answers} answers (run assay doctor to see if it is running)"
        return f"{asked} questions arrived"

    def judge_errors(self, now_ms: float, settings: DriftSettings, calendar: Calendar) -> Finding:
        """Check the share of judged answers in the last day that ended in a judge error."""
        hour = calendar.hour(now_ms) + 1
        judged, errors = _sum(self.sampled, hour - HOURS, hour), _sum(self.errors, hour - HOURS, hour)
        share = errors / judged if judged else 0.0
        too_many = judged >= LEAST_JUDGED and errors >= LEAST_ERRORS and share > settings.judge_error_ratio
        level: Level = "ok" if not too_many else "critical" if share > 0.5 else "warn"
        return Finding(level, share, settings.judge_error_ratio, judged)

    def lost(self, now_ms: float, calendar: Calendar) -> Finding:
        """Check the number of events lost in the last day."""
        hour = calendar.hour(now_ms) + 1
        count = _sum(self.failures, hour - HOURS, hour)
        return Finding("warn" if count else "ok", count, 0.0, count)

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "wall_ms": self.wall_ms,
            "asked": sorted(self.asked.items()),
            "answers": sorted(self.answers.items()),
            "sampled": sorted(self.sampled.items()),
            "skipped": sorted(self.skipped.items()),
            "errors": sorted(self.errors.items()),
            "failures": sorted(self.failures.items()),
            "told_lost": self.told_lost,
            "hour": self.evaluated_hour,
            "episodes": {kind.value: dump_episode(episode) for kind, episode in self.episodes.items()},
        }

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> "Project":
        """Load the state from JSON, also from versions that kept fewer counts."""
        return cls(
            found["first_ms"],
            found["last_ms"],
            found["wall_ms"],
            dict(found.get("asked", ())),
            dict(found.get("answers", ())),
            dict(found["sampled"]),
            dict(found.get("skipped", ())),
            dict(found["errors"]),
            dict(found["failures"]),
            found.get("told_lost", 0),
            found["hour"],
            {AlertKind(kind): load_episode(episode) for kind, episode in found["episodes"].items()},
        )


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a project."""

    project: Project
    kind: AlertKind

    @property
    def episode(self) -> Episode:
        """Episode of the condition."""
        return self.project.episodes[self.kind]

    def acknowledge(self, now_ms: float, _settings: DriftSettings, _calendar: Calendar) -> Transition | None:
        """Close the episode, and forget the lost events or errors that it counted."""
        transition = resolve(self.episode, now_ms, CONDITION_HYSTERESIS)
        if self.kind is AlertKind.FAILURES:
            self.project.failures.clear()
        elif self.kind is AlertKind.JUDGE_ERRORS:
            self.project.errors.clear()
        return transition


def _tail(count: int, expected: float) -> float:
    """Bound the probability of `count` or fewer if `expected` are usual (Chernoff bound for Poisson).

    `count` is below `expected`.
    """
    return exp(count - expected - (count * log(count / expected) if count else 0.0))


def _sum(counts: Mapping[int, int], first: int, end: int) -> int:
    return sum(counts.get(hour, 0) for hour in range(first, end))
