"""The monitor of one shard: samples in, transitions out. Pure: no clock and no network.

State is read and written as JSON fields. The same samples in the same order give the same transitions with the same
ids. The atomic step in Redis relies on this.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay_drift.alerts import Measurements, Subject
from assay_drift.amounts import Amount
from assay_drift.conditions import CONDITION_HYSTERESIS, LOST_AGAIN, Condition, Project
from assay_drift.embedding import Embed, embedder
from assay_drift.episodes import Episode, Hysteresis, Level, Reading, repeat, step
from assay_drift.queries import Queries
from assay_drift.readings import above, measurements_of_finding
from assay_drift.retrieval import Scaled, raw_metrics
from assay_drift.series import Series, dump_episode
from assay_drift.shard_series import Acknowledgeable, Calibrated, ShardSeries
from assay_drift.state_fields import AMOUNT, DAY, PROJECT, QUERIES, RETRIEVAL, SCORE, SYSTEM
from assay_schema.alerts import ALL_PROJECTS, AlertKind
from assay_schema.scores import QUANTILES, Score, ScoreStatus, is_lower_better, is_of_answers, of_answers
from assay_schema.settings import DriftSettings

#: A lag episode ends after consecutive clean checks, a minute apart, so that a value around its limit opens one
#: episode.
_SYSTEM_EVERY_MS = 60_000.0
_SYSTEM_HYSTERESIS = Hysteresis(clean_evaluations=5, cooldown_ms=0.0)


@dataclass(frozen=True, slots=True)
class Observation:
    """A retrieval or an answer, as far as the monitor needs it."""

    event_id: str
    project: str
    at_ms: float
    query: str | None
    scores: Sequence[float] = ()
    embedding_model: str | None = None
    #: The operation and its amounts: `latency` in milliseconds, `cost` in characters read and written.
    operation: str = ""
    amounts: Mapping[str, float] = field(default_factory=dict)
    #: True if it answers a retrieval whose query was already counted.
    follows: bool = False


@dataclass(frozen=True, slots=True)
class LagSnapshot:
    """Measurements at a tick: unread entries by stream, and the age of the watermark in minutes.

    The age is None if nothing is stored yet.
    """

    lags: Mapping[str, int] = field(default_factory=dict)
    watermark_minutes: float | None = None


class Monitor(ShardSeries):
    """State of one shard. Mutable: after a failed commit it is discarded and read again."""

    def __init__(
        self,
        settings: DriftSettings,
        fields: Mapping[str, bytes] | None = None,
        *,
        calibrated: Calibrated = lambda project, fingerprint, metric: False,  # noqa: ARG005
        embed: tuple[str, Embed] | None = None,
        shard: int = 0,
        shards: int = 1,
    ) -> None:
        super().__init__(settings, fields or {}, calibrated, shards)
        self._embed = embed or embedder()
        self._shard = shard

    # --- samples

    def observe_score(self, score: Score, wall_ms: float) -> None:
        """Count a score.

        Only scores of the base stream are used for series; others are biased without weights.
        """
        at_ms = score.event_time.timestamp() * 1000
        project = self._project(score.project, at_ms, wall_ms)
        if score.session_id is None:
            _count_score(project, score, self._calendar.hour(at_ms))
        if score.base and score.status is not ScoreStatus.NOT_SAMPLED:
            metrics = score.metrics if score.status is ScoreStatus.SCORED else {}
            for metric, value in [*metrics.items(), *of_answers(score).items()]:
                # The metric of an alert is limited to 64 characters.
                key = f"{score.project}/{metric[:64]}/{score.fingerprint}"
                series = self.scores.get(key) or self._begun(key)
                self._touched.add(f"{SCORE}/{key}")
                series.observe(1 - value if is_lower_better(metric) else value, at_ms, self._settings, self._calendar)
                self._judge_series(key, series)
        self._evaluate_project(score.project, project, wall_ms)

    def observe_traffic(self, observations: Sequence[Observation], wall_ms: float) -> None:
        """Count a batch of retrievals, answers and their queries."""
        by_queries: dict[tuple[str, int], list[Observation]] = {}
        for each in observations:
            project = self._project(each.project, each.at_ms, wall_ms)
            if not each.follows:
                _count(project.asked, self._calendar.hour(each.at_ms))
            for what, raw in each.amounts.items():
                self._observe_amount(each, what, raw)
            for metric, raw in raw_metrics(each.scores).items():
                self._observe_retrieval(each, metric, raw)
            if each.query is not None:
                key = f"{each.project}/{self._embed[0]}"
                by_queries.setdefault((key, self._calendar.day(each.at_ms)), []).append(each)
        for (key, day), group in sorted(by_queries.items()):
            self._observe_queries(key, day, group)

    def observe_lost(self, project: str, at_ms: float, wall_ms: float) -> None:
        """Count an event that never reached the tables."""
        state = self._project(project, at_ms, wall_ms)
        _count(state.failures, self._calendar.hour(at_ms))
        self._evaluate_project(project, state, wall_ms)  # the next tick reports it, with those that arrive together

    def _begun(self, key: str) -> Series:
        """Start a series.

        While it learns, it is compared with the latest series of the same metric from another judge. A share that does
        not depend on a judge's opinion continues the previous series.
        """
        same = key.rpartition("/")[0] + "/"
        others = [each for name, each in self.scores.items() if name.startswith(same) and each.reference]
        latest = max(others, key=lambda each: each.last_ms, default=None)
        if latest and is_of_answers(key.split("/")[1]):
            self.scores[key] = latest.continued()
        else:
            self.scores[key] = Series.after(latest) if latest else Series()
        return self.scores[key]

    def _observe_retrieval(self, observed: Observation, metric: str, raw: float) -> None:
        key = f"{observed.project}/{metric}/{observed.embedding_model or '-'}"
        scaled = self.retrieval.setdefault(key, Scaled())
        self._touched.add(f"{RETRIEVAL}/{key}")
        scaled.observe(raw, observed.event_id, observed.at_ms, self._no_rule, self._calendar)
        series = scaled.series
        required = self._needed(series)
        level: Level = "ok"
        if series.evidence(self._no_rule) >= required:
            level = series.level(required, self._no_rule, self._calendar)
            # a change of level is reported if the effect is large enough
            if not series.episode.open or series.episode.worst.value != level:
                effect = scaled.effect
                if effect < self._settings.ks_effect:
                    level = "ok"  # significant, but too small to matter
                elif effect < 2 * self._settings.ks_effect and level == "critical":
                    level = "warn"
        subject = self._subject(AlertKind.RETRIEVAL_DRIFT, key)
        self._advance_series(subject, series, level, self._no_rule, required, scaled)

    def _observe_amount(self, observed: Observation, what: str, raw: float) -> None:
        """Count an amount. Higher latency and cost never become critical."""
        for name, share in QUANTILES.items():
            metric = f"{what}_{name}"
            key, settings = f"{observed.project}/{metric}/{observed.operation}", self._of_amounts[metric]
            amount = self.amounts.setdefault(key, Amount())
            self._touched.add(f"{AMOUNT}/{key}")
            amount.observe(raw, observed.event_id, observed.at_ms, share, settings, self._calendar)
            required = self._needed(amount.series)
            level = amount.series.level(required, settings, self._calendar)
            level = "warn" if level == "critical" else level
            subject = self._subject(AlertKind.SCORE_DRIFT, key)
            self._advance_series(subject, amount.series, level, settings, required, amount)

    def _observe_queries(self, key: str, day: int, group: Sequence[Observation]) -> None:
        queries = self.queries.setdefault(key, Queries())
        if day < queries.closed and day not in queries.days:
            return  # too late: its day was compared and removed
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

    def tick(self, wall_ms: float, snapshot: LagSnapshot) -> None:
        """Check the conditions that arise without samples."""
        for name, project in self.projects.items():
            self._evaluate_project(name, project, wall_ms)
            self._report_losses(name, project, wall_ms)
        findings = {
            f"lag/{stream}": above(count, self._settings.lag_entries, "warn") for stream, count in snapshot.lags.items()
        }
        if snapshot.watermark_minutes is not None:
            minutes, limit = round(snapshot.watermark_minutes, 1), self._settings.watermark_minutes
            findings["watermark"] = above(minutes, limit, "critical" if minutes > 4 * limit else "warn")
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
            transition = step(episode, Reading(wall_ms, finding.level, clean, counts), _SYSTEM_HYSTERESIS)
            if clean and counts:
                episode.counted_ms = wall_ms
            self._publish(subject, transition, episode, measurements_of_finding(finding, episode.opened_ms))
            if dump_episode(episode) != before:
                self._touched.add(SYSTEM)

    def acknowledge(
        self, identities: Iterable[str], now_wall_ms: float, by: Mapping[str, str] | None = None
    ) -> list[str]:
        """Accept the current level as the new baseline. `by` has who did it and why, for each id.

        Returns the acknowledged ids that need no more work: closed now, or no longer open in this shard.
        """
        wanted, by = set(identities), by or {}
        for name, subject, watched, now_ms in list(self._acknowledgeable(now_wall_ms)):
            identity = self._identity(subject, watched.episode)
            if watched.episode.open and identity in wanted:
                self._acknowledge(name, subject, watched, now_ms, now_wall_ms, by.get(identity, ""))
        return list(wanted)

    def episode_named(self, identity: str) -> tuple[Subject, Episode] | None:
        """Return the subject and episode with this id, if it can be acknowledged or just was."""
        for _, subject, watched, _ in self._acknowledgeable(0.0):
            if self._identity(subject, watched.episode) == identity:
                return subject, watched.episode
        return None

    def present(self, identities: Iterable[str]) -> dict[str, tuple[Episode, Measurements | None]]:
        """Return episodes of this shard by id, with the present measurements.

        They are None for a condition, which has no samples. `accepted` is the baseline that acknowledging one now would store.
        """
        wanted = set(identities)
        return {
            identity: (watched.episode, self._would_accept(subject, watched, now_ms))
            for _, subject, watched, now_ms in self._acknowledgeable(0.0)
            if (identity := self._identity(subject, watched.episode)) in wanted
        }

    def _acknowledgeable(self, wall_ms: float) -> Iterator[tuple[str, Subject, Acknowledgeable, float]]:
        """Iterate over everything with an episode: its field, its subject, and the time of its samples."""
        for key, series in self.scores.items():
            yield f"{SCORE}/{key}", self._subject(AlertKind.SCORE_DRIFT, key), series, series.last_ms
        for key, scaled in self.retrieval.items():
            yield f"{RETRIEVAL}/{key}", self._subject(AlertKind.RETRIEVAL_DRIFT, key), scaled, scaled.series.last_ms
        for key, amount in self.amounts.items():
            yield f"{AMOUNT}/{key}", self._subject(AlertKind.SCORE_DRIFT, key), amount, amount.series.last_ms
        for key, queries in self.queries.items():
            yield f"{QUERIES}/{key}", self._query_subject(key), queries, queries.closed * self._calendar.day_ms
        for name, project in self.projects.items():
            for kind in project.episodes:
                subject = Subject(kind, name, str(kind))
                yield f"{PROJECT}/{name}", subject, Condition(project, kind), project.now(wall_ms)

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
        }
        if (lost := project.lost(now_ms, self._calendar)).level == "ok":
            findings[AlertKind.FAILURES] = lost
        for kind, finding in findings.items():
            episode = project.episodes[kind]
            transition = step(episode, Reading(now_ms, finding.level, finding.level == "ok"), CONDITION_HYSTERESIS)
            self._publish(
                Subject(kind, name, str(kind)), transition, episode, measurements_of_finding(finding, episode.opened_ms)
            )

    def _report_losses(self, name: str, project: Project, wall_ms: float) -> None:
        """Report lost events at once, and again when their number has grown much.

        Full hours without a loss end the episode.
        """
        if not project.failures:
            return
        now_ms, episode = project.now(wall_ms), project.episodes[AlertKind.FAILURES]
        finding = project.lost(now_ms, self._calendar)
        if finding.level == "ok":
            return
        transition = step(episode, Reading(now_ms, finding.level, clean=False), CONDITION_HYSTERESIS)
        if transition is None and 0 < LOST_AGAIN * project.told_lost <= finding.n:
            transition = repeat(episode, now_ms)
        if transition is None:
            return
        project.told_lost = finding.n
        self._touched.add(f"{PROJECT}/{name}")
        subject = Subject(AlertKind.FAILURES, name, str(AlertKind.FAILURES))
        self._publish(subject, transition, episode, measurements_of_finding(finding, episode.opened_ms))

    def _advance_queries(self, key: str, queries: Queries, deviations: float, day: int) -> None:
        limit = self._settings.query_deviations
        level: Level = "warn" if deviations >= limit else "ok"
        reading = Reading(day * self._calendar.day_ms, level, level == "ok")
        cooldown_ms = self._calendar.hours(self._settings.cooldown_hours)
        transition = step(queries.episode, reading, Hysteresis(clean_evaluations=2, cooldown_ms=cooldown_ms))
        shift = queries.shift
        measured = Measurements(
            since_ms=(day - (shift.days if shift else 1)) * self._calendar.day_ms,
            value=deviations,
            baseline=limit,
            effect=shift.distance if shift else None,
            n=shift.n if shift else None,
            evidence=deviations / limit,
        )
        self._publish(self._query_subject(key), transition, queries.episode, measured)


def _count_score(project: Project, score: Score, hour: int) -> None:
    """Count the score of an answer for the conditions of its project."""
    _count(project.answers, hour)
    if score.base and score.status is not ScoreStatus.NOT_SAMPLED:
        _count(project.skipped if score.status is ScoreStatus.SKIPPED_BUDGET else project.sampled, hour)
        if score.status is ScoreStatus.JUDGE_ERROR:
            _count(project.errors, hour)


def _count(counts: dict[int, int], hour: int) -> None:
    counts[hour] = counts.get(hour, 0) + 1
