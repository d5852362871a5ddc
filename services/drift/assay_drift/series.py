"""One series of samples in [0, 1]: its baseline, its detector, its episode.

Pure; time is that of the samples.

`warn` means a significant drop beyond the tolerance. `critical` means that the mean since the change is also below 0.9
of the baseline, or less than one standard error above that. The plain rule (the mean of a day is significantly more
than 10 % below the rolling or the fixed baseline) is a separate source of alerts.
"""

from dataclasses import dataclass, field, replace
from math import log, sqrt
from typing import Any

from assay_drift.baseline import KEPT_DAYS, Baseline, Total, baseline_of, total_of
from assay_drift.detector import Detector
from assay_drift.episodes import Episode, Hysteresis, Level, Reading, Transition, resolve, step
from assay_drift.season import SLOT_HOURS, Means, Season, season_of, slot_of
from assay_schema.alerts import AlertState
from assay_schema.settings import DriftSettings

HOURS = 24
#: Standard errors by which a day must be below the line of the plain rule. Without them, a year with 150 right-or-wrong
#: answers a day has 2 to 30 such days although nothing changed.
RULE_ERRORS = 3
#: Odds in favour of the baseline, against a level below the tolerance, needed to end an episode.
RECOVERY_ODDS = 100


@dataclass(frozen=True, slots=True)
class Calendar:
    """Length of a day, in milliseconds. An hour is 1/24 of it."""

    day_ms: float

    @classmethod
    def of(cls, settings: DriftSettings) -> "Calendar":
        """Return the calendar of the settings."""
        return cls(settings.day_minutes * 60_000)

    def day(self, at_ms: float) -> int:
        """Return the number of the day of a time."""
        return int(at_ms // self.day_ms)

    def hour(self, at_ms: float) -> int:
        """Return the number of the hour of a time."""
        return int(at_ms * HOURS // self.day_ms)

    def hours(self, hours: float) -> float:
        """Return the milliseconds of a number of hours."""
        return hours * self.day_ms / HOURS


@dataclass(slots=True)
class Series:
    """One metric of one project by one judge or embedding model. Samples are oriented: higher is better."""

    first_ms: float = 0.0
    last_ms: float = 0.0
    days: dict[int, Total] = field(default_factory=dict)
    hours: dict[int, Total] = field(default_factory=dict)
    #: Days excluded from the baseline, because an episode was open.
    dirty: set[int] = field(default_factory=set)
    baseline: Baseline | None = None
    #: Baseline of the previous judge's series: a rough reference until this series has its own.
    former: Baseline | None = None
    #: Clean days by slot of the week, and the season computed from them.
    slots: dict[int, Means] = field(default_factory=dict)
    season: Season = field(default_factory=Season)
    detector: Detector = field(default_factory=Detector)
    episode: Episode = field(default_factory=Episode)
    #: Samples since the judge changed (without a baseline), or since the recovery began; without the season.
    since_change: Total = field(default_factory=Total)
    evaluated_hour: int = 0

    @classmethod
    def after(cls, former: "Series") -> "Series":
        """Start the series of a new judge.

        It learns its own baseline, and uses the previous judge's season until it has its own.
        """
        return cls(former=former.reference, season=replace(former.season, days=0))

    def observe(self, x: float, at_ms: float, settings: DriftSettings, calendar: Calendar) -> None:
        """Count a sample. A late sample counts on its own day, and as evidence now."""
        self.first_ms = min(self.first_ms or at_ms, at_ms)
        day, hour = calendar.day(at_ms), calendar.hour(at_ms)
        if at_ms > self.last_ms:
            self._turn(calendar.day(self.last_ms), day, settings)
            self.last_ms = at_ms
        self.days.setdefault(day, Total()).add(x)
        self.hours.setdefault(hour, Total()).add(x)
        if self.episode.open:
            self.dirty.add(day)
        usual = min(1.0, max(0.0, x - self.season.offset(hour)))
        if (self.former and not self.baseline) or self.episode.state is AlertState.RECOVERING:
            self.since_change.add(usual)
        if self.baseline is None:
            self._learn(settings, calendar)
            return
        floor = self.baseline.floor(settings.tolerance, self.season.design_effect)
        self.detector.update(usual, at_ms, floor, self.season.effect_at(self._volume(day)))

    def _volume(self, day: int) -> float:
        """Return the samples of today or yesterday, whichever has more, relative to the usual number."""
        if self.baseline is None:
            return 1.0
        busiest = max((self.days[each].n for each in (day - 1, day) if each in self.days), default=0)
        return busiest / max(1.0, self.baseline.per_day)

    def _turn(self, before: int, day: int, settings: DriftSettings) -> None:
        """End a day: remove old days, and extend a baseline that is not full by the clean days."""
        if day <= before:
            return
        self._learn_week(before, settings)
        self.days = {each: total for each, total in self.days.items() if each > day - KEPT_DAYS}
        self.hours = {each: total for each, total in self.hours.items() if each > (day - 3) * HOURS}
        self.dirty = {each for each in self.dirty if each > day - KEPT_DAYS}
        if self.baseline and not self.baseline.full and self._calm():
            first = self.baseline.first_day
            clean = {each: total for each, total in self.days.items() if each >= first and each not in self.dirty}
            self.baseline = baseline_of(clean, settings.baseline_days) or self.baseline

    def _calm(self) -> bool:
        return not self.episode.open and self.detector.evidence < 1_000

    def _learn_week(self, before: int, settings: DriftSettings) -> None:
        """Recompute the weekly slots and the design effect after the day `before`, if it was clean."""
        if before in self.dirty or self.season.days >= settings.baseline_days or not self._calm():
            return
        for first in range(before * HOURS, (before + 1) * HOURS, SLOT_HOURS):
            period = sum((self.hours.get(hour, Total()) for hour in range(first, first + SLOT_HOURS)), Total())
            self.slots.setdefault(slot_of(first), Means()).add(period)
        season = season_of({d: t for d, t in self.days.items() if d not in self.dirty}, self.slots)
        self.season = season if season.offsets else replace(self.season, days=season.days)

    def _learn(self, settings: DriftSettings, calendar: Calendar) -> None:
        if self.episode.open or self.last_ms - self.first_ms < settings.learning_days * calendar.day_ms:
            return
        first = calendar.day(self.first_ms)
        clean = {day: total for day, total in self.days.items() if day >= first and day not in self.dirty}
        baseline = baseline_of(clean, settings.baseline_days)
        if baseline and baseline.n >= settings.learning_samples:
            self.baseline = baseline

    def evidence(self, settings: DriftSettings) -> float:
        """Return the evidence of a drop. A single series would alert at 1, once per run length."""
        if self.baseline is None:
            return 0.0
        return self.detector.evidence / max(1.0, self.baseline.per_day * settings.run_length_days)

    def level(self, needed: float, settings: DriftSettings, calendar: Calendar, *, rule: bool = True) -> Level:
        """Return the level by evidence, which alerts at `needed`, and with `rule` by the plain rule."""
        if self.baseline is None:
            return "warn" if self._below_former(settings, calendar) else "ok"
        if self.evidence(settings) >= needed:
            mean = self.detector.mean
            # One standard error of grace. Otherwise a loss of exactly a tenth would stay undecided for weeks.
            grace = self.baseline.deviation * sqrt(self.season.design_effect / max(1.0, self.detector.n))
            low = mean is not None and mean - grace < settings.critical_ratio * self.baseline.mean
            return "critical" if low and self.detector.n >= settings.critical_samples else "warn"
        if rule and settings.rule != "off" and self.rule_broken(settings, calendar):
            return settings.rule
        return "ok"

    @property
    def reference(self) -> Baseline | None:
        """The baseline, or the previous judge's while it is learned."""
        return self.baseline or self.former

    def _below_former(self, settings: DriftSettings, calendar: Calendar) -> bool:
        """True if the series is significantly below the previous judge's baseline, by more than `rule_drop`.

        While learning, it checks the last day and all samples since the judge changed.
        """
        if self.former is None:
            return False
        windows = ((self.window(HOURS, calendar), self._offset(HOURS, calendar)), (self.since_change, 0.0))
        line, effect = (1 - settings.rule_drop) * self.former.mean, self.season.design_effect
        return any(
            total.n >= settings.rule_samples and _highest(total, self.former, effect) - offset < line
            for total, offset in windows
        )

    def window(self, hours: int, calendar: Calendar) -> Total:
        """Return the samples of the last hours, including the current one."""
        now = calendar.hour(self.last_ms)
        return sum((total for hour, total in self.hours.items() if hour > now - hours), Total())

    def _offset(self, hours: int, calendar: Calendar) -> float:
        """Return the usual difference of the last hours' mean from the weekly mean."""
        now, total = calendar.hour(self.last_ms), self.window(hours, calendar)
        usual = sum(each.n * self.season.offset(hour) for hour, each in self.hours.items() if hour > now - hours)
        return usual / total.n if total.n else 0.0

    def rule_broken(self, settings: DriftSettings, calendar: Calendar) -> bool:
        """True if the mean of the window breaks the plain rule.

        That is, it is significantly more than `rule_drop` below the mean of the last 30 days or below the baseline.
        """
        recent = self.window(settings.rule_hours, calendar)
        if recent.n < settings.rule_samples or self.baseline is None:
            return False
        today = calendar.day(self.last_ms)
        rolling = total_of(self.days, today - settings.baseline_days, today)
        against = max(rolling.mean, self.baseline.mean)
        highest = _highest(recent, self.baseline, self.season.effect_at(self._volume(today)))
        return highest - self._offset(settings.rule_hours, calendar) < (1 - settings.rule_drop) * against

    def evaluate(
        self, now_ms: float, needed: float, settings: DriftSettings, calendar: Calendar, *, level: Level | None = None
    ) -> Transition | None:
        """Take a reading and advance the episode.

        `level` replaces the level by evidence (because of a cap or an effect size).
        """
        if (reference := self.reference) is None:
            return None
        hour = calendar.hour(now_ms)
        counts, self.evaluated_hour = hour > self.evaluated_hour, max(hour, self.evaluated_hour)
        current = self.level(needed, settings, calendar, rule=counts) if level is None else level
        if not counts and current in ("ok", self.episode.worst.value if self.episode.open else "ok"):
            return None  # nothing new, as after most samples
        recent = self.window(HOURS, calendar)
        reading = Reading(
            now_ms,
            current,
            clean=bool(recent.n) and self._clean(recent, reference, settings, calendar),
            counts=counts and bool(recent.n),
            recovered=self._recovered(settings),
        )
        before = self.episode.state
        transition = step(self.episode, reading, hysteresis(settings, calendar))
        if transition and transition.state is AlertState.RECOVERING:
            self.since_change = Total()
        if transition and transition.state is AlertState.RESOLVED and before is AlertState.RECOVERING:
            self.detector = Detector()
        return transition

    def _clean(self, recent: Total, reference: Baseline, settings: DriftSettings, calendar: Calendar) -> bool:
        """True if a day is clean, given its size: closer to the baseline than to the tolerated minimum.

        For a recovering episode it is enough to be above the tolerated minimum.
        """
        floor = reference.floor(settings.tolerance, self.season.design_effect)
        error = reference.deviation * sqrt(self.season.effect_at(self._volume(calendar.day(self.last_ms))) / recent.n)
        mean = recent.mean - self._offset(HOURS, calendar)
        if self.episode.state is AlertState.RECOVERING:
            return mean + 1.64 * error >= floor
        return mean + error >= (reference.mean + floor) / 2

    def _recovered(self, settings: DriftSettings) -> bool:
        """True if the evidence shows that the drop is over.

        The samples since the recovery began must be `RECOVERY_ODDS` times likelier at the baseline than at a level as
        far below the tolerated minimum as the baseline is above it. A level that stays below is therefore never taken
        for a recovery, however often this is checked.
        """
        after, base = self.since_change, self.reference
        if base is None or after.n < settings.critical_samples:
            return False
        floor = base.floor(settings.tolerance, self.season.design_effect)
        # A share without a single miss has no variance, but gets one with the first miss.
        variance = base.deviation**2 + max(0.0, floor * (1 - floor) - base.mean * (1 - base.mean))
        evidence = 2 * (base.mean - floor) * (after.total - after.n * floor)
        return after.mean >= floor and evidence >= log(RECOVERY_ODDS) * variance * self.season.design_effect

    def acknowledge(self, now_ms: float, settings: DriftSettings, calendar: Calendar) -> Transition | None:
        """Accept the current level: close the episode and learn a baseline from the samples since then."""
        since = calendar.day(max(self.detector.since_ms, self.first_ms))
        fresh = {day: total for day, total in self.days.items() if day > since}
        baseline = baseline_of(fresh, settings.baseline_days)
        transition = resolve(self.episode, now_ms, hysteresis(settings, calendar))
        self.episode.cool_until_ms = 0.0
        self.dirty.clear()
        self.baseline = baseline if baseline and baseline.n >= settings.learning_samples else None
        self.former = None
        if self.baseline is None:  # learn from scratch, from the samples after the change
            self.first_ms = now_ms
        self.days = fresh
        self.slots = {}
        self.season = replace(self.season, days=0)  # keep the weekly pattern until it is learned again
        self.detector = Detector()
        self.since_change = Total()
        return transition

    def continued(self) -> "Series":
        """Return a series that continues this one, with its own episode."""
        copy = Series.load(self.dump())
        copy.episode, copy.since_change = Episode(), Total()
        return copy

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "first_ms": self.first_ms,
            "last_ms": self.last_ms,
            "days": [[day, each.n, each.total, each.squares] for day, each in sorted(self.days.items())],
            "hours": [[hour, each.n, each.total, each.squares] for hour, each in sorted(self.hours.items())],
            "dirty": sorted(self.dirty),
            "baseline": dump_baseline(self.baseline),
            "former": dump_baseline(self.former),
            "detector": self.detector.dump(),
            "episode": dump_episode(self.episode),
            "recovery": [self.since_change.n, self.since_change.total, self.since_change.squares],
            "hour": self.evaluated_hour,
            "slots": [
                [slot, each.periods, each.n, each.total, each.squares] for slot, each in sorted(self.slots.items())
            ],
            "season": [self.season.offsets, self.season.design_effect, self.season.days],
        }

    @classmethod
    def load(cls, found: dict[str, Any]) -> "Series":
        """Load the state from JSON."""
        offsets, *season = found.get("season", [(), 1.0, 0])  # absent in older states
        return cls(
            found["first_ms"],
            found["last_ms"],
            {day: Total(*rest) for day, *rest in found["days"]},
            {hour: Total(*rest) for hour, *rest in found["hours"]},
            set(found["dirty"]),
            Baseline(*found["baseline"]) if found["baseline"] else None,
            Baseline(*found["former"]) if found.get("former") else None,
            {slot: Means(*rest) for slot, *rest in found.get("slots", [])},
            Season(tuple(offsets), *season),
            Detector.load(found["detector"]),
            load_episode(found["episode"]),
            Total(*found["recovery"]),
            found["hour"],
        )


def _highest(recent: Total, reference: Baseline, design_effect: float) -> float:
    """Return the upper confidence bound of a mean.

    On a bad day, right-or-wrong answers vary more than the reference does, so the greater deviation counts. Otherwise a
    year of long sessions would have days that are worse by chance.
    """
    return recent.mean + RULE_ERRORS * max(reference.deviation, recent.deviation) * sqrt(design_effect / recent.n)


def dump_baseline(base: Baseline | None) -> list[Any] | None:
    """Return a baseline as JSON."""
    if base is None:
        return None
    return [base.mean, base.deviation, base.n, base.per_day, base.first_day, base.last_day, base.full]


def hysteresis(settings: DriftSettings, calendar: Calendar) -> Hysteresis:
    """Return the delays of drift episodes."""
    return Hysteresis(settings.clean_evaluations, calendar.hours(settings.cooldown_hours))


def dump_episode(episode: Episode) -> list[Any]:
    """Return an episode as JSON."""
    return [
        episode.state, episode.number, episode.sequence, episode.opened_ms, episode.clean, episode.cool_until_ms, episode.worst,
        episode.counted_ms,
    ]  # fmt: skip


def load_episode(found: list[Any]) -> Episode:
    """Load an episode from JSON."""
    state, number, sequence, opened_ms, clean, cool_until_ms, worst, *counted_ms = found  # absent in older states
    return Episode(AlertState(state), number, sequence, opened_ms, clean, cool_until_ms, AlertState(worst), *counted_ms)
