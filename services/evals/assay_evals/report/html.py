"""Report a comparison as one HTML page without scripts. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Template

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.sides import sides
from assay_evals.compare.slices import SliceChange, SliceCheck
from assay_evals.compare.verdicts import Verdict
from assay_evals.report.changes import Move, metric_changes, moves, type_changes
from assay_evals.report.wording import _INTERVALS, _P, _between, notes, problems, shown_metric, verdict_in_words
from assay_evals.run.model import CaseResult
from assay_ui.rendering import file_templates

#: Cases that a report shows side by side, and results of each.
_CASES, _RESULTS = 10, 10


@dataclass(frozen=True)
class _Case:
    """A case whose metric got worse, with the result lists of both runs."""

    case_id: str
    delta: float
    sides: tuple[tuple[str, Sequence[Move], str], ...]


def html(paired: PairedRuns, verdict: Verdict, *, relevance: Mapping[str, set[str]] | None = None) -> str:
    """Return one page without scripts or addresses, which looks like the console's comparison.

    It shows the verdict, changes with their intervals, query types, slices, and the worst cases side by side.

    `relevance`, by case id, marks the documents that should have come back; without it the page says which option does.
    """
    metric = shown_metric(paired) or ""
    page = _template().render(
        verdict=verdict.value,
        between=_between(paired),
        reason=verdict_in_words(paired, verdict),
        problems=problems(paired),
        notes=notes(paired),
        metrics=metric_changes(paired),
        metric=metric,
        types=type_changes(paired, metric),
        slices=[*_slices([*paired.checks, *paired.changes])],
        runs=sides(paired),
        cases=[*_cases(paired, metric, relevance)] if metric else [],
        marked=bool(relevance),
        comparison=paired.comparison,
        method=f"{_INTERVALS}. {_P}.",
    )
    return f"{page}\n"


@cache
def _template() -> Template:
    return file_templates("assay_evals", "report").get_template("page.html")


def _slices(found: Sequence[SliceCheck | SliceChange]) -> Iterator[tuple[str, str, str, str]]:
    for each in found:
        yield each.verdict.value if each.verdict else "", each.name, str(each), each.stage.value


def _cases(paired: PairedRuns, metric: str, relevance: Mapping[str, set[str]] | None) -> Iterator[_Case]:
    for before, after, delta in paired.worst(metric, _CASES):
        expected = frozenset(relevance.get(before.case_id, ())) if relevance else None
        yield _Case(
            before.case_id,
            delta,
            (
                ("Baseline", _results(before, after, expected), before.error or ""),
                ("Candidate", _results(after, before, expected), after.error or ""),
            ),
        )


def _results(own: CaseResult, other: CaseResult, expected: frozenset[str] | None) -> tuple[Move, ...]:
    return moves(own.retrieved, other.retrieved, expected)[:_RESULTS]
