"""Reporters: a run handed over to where people already look at experiments.

A reporter is made by a function that takes where to report to (or None) and is named in the entry points `assay.reporters`, so another
package can bring its own: `my-tracker = "my_package:my_reporter"`. Shipped here: files, otel, mlflow, braintrust, langfuse; the command
line brings clickhouse.

Only names, ids and numbers are handed over. Questions and expected answers are in a report when its maker put them there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Protocol

from assay_evals.dataset import Case
from assay_evals.dataset_fields import nearest
from assay_evals.errors import EvalsError
from assay_evals.runs import CaseResult, Run

GROUP = "assay.reporters"


class ReporterError(EvalsError):
    """A run that could not be handed over. Says where to and why, never what was in it; doing it again is safe."""


@dataclass(frozen=True)
class Report:
    """A run, and the cases whose texts may be told, by id: none unless somebody asked for it."""

    run: Run
    texts: Mapping[str, Case] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """What was measured with what, in words and numbers."""
        config = self.run.config
        found = {
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
        return {name: value for name, value in found.items() if value is not None}

    def input_of(self, result: CaseResult) -> str | None:
        """The question, where it may be told."""
        case = self.texts.get(result.case_id)
        return case.query if case else None

    def expected_of(self, result: CaseResult) -> str | None:
        """The expected answer, where there is one that may be told."""
        case = self.texts.get(result.case_id)
        return case.expected_answer if case else None


class Reporter(Protocol):
    """Where a run is handed over."""

    def report(self, report: Report) -> str:
        """Hand a run over; a second time replaces the first. Returns where it is now. Raises `ReporterError`."""


MakeReporter = Callable[[str | None], Reporter]


def open_reporter(named: str) -> Reporter:
    """A reporter by `NAME` or `NAME=WHERE`. Raises `ReporterError` for an unknown one, and for one that cannot be set up."""
    name, _, where = named.partition("=")
    known = {each.name: each for each in entry_points(group=GROUP)}
    if name not in known:
        raise ReporterError(
            f"no reporter {name[:64]!r}{nearest(name[:64], known)}; there are: {', '.join(sorted(known))}"
        )
    make: MakeReporter = known[name].load()
    return make(where or None)


def known_scores(result: CaseResult) -> dict[str, float]:
    """The metrics of a case that apply to it."""
    return {name: float(value) for name, value in result.metrics.items() if value is not None}
