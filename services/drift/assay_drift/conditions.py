"""What is wrong whatever the scores say: silence, judge errors, lost events. Pure; time is that of the samples.

Silence is not health: a judge that stopped would otherwise look like a judge that found nothing. An answer that was drawn and passed over
because the budget was used up is no silence: an alert of its own says that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log
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
#: How improbable so few answers must be where as many as usual come at random. Of 12 expected in six hours fewer than half come by chance
#: every few days: half alone told 90 silences a year of a project that judges 50 answers a day, this tells one in ten years.
SILENCE_BY_CHANCE = 1e-5
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
    why: str = ""


@dataclass(slots=True)
class Project:
    """Hourly counts of one project, and where its clock stands: the time of its latest sample, and the wall clock when it came."""

    first_ms: float = 0.0
    last_ms: float = 0.0
    wall_ms: float = 0.0
    #: Questions asked, answers the judge saw, and of these those drawn and judged, and those drawn that the budget did not reach for.
    asked: dict[int, int] = field(default_factory=dict)
    answers: dict[int, int] = field(default_factory=dict)
    sampled: dict[int, int] = field(default_factory=dict)
    skipped: dict[int, int] = field(default_factory=dict)
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
        for counts in (self.asked, self.answers, self.sampled, self.skipped, self.errors, self.failures):
            for each in [each for each in counts if each < oldest]:
                del counts[each]

    def silence(self, now_ms: float, settings: DriftSettings, calendar: Calendar) -> Finding:
        """Fewer answers drawn than half of what is usual at this time of day, over the last full hours."""
        hour, width = calendar.hour(now_ms), settings.silence_hours

        def drawn(end: int) -> int:
            return _sum(self.sampled, end - width, end) + _sum(self.skipped, end - width, end)

        value = drawn(hour)
        if now_ms - self.first_ms < max(2.0, settings.learning_days) * calendar.day_ms:
            return Finding("ok", value, 0.0, value)
        known = min(USUAL_DAYS, int((now_ms - self.first_ms) // calendar.day_ms))
        usual = [drawn(hour - HOURS * day) for day in range(1, known + 1)]
        expected = min(median(usual), *(usual[6:7] or usual[:1]))  # a Sunday is compared with the last Sunday too
        few = value < settings.silence_ratio * expected and _tail(value, expected) < SILENCE_BY_CHANCE
        if expected < LEAST_EXPECTED or not few:
            return Finding("ok", value, expected, value)
        return Finding(
            "warn" if value else "critical", value, expected, value, self._why_silent(hour - width, hour, value)
        )

    def _why_silent(self, first: int, end: int, drawn: int) -> str:
        answers, asked = _sum(self.answers, first, end), _sum(self.asked, first, end)
        if answers > drawn:
            return f"{answers} answers came and {drawn} were drawn (judge.base_rate, judge.base_floor_per_day)"
        if asked > answers:
            return f"{asked} questions came, and the judge saw {answers} answers (assay doctor says whether it runs)"
        return f"{asked} questions came"

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
            "asked": sorted(self.asked.items()),
            "answers": sorted(self.answers.items()),
            "sampled": sorted(self.sampled.items()),
            "skipped": sorted(self.skipped.items()),
            "errors": sorted(self.errors.items()),
            "failures": sorted(self.failures.items()),
            "hour": self.evaluated_hour,
            "episodes": {kind.value: dump_episode(episode) for kind, episode in self.episodes.items()},
        }

    @classmethod
    def load(cls, found: Mapping[str, Any]) -> "Project":
        """From JSON, also of an Assay that kept fewer counts."""
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
            found["hour"],
            {AlertKind(kind): load_episode(episode) for kind, episode in found["episodes"].items()},
        )


def _tail(count: int, expected: float) -> float:
    """A bound of the probability of no more than `count` where `expected` are, by Poisson's law (Chernoff); `count` is below it."""
    return exp(count - expected - (count * log(count / expected) if count else 0.0))


def _sum(counts: Mapping[int, int], first: int, end: int) -> int:
    return sum(counts.get(hour, 0) for hour in range(first, end))
