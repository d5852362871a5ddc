"""Evaluation runs: configuration, results, and their summary. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

import numpy as np

from assay_evals.dataset.model import Dataset
from assay_evals.errors import EvalsError
from assay_evals.metrics.answer_coverage import ANSWERED, is_answerable
from assay_evals.metrics.case_metrics import PATH, path_share
from assay_evals.metrics.intervals import intervals
from assay_evals.metrics.metric_names import LATENCY, QUANTILES
from assay_evals.metrics.retrieval import DEFAULT_CUTOFFS, Gain, mean
from assay_evals.statistics.resampling import Floats

VERSION = 1


class RunError(EvalsError):
    """A run that cannot be read or continued; the message names the file and the fix."""


@dataclass(frozen=True)
class RunConfig:
    """Configuration of a run.

    Any two runs can be compared; a run can only be resumed if only its concurrency differs.
    """

    dataset: str
    dataset_version: str
    dataset_fingerprint: str
    target: str
    k: int = 10
    cutoffs: tuple[int, ...] = DEFAULT_CUTOFFS
    gain: Gain = "linear"
    seed: int = 0
    code_version: str | None = None
    judge: str | None = None
    label: str | None = None
    project: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    branch: str | None = None
    dirty: bool | None = None
    #: By metric of the run's own scorers, a digest of their definition.
    scorers: Mapping[str, str] = field(default_factory=dict)
    #: Where a part of the dataset was asked: `cases`, `seed` and the fields `by` which it is stratified.
    sample: Mapping[str, Any] = field(default_factory=dict)
    #: How many questions were asked at a time; None where it was not always the same, or is not known.
    concurrency: int | None = None

    @classmethod
    def of(cls, dataset: Dataset, target: str, **options: Any) -> "RunConfig":
        """Return the configuration of a run over a dataset."""
        return cls(dataset.name, dataset.version, dataset.fingerprint, target, **options)

    def as_json(self) -> dict[str, Any]:
        """Return all fields; newer ones only if they are set, so that older runs stay unchanged."""
        return {
            name: value for name, value in asdict(self).items() if name not in _LATER_FIELDS or value != _DEFAULTS[name]
        }

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> "RunConfig":
        """Parse the output of `as_json`. Raises `TypeError` and others for anything else."""
        lists = {name: tuple(document.get(name, ())) for name in ("cutoffs", "tags")}
        return cls(**{**document, **lists})


_LATER_FIELDS = frozenset({"tags", "branch", "dirty", "scorers", "sample", "concurrency"})
_DEFAULTS = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory() for each in fields(RunConfig)
}


@dataclass(frozen=True)
class CaseResult:
    """Result of one case. `metrics` are None or absent if not applicable; a failed case has none."""

    case_id: str
    query_type: str
    retrieved: list[str]
    latency_ms: float | None
    metrics: dict[str, float | None]
    error: str | None = None
    tries: int = 1
    cluster: str | None = None
    weight: float = 1.0
    #: Values of the fields that slice cases, except `query_type`; empty in runs of an older Assay.
    slices: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def unit(self) -> tuple[str | None, str]:
        """Resampling unit: its cluster, or itself alone."""
        return (self.cluster, "") if self.cluster else (None, self.case_id)

    def value(self, metric: str) -> float | None:
        """Return a metric's value, or that of `latency_ms`; None if not applicable."""
        if metric == LATENCY:
            return self.latency_ms
        return path_share(self.metrics, metric) if metric.startswith(PATH) else self.metrics.get(metric)


@dataclass(frozen=True)
class MetricSummary:
    """Mean over the cases a metric applies to, with its 95 % interval."""

    mean: float
    n: int
    low: float
    high: float


@dataclass(frozen=True)
class Run:
    """A run, complete or partial."""

    run_id: str
    config: RunConfig
    started_at: str
    completed_at: str | None
    results: list[CaseResult]
    #: Judging that earlier runs paid for: `hits` of `calls`, and `saved_usd`; empty if unknown.
    judge_cache: Mapping[str, float] = field(default_factory=dict)

    @property
    def errored(self) -> list[CaseResult]:
        """Cases without an answer."""
        return [result for result in self.results if result.error is not None]

    @property
    def names(self) -> list[str]:
        """Metrics in the order they were measured."""
        return list(dict.fromkeys(name for result in self.results for name in result.metrics))

    def column(self, name: str, results: Sequence[CaseResult] | None = None) -> Floats:
        """Return the values of one metric, or `latency_ms`, one per case; `nan` if there is none.

        If a target returns answers at all, an answerable case without an answer counts as not answered.
        """
        chosen = self.results if results is None else results
        missing = 0.0 if name == ANSWERED and name in self.names else math.nan
        return np.array(
            [
                value
                if (value := result.value(name)) is not None
                else missing
                if result.error is None and is_answerable(result.query_type)
                else math.nan
                for result in chosen
            ]
        )

    def weights(self, results: Sequence[CaseResult] | None = None) -> Floats | None:
        """Return the weight of each case, the inverse of its inclusion probability; None if all are equal."""
        weights = np.array([result.weight for result in (self.results if results is None else results)])
        return weights if np.any(weights != 1) else None

    def summary(self) -> dict[str, MetricSummary]:
        """Return every metric's mean and interval; mined cases are weighted by their inverse probability."""
        if not self.results or not self.names:
            return {}
        columns = {name: self.column(name) for name in self.names}
        clusters = [r.unit for r in self.results] if any(r.cluster for r in self.results) else None
        weights = self.weights()
        summaries = {}
        for name, bounds in intervals(
            columns, (0, 1), seed=self.config.seed, clusters=clusters, weights=weights
        ).items():
            average = mean(columns[name], weights)
            assert average is not None
            value_count = int(np.count_nonzero(~np.isnan(columns[name])))
            summaries[name] = MetricSummary(average, value_count, bounds.low, bounds.high)
        return summaries

    def latency(self) -> dict[str, float]:
        """Return median and 95th percentile in milliseconds over the answered cases."""
        values = self.column(LATENCY)
        present = values[~np.isnan(values)]
        return {name: float(np.quantile(present, share)) for name, share in QUANTILES.items()} if len(present) else {}

    def by_query_type(self) -> dict[str, dict[str, float]]:
        """Return the means of each metric by query type, with `cases`."""
        means: dict[str, dict[str, float]] = {}
        for kind in dict.fromkeys(result.query_type for result in self.results):
            chosen = [result for result in self.results if result.query_type == kind]
            means[kind] = {"cases": float(len(chosen))}
            for name in self.names:
                if (average := mean(self.column(name, chosen), self.weights(chosen))) is not None:
                    means[kind][name] = average
        return means

    def as_json(self) -> dict[str, Any]:
        """Return the report: configuration and results, including cases."""
        return {
            "schema_version": VERSION,
            "run_id": self.run_id,
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "config": self.config.as_json(),
            "cases": len(self.results),
            "errored": len(self.errored),
            "metrics": {name: asdict(summary) for name, summary in self.summary().items()},
            "latency": self.latency(),
            "by_query_type": self.by_query_type(),
            "results": [asdict(result) for result in self.results],
        } | ({"judge_cache": dict(self.judge_cache)} if self.judge_cache else {})
