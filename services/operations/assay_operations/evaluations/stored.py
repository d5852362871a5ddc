"""Read evaluation runs from the store with an open client."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from assay_evals.report.changes import MetricChange, Move, TypeChange, metric_changes, moves, type_changes
from assay_operations.errors import OperationError
from assay_operations.evaluations.compare import compared
from assay_operations.evaluations.rules import rules_of

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.run.model import Run
    from assay_runtime.store import Client

__all__ = ["MetricChange", "Move", "TypeChange", "moves"]

#: Runs, nights and cases that are listed at most.
RUNS_MAX, OUTCOMES_MAX, CASES_MAX = 500, 400, 500

_RUNS = """
SELECT toString(run_id) AS run_id, name, project, label, dataset, dataset_version, dataset_fingerprint, target,
    code_version, judge, JSONExtractString(config, 'branch') AS branch, toUnixTimestamp64Milli(started_at) AS started,
    toUnixTimestamp64Milli(completed_at) AS completed, cases, errored, means, latency_ms
FROM eval_runs
WHERE ({project:String} = '' OR project = {project:String})
    AND ({run:String} = '' OR toString(run_id) = {run:String} OR name = {run:String})
ORDER BY started_at DESC, name LIMIT {limit:UInt32}
"""

_OUTCOMES = """
SELECT project, toUnixTimestamp64Milli(started_at) AS at, toString(outcome) AS outcome, toString(run_id) AS run_id, run_name,
    baseline, cases, errored, failed_metrics, cost_usd, detail
