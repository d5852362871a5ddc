"""All that the drift service knows of one shard: samples in, transitions out. Pure: no clock, no network; state in and out as JSON fields.

The same samples in the same order make the same transitions with the same ids, which is what the atomic step in Redis relies on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import orjson

from assay_drift.baseline import Total
from assay_drift.conditions import CONDITION_PATIENCE, Finding, Project
from assay_drift.detector import Detector
from assay_drift.discoveries import needed
from assay_drift.embedding import Embed, embedder
from assay_drift.episodes import Episode, Level, Patience, Reading, Transition, resolve, step
from assay_drift.queries import Queries
from assay_drift.retrieval import Scaled, raw_metrics
from assay_drift.series import HOURS, Calendar, Series, dump_episode, load_episode
from assay_drift.wording import Numbers, Subject, alert, alert_id
from assay_schema.alerts import ALL_PROJECTS, Alert, AlertKind, AlertState
from assay_schema.scores import Score, ScoreStatus, is_lower_better, is_of_answers, of_answers
from assay_schema.settings import DriftSettings

SCORE, RETRIEVAL, QUERIES, DAY, PROJECT, SYSTEM = "score", "retrieval", "queries", "day", "project", "system"
#: A lag is over after clean looks in a row, a minute apart: what moves around its limit is one episode.
_SYSTEM_EVERY_MS = 60_000.0
_SYSTEM_PATIENCE = Patience(clean_evaluations=5, cooldown_ms=0.0)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the service needs of a retrieval or an answer."""

    event_id: str
    project: str
    at_ms: float
    query: str | None
    scores: Sequence[float] = ()
    embedding_model: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What only the outside knows at a tick: unread entries by stream, and the watermark's age in minutes (None: nothing stored yet)."""

    lags: Mapping[str, int] = field(default_factory=dict)
    watermark_minutes: float | None = None


