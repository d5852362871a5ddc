"""Page of contradictions: how often retrieved documents contradict each other, and what to correct."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assay_console.page import Ask, Document, Page, Panel, Parameter
from assay_console.views.one_project import project_of
from assay_operations.evaluations.contradiction_reads import findings_in, trends_in
from assay_operations.overview.frame import projects_with_judged_pairs

if TYPE_CHECKING:
    from assay_evals.contradictions.rate import Rate
    from assay_evals.contradictions.trend import Point, Trend

#: Runs and findings that the page shows, at most. The commands print all.
RUNS_SHOWN, FINDINGS_SHOWN, DOCUMENTS_SHOWN = 100, 40, 10
STATES = ("open", "gone", "resolved", "refuted", "all")


class Interval(Document):
    """A rate, or a difference of two, with its 95 % interval."""

    estimate: float
    low: float
    high: float


class JudgedRun(Document):
    """A run. Rates are None if nothing was judged."""

    run_id: str
    started_at: datetime
    status: str
    #: Share of contradictory pairs, and of questions with one, by the judge.
    rate: Interval | None
    question_rate: Interval | None
    #: `rate` regardless of the pairs with an error: if none contradicts, and if all do. None without an error.
    bounds: tuple[float, float] | None
    #: `rate` corrected by people's labels. `errors_unlabelled`: its interval allows for all that the pairs with an error may be.
    corrected: Interval | None
    errors_unlabelled: bool
    skipped_labels: int
    intended: int
    judged: int
    coverage: float | None
    errors: int
    contradictions: int
    cost_usd: float
    #: Findings by state: new, persisting, reopened, resolved, gone.
    findings: dict[str, int]


class JudgedSeries(Document):
    """Runs that were measured in the same way, the oldest first."""

    model: str
    prompt: str
    sampling: str
    scope: str
    runs: tuple[JudgedRun, ...]
    #: Newest run with a rate.
    latest: JudgedRun | None
    #: How the rate changed between the last two runs, over the pairs that both judged, and their number.
    change: Interval | None
    change_pairs: int


class Contradiction(Document):
    """A finding, as it was last seen."""

    finding_id: str
    pair_id: str
    #: open, gone, resolved or refuted; `seen_as`: new, persisting or reopened when it was last seen.
    state: str
    seen_as: str
    severity: str
    verdict: str
    confidence: float
    question: str
    documents: tuple[str, ...]
    #: Pairs with the finding in this state, the number of their documents, and the first of these.
    pairs: int
    document_count: int
    all_documents: tuple[str, ...]
    #: Word for word from the two texts.
    claims: tuple[str, ...]
    reason: str
    next_step: str
    confirmed: bool
    last_seen: datetime


class Found(Document):
    """Findings of the range by state, and those of the chosen state, the most severe first."""

    counts: dict[str, int]
    rows: tuple[Contradiction, ...]


class Contradictions(Document):
    """The rate of contradictions by series, the newest first, and findings."""

    project: str
    #: Projects to choose from, if the link names none.
    projects: tuple[str, ...]
    state: str
    series: Panel[tuple[JudgedSeries, ...]]
    findings: Panel[Found]
    #: What to do next: why, and a command.
    why: str
    command: str


async def read(ask: Ask) -> Contradictions:
    """Read runs and findings at the same time."""
    project, projects = await project_of(ask, projects_with_judged_pairs)
    state = ask.text("state", "open")
    series: Panel[tuple[JudgedSeries, ...]] = Panel(state="ready", value=())
    findings: Panel[Found] = Panel(state="ready", value=found_of((), state))
    if project:
        span = (project, ask.scope.from_ms, ask.scope.to_ms)
        trends, rows = await asyncio.gather(
            ask.panel(trends_in, *span, most=RUNS_SHOWN), ask.panel(findings_in, *span, every=True)
        )
        series = trends.holding(None if trends.value is None else series_of(trends.value))
        findings = rows.holding(None if rows.value is None else found_of(rows.value, state))
    why, command = next_of(project, series.value)
    return Contradictions(
        project=project, projects=projects, state=state, series=series, findings=findings, why=why, command=command
    )


def series_of(trends: "Sequence[Trend]") -> tuple[JudgedSeries, ...]:
    """Return series for the page, the one with the newest run first. Pure."""
    found = []
    for trend in reversed(trends):
        runs = tuple(_run(point) for point in trend.points)
        found.append(
            JudgedSeries(
                model=trend.series.model,
                prompt=trend.series.prompt,
                sampling=trend.series.sampling,
                scope=trend.series.scope,
                runs=runs,
                latest=next((run for run in reversed(runs) if run.rate is not None), None),
                change=_interval(trend.change),
                change_pairs=0 if trend.change is None else trend.change.judged,
            )
        )
    return tuple(found)


def _run(point: "Point") -> JudgedRun:
    return JudgedRun(
        run_id=point.run_id,
        started_at=point.started_at,
        status=point.status.value,
        rate=None if point.rate is None else Interval(estimate=point.rate[0], low=point.rate[1], high=point.rate[2]),
        question_rate=None
        if point.query_rate is None
        else Interval(estimate=point.query_rate[0], low=point.query_rate[1], high=point.query_rate[2]),
        bounds=point.bounds,
        corrected=_interval(point.corrected),
        errors_unlabelled=point.corrected is not None and point.corrected.method == "ppi_bounds",
        skipped_labels=point.skipped,
        intended=point.intended,
        judged=point.judged,
        coverage=point.coverage,
        errors=point.judge_errors,
        contradictions=point.contradictions,
        cost_usd=point.cost_usd,
        findings={state: count for state, count in point.findings.items() if count},
    )


def _interval(rate: "Rate | None") -> Interval | None:
    if rate is None or rate.estimate is None or rate.lower is None or rate.upper is None:
        return None
    return Interval(estimate=rate.estimate, low=rate.lower, high=rate.upper)


def found_of(rows: Sequence[Mapping[str, Any]], state: str) -> Found:
    """Return findings for the page. Pure."""
    findings = [
        Contradiction(
            finding_id=row["finding_id"],
            pair_id=row["pair_id"],
            state=_state(row),
            seen_as=row["state"],
            severity=row["severity"],
            verdict=row["verdict"],
            confidence=row["confidence"],
            question=row["query"],
            documents=tuple(row["documents"]),
            pairs=row["pairs"],
            document_count=len(row["all_documents"]),
            all_documents=tuple(row["all_documents"][:DOCUMENTS_SHOWN]),
            claims=tuple(row["claims"]),
            reason=row["reason"],
            next_step=row["next_step"],
            confirmed=row["label"] == "confirm",
            last_seen=row["last_seen"],
        )
        for row in rows
    ]
    counts = Counter(each.state for each in findings)
    chosen = [each for each in findings if state in (each.state, "all")]
    return Found(
        counts={name: counts[name] for name in STATES[:-1]} | {"all": len(findings)},
        rows=tuple(chosen[:FINDINGS_SHOWN]),
    )


def _state(row: Mapping[str, Any]) -> str:
    if row["state"] in ("gone", "resolved"):
        return str(row["state"])
    return "refuted" if row["label"] == "refute" else "open"


def next_of(project: str, series: tuple[JudgedSeries, ...] | None) -> tuple[str, str]:
    """Return what to do next, and its command; empty if the page says it. Pure."""
    if not series:
        return "", ""
    latest, of = series[0].runs[-1], f"--project {project}"
    if latest.status == "judge_failed":
        return "The judge failed on every pair of the newest run.", "assay doctor"
    if latest.corrected is None:
        why = "The rate counts what the judge says. Label a sample of its pairs to correct it."
        return why, f"assay eval contradictions review --queue 100 {of}"
    if latest.errors_unlabelled:
        why = "The interval allows for all that the pairs with a judge error may be. Label some of them to narrow it."
        return why, f"assay eval contradictions review --queue 100 {of}"
    return "After you correct a document, judge the pairs again.", f"assay eval contradictions run --from-capture {of}"


PAGE = Page(
    "contradictions",
    "/contradictions",
    "Contradictions",
    "Do retrieved documents contradict each other?",
    read,
    Contradictions,
    (Parameter("state", "Findings in this state.", STATES, "open"),),
    span="30d",
    by_project=True,
    within="runs",
    sql="SELECT project, started_at, status, rate, rate_low, rate_high, judged, intended, judge_errors, scope\n"
    "FROM contradiction_runs ORDER BY started_at DESC LIMIT 100",
    command="assay eval contradictions trend --since {span}{and_project}",
)
