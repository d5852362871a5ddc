"""Report a comparison as Markdown for a pull request. Pure."""

from collections.abc import Sequence

from assay_evals.compare.compare_runs import PairedRuns
from assay_evals.compare.slices import SliceChange, SliceCheck
from assay_evals.compare.verdicts import Verdict
from assay_evals.report.wording import (
    _INTERVALS,
    _P,
    METRIC_COLUMNS,
    _between,
    metric_cells,
    notes,
    problems,
    shown_metric,
    verdict_in_words,
)
from assay_schema.printable import plain

_MARKS = {Verdict.PASS: "✅", Verdict.FAIL: "❌", Verdict.INCONCLUSIVE: "❔"}


def markdown(paired: PairedRuns, verdict: Verdict) -> str:
    """Return a report for a pull request.

    Contains ids of cases and documents, no questions and no answers.
    """
    comparison = paired.comparison
    lines = [
        f"## {_MARKS[verdict]} Retrieval evaluation: {verdict.value}",
        "",
        f"{plain(_between(paired))}. V{plain(verdict_in_words(paired, verdict))[1:]}.",
        "",
        *(f"- **{plain(problem)}**" for problem in problems(paired)),
        "",
        f"| | {' | '.join(METRIC_COLUMNS)} |",
        "| --- " * (1 + len(METRIC_COLUMNS)) + "|",
    ]
    for m in comparison.metrics:
        name, *figures = metric_cells(m)
        cells = [_MARKS[m.verdict], plain(name), *figures]
        lines.append(f"| {' | '.join(cells)} |")
    metric = shown_metric(paired)
    if metric and (worst := paired.worst(metric, 5)):
        cases = ", ".join(f"`{plain(before.case_id)}` {delta:+.2f}" for before, _, delta in worst)
        lines += ["", f"Worst by {plain(metric)}: {cases}"]
    lines += slices_markdown([*paired.checks, *paired.changes])
    lines += [
        "",
        " ".join(
            [
                *map(plain, notes(paired)),
                f"Seed {comparison.seed}, {comparison.resamples:,} resamples. {_INTERVALS}. {_P}.",
            ]
        ),
    ]
    return "\n".join(lines) + "\n"


def slices_markdown(found: Sequence[SliceCheck | SliceChange]) -> list[str]:
    """Return a table of slices; empty without any."""
    if not found:
        return []
    head = ["", "| | slice | mean or change [95 %] | stage |", "| --- | --- | --- | --- |"]
    marks = [_MARKS[each.verdict] if each.verdict else "" for each in found]
    rows = zip(marks, found, strict=True)
    return [*head, *(f"| {mark} | {plain(each.name)} | {each} | {each.stage.value} |" for mark, each in rows)]