class Monitor:
    """State of one shard. Mutable: after a failed commit it is thrown away and read anew."""

    def __init__(
        self,
        settings: DriftSettings,
        fields: Mapping[str, bytes] | None = None,
        *,
        calibrated: Callable[[str, str, str], bool] = lambda project, fingerprint, metric: False,  # noqa: ARG005
        embed: tuple[str, Embed] | None = None,
        shard: int = 0,
        shards: int = 1,
    ) -> None:
        self._settings, self._calendar = settings, Calendar.of(settings)
        self._no_rule = settings.model_copy(update={"rule": "off"})
        self._calibrated, self._embed, self._shard, self._shards = calibrated, embed or embedder(), shard, shards
        self.scores: dict[str, Series] = {}
        self.retrieval: dict[str, Scaled] = {}
        self.queries: dict[str, Queries] = {}
        self.projects: dict[str, Project] = {}
        self.system: dict[str, Episode] = {}
        self.alerts: list[Alert] = []
        self._touched: set[str] = set()
        self._known: set[str] = set(fields or ())
        self._load(fields or {})

    def _load(self, fields: Mapping[str, bytes]) -> None:
        days: dict[str, dict[int, Any]] = {}
        for name, data in fields.items():
            kind, _, rest = name.partition("/")
            if kind == DAY:
                key, _, day = rest.rpartition("/")
                days.setdefault(key, {})[int(day)] = orjson.loads(data)
        for name, data in fields.items():
            kind, _, rest = name.partition("/")
            if kind == SCORE:
                self.scores[rest] = Series.load(orjson.loads(data))
            elif kind == RETRIEVAL:
                self.retrieval[rest] = Scaled.load(orjson.loads(data))
            elif kind == QUERIES:
                self.queries[rest] = Queries.load(orjson.loads(data), days.get(rest, {}))
            elif kind == PROJECT:
                self.projects[rest] = Project.load(orjson.loads(data))
            elif kind == SYSTEM:
                self.system = {key: load_episode(each) for key, each in orjson.loads(data).items()}

    def changes(self) -> dict[str, bytes | None]:
        """Fields to write since the state was read or last asked for; None for one to delete."""
        made: dict[str, bytes | None] = {}
        for name in sorted(self._touched):
            kind, _, rest = name.partition("/")
            made[name] = orjson.dumps(self._dump(kind, rest))
            if kind == QUERIES:
                for stale in [each for each in self._known if self._is_stale_day(each, rest)]:
                    made[stale] = None
        self._known = (self._known | made.keys()) - {name for name, data in made.items() if data is None}
        self._touched.clear()
        return made

    def _dump(self, kind: str, rest: str) -> Any:
        if kind == DAY:
            key, _, day = rest.rpartition("/")
            return self.queries[key].dump_day(int(day))
        if kind == SYSTEM:
            return {key: dump_episode(each) for key, each in self.system.items()}
        kept: Any = {
            SCORE: self.scores, RETRIEVAL: self.retrieval, QUERIES: self.queries, PROJECT: self.projects,
        }[kind]  # fmt: skip
        return kept[rest].dump()

    def _is_stale_day(self, name: str, queries: str) -> bool:
        kind, _, rest = name.partition("/")
        key, _, day = rest.rpartition("/")
        return kind == DAY and key == queries and int(day) not in self.queries[queries].days

    def evidence(self) -> dict[tuple[str, str], float]:
        """The evidence by project and metric, as a fraction of what alerts; of several series the greatest."""
        found: dict[tuple[str, str], float] = {}
        series = [*self.scores.items(), *((key, scaled.series) for key, scaled in self.retrieval.items())]
        for key, each in series:
            project, metric, _ = key.split("/", 2)
            found[project, metric] = max(self.share(each), found.get((project, metric), 0.0))
        return found

    def share(self, series: Series) -> float:
        """A series' evidence as a share of what raises an alert."""
        return series.evidence(self._settings) / self._needed(series)

    def take_alerts(self) -> list[Alert]:
        """Alerts since the last call."""
        found, self.alerts = self.alerts, []
        return found

    # --- samples

    def observe_score(self, score: Score, wall_ms: float) -> None:
        """Count a score of the base stream; of others only that they are there, since they say nothing without weights."""
        at_ms = score.event_time.timestamp() * 1000
        project = self._project(score.project, at_ms, wall_ms)
        hour = self._calendar.hour(at_ms)
        _count(project.answers, hour)
        if score.base and score.status is not ScoreStatus.NOT_SAMPLED:
            skipped = score.status is ScoreStatus.SKIPPED_BUDGET
            _count(project.skipped if skipped else project.sampled, hour)
            if score.status is ScoreStatus.JUDGE_ERROR:
                _count(project.errors, hour)
            metrics = score.metrics if score.status is ScoreStatus.SCORED else {}
            for metric, value in [*metrics.items(), *of_answers(score).items()]:
                # An alert's metric has 64 characters.
                key = f"{score.project}/{metric[:64]}/{score.fingerprint}"
                series = self.scores.get(key) or self._begun(key)
                self._touched.add(f"{SCORE}/{key}")
                series.observe(1 - value if is_lower_better(metric) else value, at_ms, self._settings, self._calendar)
                self._judge_series(key, series, series.last_ms)
        self._evaluate_project(score.project, project, wall_ms)

    def observe_asked(self, asked: Sequence[Asked], wall_ms: float) -> None:
        """Count retrievals and the queries of a batch."""
        by_queries: dict[tuple[str, int], list[Asked]] = {}
        for each in asked:
            project = self._project(each.project, each.at_ms, wall_ms)
            _count(project.asked, self._calendar.hour(each.at_ms))
            for metric, raw in raw_metrics(each.scores).items():
                self._observe_retrieval(each, metric, raw)
            if each.query is not None:
                key = f"{each.project}/{self._embed[0]}"
                by_queries.setdefault((key, self._calendar.day(each.at_ms)), []).append(each)
        for (key, day), group in sorted(by_queries.items()):
            self._observe_queries(key, day, group)

    def observe_lost(self, project: str, at_ms: float, wall_ms: float) -> None:
        """Count an event that was lost for the tables."""
        found = self._project(project, at_ms, wall_ms)
        _count(found.failures, self._calendar.hour(at_ms))
        self._evaluate_project(project, found, wall_ms)

    def _begun(self, key: str) -> Series:
        """A new series. Another judge's of the same metric, the latest, gives it something to be compared with while it learns."""
        same = key.rpartition("/")[0] + "/"
        others = [each for name, each in self.scores.items() if name.startswith(same) and each.reference]
        latest = max(others, key=lambda each: each.last_ms, default=None)
        self.scores[key] = Series(former=latest.reference if latest else None)
        return self.scores[key]

    def _observe_retrieval(self, asked: Asked, metric: str, raw: float) -> None:
        key = f"{asked.project}/{metric}/{asked.embedding_model or '-'}"
        scaled = self.retrieval.setdefault(key, Scaled())
        self._touched.add(f"{RETRIEVAL}/{key}")
        scaled.observe(raw, asked.event_id, asked.at_ms, self._no_rule, self._calendar)
        series = scaled.series
        required = self._needed(series)
        level: Level = "ok"
        if series.evidence(self._no_rule) >= required:
            level = series.level(required, self._no_rule, self._calendar)
            if not series.episode.open or series.episode.worst.value != level:  # news, if it is large enough
                effect = scaled.effect
                if effect < self._settings.ks_effect:
                    level = "ok"  # certain, and too small to matter
                elif effect < 2 * self._settings.ks_effect and level == "critical":
                    level = "warn"
        self._advance_series(self._subject(AlertKind.RETRIEVAL_DRIFT, key), series, series.last_ms, level, scaled)

    def _observe_queries(self, key: str, day: int, group: Sequence[Asked]) -> None:
        queries = self.queries.setdefault(key, Queries())
        if day < queries.closed and day not in queries.days:
            return  # too late: its day was compared and forgotten
        texts = [each.query or "" for each in group]
        queries.add(day, [each.event_id for each in group], self._embed[1](texts))
        self._touched |= {f"{DAY}/{key}/{day}", f"{QUERIES}/{key}"}
        if day > queries.closed:
            settled = bool(queries.reference)
            shifts = queries.close(day, self._settings) if queries.closed else []
            queries.closed = day
            if bool(queries.reference) != settled:
                self._touched |= {f"{DAY}/{key}/{each}" for each in queries.days}
            for shift in shifts:
                worse = shift.deviations >= self._settings.query_deviations
                if worse or queries.shift is None or queries.shift.days == shift.days:
                    queries.shift = shift
            if shifts:
                self._advance_queries(key, queries, max(shift.deviations for shift in shifts), day)

    # --- time

    def tick(self, wall_ms: float, facts: Facts) -> None:
        """Look at what happens without samples."""
        for name, project in self.projects.items():
            self._evaluate_project(name, project, wall_ms)
        findings = {
            f"lag/{stream}": _above(count, self._settings.lag_entries, "warn") for stream, count in facts.lags.items()
        }
        if facts.watermark_minutes is not None:
            minutes, limit = round(facts.watermark_minutes, 1), self._settings.watermark_minutes
            findings["watermark"] = _above(minutes, limit, "critical" if minutes > 4 * limit else "warn")
        for key, finding in findings.items():
            episode = self.system.get(key, Episode())
            if finding.level == "ok" and not episode.open:
                continue
            self.system[key] = episode
            clean = finding.level == "ok"
            counts = not clean or wall_ms - episode.counted_ms >= _SYSTEM_EVERY_MS
            name = key.partition("/")[2]
            subject = Subject(
                AlertKind.LAG if name else AlertKind.WATERMARK_AGE,
                ALL_PROJECTS,
                f"{key}/{self._shard}",
                name or "watermark",
                f"shard {self._shard}",
            )
            before = dump_episode(episode)
            transition = step(episode, Reading(wall_ms, finding.level, clean, counts), _SYSTEM_PATIENCE)
            if clean and counts:
                episode.counted_ms = wall_ms
            self._publish(subject, transition, episode, _numbers(finding, episode.opened_ms))
            if dump_episode(episode) != before:
                self._touched.add(SYSTEM)

    def acknowledge(self, identities: Sequence[str], now_wall_ms: float) -> list[str]:
        """Accept what open episodes say as the new normal. Returns those that are dealt with: closed now, or not open here any more."""
        wanted = set(identities)
        for key, series in self.scores.items():
            subject = self._subject(AlertKind.SCORE_DRIFT, key)
            if self._is(subject, series.episode, wanted):
                numbers = self._numbers(subject, series, series.detector, self._recovering(series))
                transition = series.acknowledge(series.last_ms, self._settings, self._calendar)
                if series.baseline:
                    numbers = replace(numbers, accepted=shown(subject.kind, subject.metric, series.baseline.mean))
                self._touched.add(f"{SCORE}/{key}")
                self._publish_acknowledged(subject, transition, series.episode, numbers, now_wall_ms)
        for key, scaled in self.retrieval.items():
            subject = self._subject(AlertKind.RETRIEVAL_DRIFT, key)
            if self._is(subject, scaled.series.episode, wanted):
                numbers = self._numbers(
                    subject, scaled.series, scaled.series.detector, self._recovering(scaled.series), scaled.effect
                )
                transition = scaled.series.acknowledge(scaled.series.last_ms, self._no_rule, self._calendar)
                scaled.series.baseline = None
                scaled.acknowledge()
                self._touched.add(f"{RETRIEVAL}/{key}")
                self._publish_acknowledged(subject, transition, scaled.series.episode, numbers, now_wall_ms)
        for key, queries in self.queries.items():
            subject = self._query_subject(key)
            if self._is(subject, queries.episode, wanted):
                transition = resolve(queries.episode, queries.closed * self._calendar.day_ms, Patience(1, 0.0))
                queries.forget()
                self._touched.add(f"{QUERIES}/{key}")
                numbers = Numbers(queries.episode.opened_ms)
                self._publish_acknowledged(subject, transition, queries.episode, numbers, now_wall_ms)
        for name, project in self.projects.items():
            for kind, episode in project.episodes.items():
                subject = Subject(kind, name, str(kind))
                if self._is(subject, episode, wanted):
                    transition = resolve(episode, project.now(now_wall_ms), CONDITION_PATIENCE)
                    project.failures.clear()
                    project.errors.clear()
                    self._touched.add(f"{PROJECT}/{name}")
                    numbers = Numbers(episode.opened_ms)
                    self._publish_acknowledged(subject, transition, episode, numbers, now_wall_ms)
        return list(identities)

    # --- the rest

    def _project(self, name: str, at_ms: float, wall_ms: float) -> Project:
        project = self.projects.setdefault(name, Project())
        project.meet(at_ms, wall_ms)
        self._touched.add(f"{PROJECT}/{name}")
        return project

    def _evaluate_project(self, name: str, project: Project, wall_ms: float) -> None:
        now_ms = project.now(wall_ms)
        hour = self._calendar.hour(now_ms)
        if hour <= project.evaluated_hour:
            return
        project.evaluated_hour = hour
        project.prune(hour)
        self._touched.add(f"{PROJECT}/{name}")
        findings = {
            AlertKind.SILENCE: project.silence(now_ms, self._settings, self._calendar),
            AlertKind.JUDGE_ERRORS: project.judge_errors(now_ms, self._settings, self._calendar),
            AlertKind.FAILURES: project.lost(now_ms, self._calendar),
        }
        for kind, finding in findings.items():
            episode = project.episodes[kind]
            transition = step(episode, Reading(now_ms, finding.level, finding.level == "ok"), CONDITION_PATIENCE)
            self._publish(Subject(kind, name, str(kind)), transition, episode, _numbers(finding, episode.opened_ms))

    def _needed(self, series: Series) -> float:
        """The evidence that alerts, corrected for all series there are. Only worth working out when there is some."""
        streams = max(1, (len(self.scores) + len(self.retrieval)) * self._shards)
        if series.evidence(self._settings) < 1:
            return float(streams)
        everything = [*self.scores.values(), *(scaled.series for scaled in self.retrieval.values())]
        return needed((each.evidence(self._settings) for each in everything), streams)

    def _judge_series(self, key: str, series: Series, now_ms: float) -> None:
        subject = self._subject(AlertKind.SCORE_DRIFT, key)
        required = self._needed(series)
        level: Level | None = None
        of = (subject.project, subject.series or "", subject.metric or "")
        opinion = not is_of_answers(subject.metric or "")  # nobody need be asked whether an answer came
        if opinion and not self._settings.page_uncalibrated and not self._calibrated(*of):
            level = series.level(required, self._settings, self._calendar)
            level = "warn" if level == "critical" else level
        self._advance_series(subject, series, now_ms, level, None, required)

    def _advance_series(
        self,
        subject: Subject,
        series: Series,
        now_ms: float,
        level: Level | None,
        scaled: Scaled | None,
        required: float = 1.0,
    ) -> None:
        detector, recovering = series.detector, self._recovering(series)
        settings = self._no_rule if scaled else self._settings
        transition = series.evaluate(now_ms, required, settings, self._calendar, level=level)
        if transition:
            effect = scaled.effect if scaled else None
            self._publish(
                subject, transition, series.episode, self._numbers(subject, series, detector, recovering, effect)
            )

    def _advance_queries(self, key: str, queries: Queries, deviations: float, day: int) -> None:
        limit = self._settings.query_deviations
        found: Level = "warn" if deviations >= limit else "ok"
        reading = Reading(day * self._calendar.day_ms, found, found == "ok")
        transition = step(queries.episode, reading, Patience(2, self._calendar.hours(self._settings.cooldown_hours)))
        shift = queries.shift
        numbers = Numbers(
            (day - (shift.days if shift else 1)) * self._calendar.day_ms,
            deviations,
            limit,
            shift.distance if shift else None,
            n=shift.n if shift else None,
            evidence=deviations / limit,
        )
        self._publish(self._query_subject(key), transition, queries.episode, numbers)

    @staticmethod
    def _recovering(series: Series) -> bool:
        return series.episode.open and (series.episode.state is AlertState.RECOVERING or series.episode.clean > 0)

    def _numbers(
        self, subject: Subject, series: Series, detector: Detector, recovering: bool, effect: float | None = None
    ) -> Numbers:
        base = series.reference
        if base is None:
            return Numbers(series.last_ms)
        total = series.window(HOURS, self._calendar) if recovering or not detector.n else None
        n, mean = (total.n, total.mean) if total else (int(detector.n), detector.mean or 0.0)
        half = 1.96 * base.deviation * sqrt(series.season.design_effect / n) if n else 0.0
        interval = (max(0.0, mean - half), min(1.0, mean + half)) if n else None
        evidence = min(1e6, series.evidence(self._settings) / max(1.0, self._needed(series)))
        since = detector.since_ms or series.episode.opened_ms or series.last_ms
        value, baseline = (
            (shown(subject.kind, subject.metric, mean) if n else None),
            shown(subject.kind, subject.metric, base.mean),
        )
        if interval and is_turned(subject.kind, subject.metric):
            interval = (1 - interval[1], 1 - interval[0])
        if effect is None and value is not None and baseline:
            effect = value / baseline - 1
        why = "" if series.baseline else "by another judge than before"
        return Numbers(since, value, baseline, effect, interval, n, evidence, why=why)

    def _publish_acknowledged(
        self, subject: Subject, transition: Transition | None, episode: Episode, numbers: Numbers, wall_ms: float
    ) -> None:
        """A person did it, so its time is the clock's: samples may have come hours ago, or be a replay of last year's."""
        if transition:
            told = replace(transition, at_ms=max(transition.at_ms, wall_ms))
            self._publish(subject, told, episode, replace(numbers, acknowledged=True))

    def _publish(self, subject: Subject, transition: Transition | None, episode: Episode, numbers: Numbers) -> None:
        if transition:
            self.alerts.append(alert(subject, transition, episode.opened_ms, numbers))

    @staticmethod
    def _is(subject: Subject, episode: Episode, wanted: set[str]) -> bool:
        return episode.open and str(alert_id(subject, episode.number, episode.opened_ms)) in wanted

    @staticmethod
    def _subject(kind: AlertKind, key: str) -> Subject:
        project, metric, series = key.split("/", 2)
        return Subject(kind, project, key, metric, series)

    @staticmethod
    def _query_subject(key: str) -> Subject:
        project, _, name = key.partition("/")
        return Subject(AlertKind.QUERY_DRIFT, project, key, "queries", name)


def is_turned(kind: AlertKind, metric: str | None) -> bool:
    """Whether the samples of a series are 1 - x of its metric, because that is better when lower."""
    return kind is AlertKind.SCORE_DRIFT and is_lower_better(metric or "")


def shown(kind: AlertKind, metric: str | None, mean: float) -> float:
    """A mean of oriented samples as the metric itself, which people read."""
    return 1 - mean if is_turned(kind, metric) else mean


def metric_total(series: Series, day: int, metric: str) -> Total | None:
    """A day's samples as the metric is read by people: a lower-is-better one is turned back."""
    total = series.days.get(day)
    if total is None or not is_lower_better(metric):
        return total
    return Total(total.n, total.n - total.total, total.n - 2 * total.total + total.squares)


def _count(counts: dict[int, int], hour: int) -> None:
    counts[hour] = counts.get(hour, 0) + 1


def _above(value: float, limit: float, level: Level) -> Finding:
    return Finding(level if value > limit else "ok", value, limit, 0)


def _numbers(finding: Finding, since_ms: float) -> Numbers:
    effect = finding.value / finding.limit - 1 if finding.limit else None
    return Numbers(since_ms, finding.value, finding.limit, effect, n=finding.n, why=finding.why)
