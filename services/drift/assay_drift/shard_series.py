"""All series of a shard: the evidence they need together, their episodes and their alerts. Pure."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Protocol

from assay_drift.alerts import Measurements, Subject, alert, alert_id
from assay_drift.amounts import Amount, amount_settings
from assay_drift.detector import Detector
from assay_drift.episodes import Episode, Level, Transition
from assay_drift.fdr import evidence_needed
from assay_drift.readings import is_recovering, measurements_of, shown
from assay_drift.retrieval import Scaled
from assay_drift.series import Calendar, Series
from assay_drift.state_fields import StateFields
from assay_schema.alerts import Alert, AlertKind
from assay_schema.scores import is_of_answers
from assay_schema.settings import DriftSettings

Calibrated = Callable[[str, str, str], bool]


class Acknowledgeable(Protocol):
    """State with an episode that an operator can acknowledge."""

    @property
    def episode(self) -> Episode:
        """The current or latest episode."""

    def acknowledge(self, now_ms: float, settings: DriftSettings, calendar: Calendar, /) -> Transition | None:
        """Accept the current level as the new baseline, and close the episode."""


class ShardSeries(StateFields):
    """The series of one shard. They share one guarantee about false alarms."""

    def __init__(
        self, settings: DriftSettings, fields: Mapping[str, bytes], calibrated: Calibrated, shards: int
    ) -> None:
        super().__init__(fields)
        self._settings = settings
        self._calendar = Calendar.of(settings)
        self._no_rule = settings.model_copy(update={"rule": "off"})
        self._of_amounts = amount_settings(settings)
        self._calibrated = calibrated
        self._shards = shards
        self.alerts: list[Alert] = []

    def series(self) -> Iterator[tuple[str, Series]]:
        """Iterate over all series by key: project, metric, source."""
        yield from self.scores.items()
        for key, scaled in self.retrieval.items():
            yield key, scaled.series
        for key, amount in self.amounts.items():
            yield key, amount.series

    def evidence(self) -> dict[tuple[str, str], float]:
        """Return the greatest evidence by project and metric, relative to the alert threshold."""
        greatest: dict[tuple[str, str], float] = {}
        for key, each in self.series():
            project, metric, _ = key.split("/", 2)
            greatest[project, metric] = max(self.share(each), greatest.get((project, metric), 0.0))
        return greatest

    def share(self, series: Series) -> float:
        """Return the evidence of a series, relative to the alert threshold."""
        return series.evidence(self._settings) / self._needed(series)

    def take_alerts(self) -> list[Alert]:
        """Return the alerts since the last call."""
        found, self.alerts = self.alerts, []
        return found

    def _needed(self, series: Series) -> float:
        """Return the evidence needed to alert, corrected for the number of series.

        Computed only if there is any.
        """
        streams = max(1, (len(self.scores) + len(self.retrieval) + len(self.amounts)) * self._shards)
        if series.evidence(self._settings) < 1:
            return float(streams)
        return evidence_needed((each.evidence(self._settings) for _, each in self.series()), streams)

    def _judge_series(self, key: str, series: Series) -> None:
        subject = self._subject(AlertKind.SCORE_DRIFT, key)
        required = self._needed(series)
        level: Level | None = None
        of = (subject.project, subject.series or "", subject.metric or "")
        opinion = not is_of_answers(subject.metric or "")  # whether an answer arrived is not a judge's opinion
        if opinion and not self._settings.page_uncalibrated and not self._calibrated(*of):
            level = series.level(required, self._settings, self._calendar)
            level = "warn" if level == "critical" else level
        self._advance_series(subject, series, level, self._settings, required)

    def _advance_series(
        self,
        subject: Subject,
        series: Series,
        level: Level | None,
        settings: DriftSettings,
        required: float,
        of: Scaled | Amount | None = None,
    ) -> None:
        detector, recovering = series.detector, is_recovering(series)
        transition = series.evaluate(series.last_ms, required, settings, self._calendar, level=level)
        if transition:
            measured = self._measure(subject, series, of, detector, recovering=recovering)
            self._publish(subject, transition, series.episode, measured)

    def _measure(
        self, subject: Subject, series: Series, of: Scaled | Amount | None, detector: Detector, *, recovering: bool
    ) -> Measurements:
        measured = measurements_of(subject, series, detector, self._calendar, recovering=recovering)
        measured = replace(measured, evidence=min(1e6, self.share(series)))
        if isinstance(of, Scaled):
            return replace(measured, effect=of.effect)
        return measured if of is None else replace(measured, limit=of.limit)

    def _measured_now(self, subject: Subject, watched: Acknowledgeable) -> Measurements | None:
        """Return the measurements of a series as it is; None for what has no samples."""
        if isinstance(watched, Series):
            return self._measure(subject, watched, None, watched.detector, recovering=is_recovering(watched))
        if isinstance(watched, Scaled | Amount):
            series = watched.series
            return self._measure(subject, series, watched, series.detector, recovering=is_recovering(series))
        return None

    def _would_accept(self, subject: Subject, watched: Acknowledgeable, now_ms: float) -> Measurements | None:
        """Return the present measurements, with the baseline that acknowledging now would store."""
        measured = self._measured_now(subject, watched)
        if measured is None or not watched.episode.open:
            return measured
        copy = deepcopy(watched)
        copy.acknowledge(now_ms, self._settings, self._calendar)
        return replace(measured, accepted=_learned(subject, copy))

    def _publish_acknowledged(
        self, subject: Subject, transition: Transition | None, episode: Episode, measured: Measurements, wall_ms: float
    ) -> None:
        """Publish an acknowledgement.

        Its time is the wall clock's: samples may be hours old, or come from a replay of last year.
        """
        if transition:
            published = replace(transition, at_ms=max(transition.at_ms, wall_ms))
            self._publish(subject, published, episode, replace(measured, acknowledged=True))

    def _publish(
        self, subject: Subject, transition: Transition | None, episode: Episode, measured: Measurements
    ) -> None:
        if transition:
            self.alerts.append(alert(subject, transition, episode.opened_ms, measured))

    def _acknowledge(
        self, field: str, subject: Subject, watched: Acknowledgeable, now_ms: float, wall_ms: float, by: str
    ) -> None:
        """Acknowledge an episode, and publish that."""
        measured = self._measured_now(subject, watched) or Measurements(since_ms=watched.episode.opened_ms)
        transition = watched.acknowledge(now_ms, self._settings, self._calendar)
        measured = replace(measured, accepted=_learned(subject, watched))
        self._touched.add(field)
        measured = replace(measured, acknowledged_by=by)
        self._publish_acknowledged(subject, transition, watched.episode, measured, wall_ms)

    @staticmethod
    def _identity(subject: Subject, episode: Episode) -> str:
        return str(alert_id(subject, episode.number, episode.opened_ms))

    @staticmethod
    def _subject(kind: AlertKind, key: str) -> Subject:
        project, metric, series = key.split("/", 2)
        return Subject(kind, project, key, metric, series)

    @staticmethod
    def _query_subject(key: str) -> Subject:
        project, _, name = key.partition("/")
        return Subject(AlertKind.QUERY_DRIFT, project, key, "queries", name)


def _learned(subject: Subject, watched: Acknowledgeable) -> float | None:
    """Return the baseline of a series after it was acknowledged; None if it is learned from later samples."""
    if isinstance(watched, Series) and watched.baseline:
        return shown(subject.kind, subject.metric, watched.baseline.mean)
    return None
