"""Reporters: send a run to an experiment tracker.

A reporter is created by a function that takes a destination (or None) and is listed in the entry points
`assay.reporters`, so another package can add its own: `my-tracker = "my_package:my_reporter"`. Included are files,
otel, mlflow, braintrust and langfuse; the command line adds clickhouse.

Only names, ids and numbers are sent. A report contains questions and expected answers only if its creator added them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Protocol

from assay_evals.dataset.model import Case
from assay_evals.errors import EvalsError
from assay_evals.field_names import nearest
from assay_evals.run.model import CaseResult, Run

GROUP = "assay.reporters"


class ReporterError(EvalsError):
    """A run that could not be sent.

    The message says where to and why, never its content; a retry is safe.
    """


@dataclass(frozen=True)
class Report:
    """A run, and the cases whose texts may be sent, by id: none by default."""

    run: Run
    texts: Mapping[str, Case] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Return what was measured and how, as text and numbers."""
        config = self.run.config
        facts = {
            "project": config.project,
            "dataset": config.dataset,
            "dataset_version": config.dataset_version,
            "dataset_fingerprint": config.dataset_fingerprint,
            "target": config.target,
            "k": config.k,
            "judge": config.judge,
            "label": config.label,
            "code_version": config.code_version,
            "branch": config.branch,
            "dirty": config.dirty,
        }
        return {name: value for name, value in facts.items() if value is not None}

    def input_of(self, result: CaseResult) -> str | None:
        """Return the question, if it may be sent."""
        case = self.texts.get(result.case_id)
        return case.query if case else None

    def expected_of(self, result: CaseResult) -> str | None:
        """Return the expected answer, if there is one that may be sent."""
        case = self.texts.get(result.case_id)
        return case.expected_answer if case else None


class Reporter(Protocol):
    """Destination of a run."""

    def report(self, report: Report) -> str:
        """Send a run; a second time replaces the first. Returns its location. Raises `ReporterError`."""


MakeReporter = Callable[[str | None], Reporter]


def open_reporter(named: str) -> Reporter:
    """Return a reporter by `NAME` or `NAME=WHERE`.

    Raises `ReporterError` for an unknown one, and for one that cannot be set up.
    """
    name, _, where = named.partition("=")
    entry_points_by_name = {each.name: each for each in entry_points(group=GROUP)}
    if name not in entry_points_by_name:
        raise ReporterError(
            f"no reporter {name[:64]!r}{nearest(name[:64], entry_points_by_name)}; there are: {', '.join(sorted(entry_points_by_name))}"
        )
    make: MakeReporter = entry_points_by_name[name].load()
    return make(where or None)


def known_scores(result: CaseResult) -> dict[str, float]:
    """Return the applicable metrics of a case."""
    return {name: float(value) for name, value in result.metrics.items() if value is not None}
