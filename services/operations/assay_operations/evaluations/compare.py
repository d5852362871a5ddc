"""Compare two runs by the rules that options name."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError
from assay_operations.evaluations import run_store
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.reports import expect_place, write_report
from assay_operations.evaluations.rules import expect_known, expect_slices, fields_of, rules_of
from assay_operations.evaluations.runs import find_run
from assay_operations.numbers import a_number

if TYPE_CHECKING:
    from assay_evals.compare.compare_runs import PairedRuns
    from assay_evals.compare.rules_file import RulesFile
    from assay_evals.compare.verdicts import Rule, Verdict
    from assay_evals.dataset.model import Dataset
    from assay_evals.run.model import Run


@dataclass(frozen=True)
class CompareRequest:
    """Options of `assay eval compare`: two runs by name or folder, rules, and the reports to write."""

    baseline: str
    candidate: str
    #: The folder of runs.
    runs: Path
    #: Read the runs from the store, with the credentials of `data`.
    in_store: bool
    data: Path
    thresholds: list[str] | None = None
    floors: list[str] | None = None
    stages: list[str] | None = None
    rules: Path | None = None
    slices: list[str] | None = None
    seed: int = 0
    #: The verdict that inconclusive metrics count as.
    inconclusive: str = "inconclusive"
    dataset: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None
    html: Path | None = None


def compare_runs(request: CompareRequest) -> "tuple[PairedRuns, Verdict]":
    """Compare two runs case by case, and write the reports. Raises `OperationError`."""
    from assay_evals.compare.verdicts import Verdict

    held = rules_of(request.rules)
    holding = rules_given(held, request.thresholds, request.floors, request.stages)
    for option, path in (("--markdown", request.markdown), ("--junit", request.junit), ("--html", request.html)):
        expect_place(option, path)
    before, after = (
        run_store.stored(name, request.data) if request.in_store else find_run(name, request.runs)
        for name in (request.baseline, request.candidate)
    )
    golden = load(request.dataset, "--dataset") if request.dataset else None
    if golden and not any(was_asked(golden, run) for run in (before, after)):
        raise OperationError(
            "invalid", f"--dataset: {request.dataset} is not the dataset of these runs: pass the right one, or omit it"
        )
    paired = compared(
        before,
        after,
        held,
        holding,
        slices=request.slices,
        seed=request.seed,
        thresholds=request.thresholds,
        floors=request.floors,
        stages=request.stages,
    )
    counts_as = Verdict(request.inconclusive)
    verdict = paired.verdict(counts_as)
    _write_reports(request, paired, verdict, counts_as, golden)
    return paired, verdict


def _write_reports(
    request: CompareRequest, paired: "PairedRuns", verdict: "Verdict", counts_as: "Verdict", golden: "Dataset | None"
) -> None:
    from assay_evals.report.html import html
    from assay_evals.report.junit import junit
    from assay_evals.report.markdown import markdown

    if request.markdown:
        write_report("--markdown", request.markdown, markdown(paired, verdict))
    if request.junit:
        write_report("--junit", request.junit, junit(paired, inconclusive=counts_as))
    if request.html:
        cases = golden.cases if golden else []
        right = {case.id: {name for name, grade in case.relevance.items() if grade > 0} for case in cases}
        write_report("--html", request.html, html(paired, verdict, relevance=right))


def compared(
    before: "Run",
    after: "Run",
    held: "RulesFile",
    holding: "dict[str, Rule]",
    *,
    slices: list[str] | None,
    seed: int,
    thresholds: list[str] | None,
    floors: list[str] | None,
    stages: list[str] | None,
) -> "PairedRuns":
    """Compare two runs case by case. Raises `OperationError` for a rule without effect."""
    from assay_evals.compare.compare_runs import compare_runs

    expect_known(held, (*before.names, *after.names))
    fields = fields_of(slices, held)
    expect_slices(held, fields, after.results)
    paired = compare_runs(before, after, rules=holding, slices=fields, floors=held.slice_floors(), seed=seed)
    expect_measured("--threshold", thresholds, paired)
    expect_measured("--floor", floors, paired)
    in_file = [f"{metric}={rule.floor}" for metric, rule in held.metrics.items() if rule.floor is not None]
    expect_measured("--rules: a floor", in_file, paired)
    lost = paired.comparison.metrics_only_baseline  # these fail, and the report states it
    blocking = [each for each in stages or [] if each.endswith("=block") and each.rpartition("=")[0] not in lost]
    expect_measured("--stage", blocking, paired)
    expect_named("--stage", stages, [*before.names, *after.names])
    return paired


def was_asked(golden: "Dataset", found: "Run") -> bool:
    """Return True if a run is over this dataset, or (as with `--limit`) a part of it."""
    cases = {result.case_id for result in found.results}
    part = golden.model_copy(update={"cases": [case for case in golden.cases if case.id in cases]})
    return found.config.dataset_fingerprint in (golden.fingerprint, part.fingerprint)


def rules_given(
    held: "RulesFile", thresholds: list[str] | None, floors: list[str] | None, stages: list[str] | None
) -> "dict[str, Rule]":
    """Return a file's rules with the command line's changes. Raises `OperationError` naming the option."""
    from assay_evals.compare.rules_file import changed
    from assay_evals.compare.verdicts import Stage
    from assay_evals.metrics.metric_names import is_share

    found = held.rules()
    changes: dict[str, dict[str, Any]] = {}
    for metric, text in pairs("--threshold", thresholds):
        value = a_number(text, "--threshold")
        if value is None or value < 0:
            raise OperationError("invalid", f"--threshold: {metric}: below 0")
        changes.setdefault(metric, {})["threshold"] = value
    for metric, text in pairs("--floor", floors):
        value = a_number(text, "--floor")
        if value is None or (is_share(metric) and not 0 <= value <= 1):
            raise OperationError("invalid", f"--floor: {metric}: {text} is not between 0 and 1, where shares are")
        changes.setdefault(metric, {})["floor"] = value
    for metric, text in pairs("--stage", stages):
        if text not in list(Stage):
            raise OperationError("invalid", f"--stage: {text!r} is not one of {', '.join(Stage)}")
        changes.setdefault(metric, {})["stage"] = Stage(text)
    for metric, change in changes.items():
        found[metric] = changed(found, metric, change)
    return found


def pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    """Split `METRIC=VALUE` arguments of an option. Raises `OperationError` naming the option."""
    pairs = [(each.rpartition("=")[0], each.rpartition("=")[2]) for each in given or []]
    if any(not metric for metric, _ in pairs):
        raise OperationError("invalid", f"{option}: use METRIC=VALUE, for example {option} mrr=0.05")
    return pairs


def expect_named(option: str, given: list[str] | None, measured: list[str]) -> None:
    """Expect known metrics. A stage that does not block may name a metric that these runs do not measure."""
    from assay_evals.compare.rules_file import expect_metric
    from assay_evals.errors import EvalsError

    for metric, _ in pairs(option, given):
        try:
            expect_metric(metric, measured, metric)
        except EvalsError as error:
            raise OperationError("invalid", f"{option}: {error}") from None


def expect_measured(option: str, given: list[str] | None, paired: "PairedRuns") -> None:
    """Expect measured metrics: a rule for another metric would silently have no effect."""
    from assay_evals.dataset.scorer_specs import SCORE
    from assay_evals.field_names import nearest

    names = [each.metric for each in paired.comparison.metrics]
    for metric, _ in pairs(option, given):
        if metric not in names:
            scored = "run both with the same --rules or --scorer; " if metric.startswith(SCORE) else ""
            raise OperationError(
                "invalid",
                f"{option}: the runs do not both measure {metric}{nearest(metric, names)}; {scored}"
                f"they do: {', '.join(names) or 'nothing'}",
            )
