"""The rate of contradictions over time: one series for each prompt, model, sampling and scope. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from assay_evals.contradictions.rate import Rate
from assay_evals.contradictions.report import Series, Status, bounds_text

BAR = 30


@dataclass(frozen=True)
class Point:
    """A run. Rates are None if it judged nothing: a gap, never 0.

    `rate` and `query_rate`: estimate and 95 % interval. `corrected`: the rate corrected by people's labels, if there are enough.
    """

    run_id: str
    started_at: datetime
    status: Status
    series: Series
    rate: tuple[float, float, float] | None
    query_rate: tuple[float, float, float] | None
    intended: int
    judged: int
    judge_errors: int
    contradictions: int
    cost_usd: float
    #: Findings by state.
    findings: Mapping[str, int]
    #: Pairs by verdict.
    verdicts: Mapping[str, int]
    corrected: Rate | None = None
    #: Ends of the interval of `rate` regardless of the pairs with an error; None without any, or if it is not known.
    bounds: tuple[float, float] | None = None
    #: Pairs that a person skipped in the queue and that have no label.
    skipped: int = 0

    @property
    def coverage(self) -> float | None:
        """Judged by intended."""
        return self.judged / self.intended if self.intended else None

    @property
    def error_share(self) -> float | None:
        """Pairs that failed, of those that were tried."""
        tried = self.judged + self.judge_errors
        return self.judge_errors / tried if tried else None


@dataclass(frozen=True)
class Trend:
    """The runs of a series, the oldest first.

    `change`: of the rate over the pairs that both of the last two runs with a rate judged.
    """

    series: Series
    points: tuple[Point, ...]
    change: Rate | None = None


def by_series(points: Sequence[Point]) -> list[tuple[Series, tuple[Point, ...]]]:
    """Return the runs of each series, the oldest first; the series with the newest run is last."""
    found: dict[Series, list[Point]] = {}
    for point in sorted(points, key=lambda each: (each.started_at, each.run_id)):
        of_series = found.pop(point.series, [])
        found[point.series] = [*of_series, point]
    return [(series, tuple(each)) for series, each in found.items()]


def trend_document(trends: Sequence[Trend], since: str) -> dict[str, Any]:
    """Return the trend as JSON: `rows`, the newest first, and what is known of each series."""
    rows = [_row(point, number) for number, trend in enumerate(trends) for point in trend.points]
    return {
        "schema_version": 1,
        "since": since,
        "rows": sorted(rows, key=lambda row: (row["started_at"], row["run_id"]), reverse=True),
        "series": [
            {
                **asdict(trend.series),
                "series": number,
                "runs": len(trend.points),
                "change": None if trend.change is None else asdict(trend.change),
            }
            for number, trend in enumerate(trends)
        ],
    }


def _row(point: Point, series: int) -> dict[str, Any]:
    return {
        "run_id": point.run_id,
        "series": series,
        "started_at": point.started_at.isoformat(timespec="milliseconds"),
        "run_status": point.status.value,
        "rate": _rate(point.rate),
        "rate_bounds": None if point.bounds is None else list(point.bounds),
        "query_rate": _rate(point.query_rate),
        "corrected": None if point.corrected is None else asdict(point.corrected),
        "skipped_labels": point.skipped,
        "coverage": point.coverage,
        "pairs_intended": point.intended,
        "pairs_judged": point.judged,
        "judge_errors": point.judge_errors,
        "judge_error_share": point.error_share,
        "total_contradictions_flagged": point.contradictions,
        "findings_by_state": dict(point.findings),
        "verdict_breakdown": dict(point.verdicts),
        "cost_usd": point.cost_usd,
    }


def _rate(rate: tuple[float, float, float] | None) -> dict[str, float] | None:
    return None if rate is None else dict(zip(("estimate", "lower", "upper"), rate, strict=True))


def trend_text(trends: Sequence[Trend]) -> str:
    """Return the trend for people: rows with bars for each series, on one scale."""
    most = max((point.rate[2] for trend in trends for point in trend.points if point.rate), default=1.0)
    return "\n".join(line for trend in trends for line in _lines(trend, most or 1.0)).rstrip("\n")


def _lines(trend: Trend, most: float) -> Iterator[str]:
    series = trend.series
    yield f"model {series.model}, prompt {series.prompt}"
    yield f"  {series.scope}; {series.sampling}"
    for point in trend.points:
        when = f"  {point.started_at:%Y-%m-%d %H:%M}"
        if point.rate is None:
            why = "judge failed" if point.status is Status.JUDGE_FAILED else "nothing judged"
            yield f"{when}  {why}: no rate"
            continue
        share, low, high = point.rate
        new = ", ".join(f"{count} {state}" for state, count in point.findings.items() if count)
        yield (
            f"{when}  {bar(share, high, most)}  {share:6.1%} [{low:.1%}, {high:.1%}]  coverage {point.coverage or 0:.0%}, "
            f"errors {point.error_share or 0:.0%}" + (f"; {new}" if new else "")
        )
        yield from (f"  {'':16}  {note}" for note in notes_of(point))
    if (change := trend.change) is not None and change.estimate is not None:
        yield (
            f"  last change, over {change.judged:,} pairs judged both times: {change.estimate * 100:+.1f} points "
            f"[{(change.lower or 0) * 100:+.1f}, {(change.upper or 0) * 100:+.1f}]"
        )
    yield ""


def notes_of(point: Point) -> Iterator[str]:
    """Yield the corrected rate of a run, or what its errors leave open."""
    corrected = point.corrected
    if corrected is not None:
        yield f"corrected by labels: {corrected.estimate:.1%} [{corrected.lower:.1%}, {corrected.upper:.1%}]"
        if corrected.method == "ppi_bounds":
            yield (
                f"no label of the {corrected.errors:,} pairs with a judge error yet: the corrected interval allows for all that they may be"
            )
        if point.skipped:
            yield f"{point.skipped:,} skipped pairs: the corrected rate takes them to be like the labelled ones"
    elif point.bounds is not None:
        yield bounds_text(point.judge_errors, "pairs", point.bounds)


def bar(share: float, high: float, most: float) -> str:
    """Return a bar of fixed width: `#` up to the rate, `-` up to the end of its interval."""
    filled, end = round(BAR * share / most), round(BAR * high / most)
    return ("#" * filled + "-" * (end - filled)).ljust(BAR, ".")