FROM eval_outcomes
WHERE ({project:String} = '' OR project = {project:String}) AND started_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
ORDER BY started_at DESC LIMIT {limit:UInt32}
"""

_CASE = """
SELECT query_type, retrieved, latency_ms, metrics, error FROM eval_results
WHERE project = {project:String} AND run_id = {run:UUID} AND case_id = {case:String}
"""

_VALUES = """
SELECT case_id, metrics[{metric:String}] AS value FROM eval_results
WHERE project = {project:String} AND run_id = {run:UUID} AND mapContains(metrics, {metric:String})
"""


@dataclass(frozen=True)
class RunRow:
    """A stored run. `means` and `latency_ms` by metric."""

    run_id: str
    name: str
    project: str
    label: str
    dataset: str
    dataset_version: str
    dataset_fingerprint: str
    target: str
    code_version: str
    branch: str
    judge: str
    started_at: datetime
    completed_at: datetime | None
    cases: int
    errored: int
    means: dict[str, float]
    latency_ms: dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """One attempt of a nightly evaluation."""

    project: str
    started_at: datetime
    outcome: str
    run_id: str | None
    run_name: str
    baseline: str
    cases: int
    errored: int
    failed_metrics: tuple[str, ...]
    cost_usd: float
    detail: str


@dataclass(frozen=True)
class Mean:
    """Mean of a metric over the cases that it applies to, with its 95 % interval."""

    metric: str
    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class TypeMeans:
    """Means of the cases of one query type."""

    query_type: str
    cases: int
    means: dict[str, float]


@dataclass(frozen=True)
class CaseRow:
    """Result of one case of a run. `error` is empty if it was answered."""

    case_id: str
    query_type: str
    retrieved: int
    latency_ms: float | None
    error: str
    metrics: dict[str, float]


@dataclass(frozen=True)
class OneRun:
    """A run with its metrics. `results` are the first ones, those with an error before others."""

    run: RunRow
    metrics: tuple[Mean, ...]
    by_query_type: tuple[TypeMeans, ...]
    results: tuple[CaseRow, ...]


@dataclass(frozen=True)
class CaseChange:
    """Change of the shown metric for one case."""

    case_id: str
    query_type: str
    baseline: float
    candidate: float
    worse: bool

    @property
    def delta(self) -> float:
        """The change."""
        return self.candidate - self.baseline


@dataclass(frozen=True)
class Compared:
    """Two runs compared case by case, with the default rules."""

    baseline: RunRow
    candidate: RunRow
    verdict: str
    #: The verdict with everything that decided it.
    reason: str
    #: False if the runs were not measured alike; `problems` has the reasons.
    comparable: bool
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    paired: int
    metrics: tuple[MetricChange, ...]
    #: The metric of the lists below; empty if none was compared.
    metric: str
    by_query_type: tuple[TypeChange, ...]
    #: Cases whose metric changed, the worst first.
    cases: tuple[CaseChange, ...]
    #: Number of changed cases, which may be more than are listed.
    changed: int
    worse: int


@dataclass(frozen=True)
class Side:
    """Result of a case in one run; `retrieved` in order."""

    run: RunRow
    query_type: str
    retrieved: tuple[str, ...]
    latency_ms: float | None
    metrics: dict[str, float]
    error: str


@dataclass(frozen=True)
class ComparedCase:
    """One case in two runs, and the cases before and after it in the list, the worst first."""

    case_id: str
    metric: str
    baseline: Side
    candidate: Side
    previous: str
    next: str
    #: Place in the list, from 1; None if the case is not in it.
    place: int | None
    listed: int


def runs_in(client: "Client", project: str = "", limit: int = RUNS_MAX) -> tuple[RunRow, ...]:
    """Return the newest runs of a project, or of all, the newest first."""
    return tuple(_runs(client, project, "", limit))


def outcomes_in(client: "Client", project: str, since_ms: int) -> tuple[Outcome, ...]:
    """Return the nightly attempts since a Unix millisecond, the newest first."""
    wanted = {"project": project, "since": since_ms, "limit": OUTCOMES_MAX}
    found = []
    for row in client.query(_OUTCOMES, parameters=wanted).named_results():
        shown = dict(row)
        shown |= {"started_at": _time(shown.pop("at")), "failed_metrics": tuple(shown["failed_metrics"])}
        found.append(Outcome(**shown))
    return tuple(found)


def run_in(client: "Client", name: str, project: str = "") -> OneRun:
    """Return a run by its id or name. Raises `OperationError` if the project has none."""
    row, run = _run(client, name, project), _loaded(client, name, project)
    metrics = tuple(Mean(each, found.mean, found.low, found.high, found.n) for each, found in run.summary().items())
    types = tuple(
        TypeMeans(kind, int(means.pop("cases")), means) for kind, means in sorted(run.by_query_type().items())
    )
    results = sorted(run.results, key=lambda each: each.error is None)[:CASES_MAX]
    return OneRun(
        row,
        metrics,
        types,
        tuple(
            CaseRow(
                each.case_id, each.query_type, len(each.retrieved), each.latency_ms, each.error or "",
                {metric: value for metric, value in each.metrics.items() if value is not None},
            )
            for each in results
        ),
    )  # fmt: skip


def compare_in(
    client: "Client", baseline: str, candidate: str, *, metric: str = "", project: str = "", worse_only: bool = False
) -> Compared:
    """Compare two stored runs as `assay eval compare --store` does. Raises `OperationError`."""
    from assay_evals.report.wording import notes, problems, shown_metric, verdict_in_words

    one, other = _run(client, baseline, project), _run(client, candidate, project)
    before, after = _loaded(client, one.run_id, project), _loaded(client, other.run_id, project)
    paired = compared(before, after, rules_of(None), {}, slices=None, seed=0, thresholds=None, floors=None, stages=None)
    names = [each.metric for each in paired.comparison.metrics]
    if metric and metric not in names:
        raise OperationError(
            "invalid", f"the runs do not both measure {metric[:80]}; they do: {', '.join(names) or 'nothing'}"
        )
    shown = metric or shown_metric(paired) or ""
    changes = _changes(paired, shown)
    listed = [each for each in changes if each.worse] if worse_only else changes
    verdict = paired.verdict()
    return Compared(
        baseline=one,
        candidate=other,
        verdict=verdict.value,
        reason=verdict_in_words(paired, verdict),
        comparable=not paired.comparison.unlike,
        problems=tuple(problems(paired)),
        notes=tuple(notes(paired)),
        paired=paired.comparison.paired,
        metrics=metric_changes(paired),
        metric=shown,
        by_query_type=type_changes(paired, shown),
        cases=tuple(listed[:CASES_MAX]),
        changed=len(changes),
        worse=sum(each.worse for each in changes),
    )


def case_in(
    client: "Client", case_id: str, baseline: str, candidate: str, *, metric: str = "", project: str = "",
    worse_only: bool = False,
) -> ComparedCase:  # fmt: skip
    """Return one case of two runs, and its neighbours in the list of changed cases.

    Raises `OperationError` if a run or the case is not stored.
    """
    from assay_evals.compare.slices import SHOWN_FIRST
    from assay_evals.compare.verdicts import DEFAULT_RULES, rule_of

    one, other = _run(client, baseline, project), _run(client, candidate, project)
    both = [name for name in one.means if name in other.means]
    metric = metric or next((name for name in SHOWN_FIRST if name in both), both[0] if both else "")
    before, after = _values(client, one, metric), _values(client, other, metric)
    sign = -1.0 if metric and rule_of(metric, DEFAULT_RULES).lower_is_better else 1.0
    gains = {name: sign * (after[name] - before[name]) for name in before if name in after}
    changed = [name for name in gains if (gains[name] < 0 if worse_only else gains[name] != 0)]
    order = sorted(changed, key=lambda name: (gains[name], name))
    at = order.index(case_id) if case_id in order else None
    return ComparedCase(
        case_id,
        metric,
        _side(client, one, case_id),
        _side(client, other, case_id),
        previous=order[at - 1] if at else "",
        next=(order[at + 1] if at + 1 < len(order) else "") if at is not None else order[0] if order else "",
        place=None if at is None else at + 1,
        listed=len(order),
    )


def _changes(paired: "PairedRuns", metric: str) -> list[CaseChange]:
    """Return the cases whose metric changed, the worst first."""
    from assay_evals.compare.verdicts import DEFAULT_RULES, rule_of

    sign = -1.0 if metric and rule_of(metric, DEFAULT_RULES).lower_is_better else 1.0
    found = []
    for before, after in paired.pairs:
        one, other = before.value(metric), after.value(metric)
        if one is not None and other is not None and one != other:
            found.append(CaseChange(before.case_id, before.query_type, one, other, sign * other < sign * one))
    return sorted(found, key=lambda each: (sign * each.delta, each.case_id))


def _side(client: "Client", row: RunRow, case_id: str) -> Side:
    wanted = {"project": row.project, "run": row.run_id, "case": case_id}
    found = list(client.query(_CASE, parameters=wanted).named_results())
    if not found:
        raise OperationError("not_found", f"the run {row.name} has no such case")
    one = found[0]
    metrics = {name: value for name, value in one["metrics"].items() if value is not None}
    return Side(row, one["query_type"], tuple(one["retrieved"]), one["latency_ms"], metrics, one["error"] or "")


def _values(client: "Client", row: RunRow, metric: str) -> dict[str, float]:
    if not metric:
        return {}
    wanted = {"project": row.project, "run": row.run_id, "metric": metric}
    found = client.query(_VALUES, parameters=wanted).result_rows
    return {str(case): float(value) for case, value in found if value is not None}


def _run(client: "Client", name: str, project: str) -> RunRow:
    found = next(_runs(client, project, name, 1), None) if name else None
    if found is None:
        raise OperationError("not_found", f"no run {name[:80]!r} is stored", "see the list: `assay eval list --store`")
    return found


def _loaded(client: "Client", name: str, project: str) -> "Run":
    from assay_evals.run.model import RunError
    from assay_evals.run.run_store import load_stored

    with _as_operation(RunError):
        return load_stored(client, _run(client, name, project).run_id)


@contextmanager
def _as_operation(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        raise OperationError("not_found", str(error)) from None


def _runs(client: "Client", project: str, run: str, limit: int) -> Iterator[RunRow]:
    wanted = {"project": project, "run": run, "limit": limit}
    for row in client.query(_RUNS, parameters=wanted).named_results():
        times = {"started_at": _time(row["started"]), "completed_at": _time(row["completed"])}
        texts = {name: row[name] or "" for name in ("label", "code_version", "judge", "branch")}
        shown = {name: value for name, value in row.items() if name not in ("started", "completed")}
        yield RunRow(**(shown | texts | times | {"means": dict(row["means"]), "latency_ms": dict(row["latency_ms"])}))


def _time(ms: int | None) -> Any:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)
