"""Scorers, rules and floors from the options `--scorer` and `--rules`."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_evals.compare.floors import FloorCheck
    from assay_evals.compare.rules_file import RulesFile
    from assay_evals.dataset.model import Case, Dataset
    from assay_evals.dataset.scorer_specs import ScorerSpec
    from assay_evals.metrics.scorers import Rubric, Scoring
    from assay_evals.run.model import CaseResult, Run

SLICE_FIELDS = ("query_type", "tag", "source", "complexity")


def rules_of(path: Path | None) -> "RulesFile":
    """Read the rules of `--rules`, or none. Raises `OperationError`."""
    from assay_evals.compare.rules_file import RulesFile, read_rules
    from assay_evals.errors import EvalsError

    if path is None:
        return RulesFile()
    try:
        return read_rules(path)
    except EvalsError as error:
        raise OperationError("invalid", f"--rules: {error}") from None


def fields_of(slices: list[str] | None, rules: "RulesFile") -> list[str]:
    """Return the fields to slice by. Raises `OperationError` for an unknown field."""
    from assay_evals.field_names import nearest

    for field in slices or []:
        if field not in SLICE_FIELDS:
            near = nearest(field, SLICE_FIELDS)
            raise OperationError(
                "invalid", f"--slice: no field {field!r}{near}: it is one of {', '.join(SLICE_FIELDS)}"
            )
    return list(dict.fromkeys([*(slices or []), *rules.fields]))


def part_of(
    golden: "Dataset", limit: int | None, sample: int | None, seed: int, fields: list[str]
) -> "tuple[Dataset, Dataset, dict[str, Any]]":
    """Return the dataset of a run, the cases to ask, and the description of a sample.

    The first N cases are a separate dataset. A sample, stratified by the fields (by default `query_type`), is a part of the whole dataset.
    """
    from assay_evals.dataset.sampling import sampled

    if limit is not None and sample is not None:
        raise OperationError("invalid", "--sample and --limit each choose cases: pass one of them")
    if limit is not None:
        if limit < 1:
            raise OperationError("invalid", f"--limit: {limit} is below 1")
        golden = golden.model_copy(update={"cases": golden.cases[:limit]})
    if sample is None:
        return golden, golden, {}
    by = fields or ["query_type"]
    cases = sampled(golden.cases, sample, seed=seed, by=by)
    chosen = {"cases": len(cases), "seed": seed, "by": by}
    return golden, golden.model_copy(update={"cases": cases}), chosen


def expect_slices(rules: "RulesFile", fields: "Iterable[str]", of: "Iterable[Case | CaseResult]") -> None:
    """Refuse a floor of an empty slice, and one of the `fields` that no case has.

    Raises `OperationError`.
    """
    from assay_evals.compare.slices import known_values
    from assay_evals.errors import EvalsError

    values = known_values(of)
    try:
        rules.expect_slices(values)
    except EvalsError as error:
        raise OperationError("invalid", f"--rules: {error}") from None
    if missing := next((field for field in fields if not values[field]), None):
        raise OperationError("invalid", f"--slice: no case has a {missing}")


def scoring_of(
    given: list[str] | None, rules: "RulesFile", cases: "Iterable[Case]", rubric: "Rubric | None", deadline_s: float
) -> "Scoring":
    """Return the scorers of a run. Raises `OperationError` for an unusable scorer or an unknown metric."""
    from assay_evals.dataset.scorer_specs import spec_of
    from assay_evals.errors import EvalsError
    from assay_evals.metrics.scorers import Scoring

    cases = list(cases)
    specs: list[ScorerSpec] = [*rules.scorers]
    for text in given or []:
        try:
            specs.append(spec_of(text))
        except EvalsError as error:
            raise OperationError("invalid", f"--scorer: {error}") from None
    names = [spec.metric for spec in (*specs, *(spec for case in cases for spec in case.scorers))]
    expect_known(rules, names)
    try:
        scoring = Scoring(specs, rubric=rubric, deadline_s=deadline_s)
        scoring.expect_judge(cases)
    except EvalsError as error:
        raise OperationError("invalid", f"--scorer: {error}" if given else f"{error}") from None
    return scoring


def expect_known(rules: "RulesFile", measured: Iterable[str]) -> None:
    """Refuse a rule of a metric that is neither Assay's nor `measured`. Raises `OperationError`."""
    from assay_evals.errors import EvalsError

    try:
        rules.expect_known(list(dict.fromkeys(measured)))
    except EvalsError as error:
        raise OperationError("invalid", f"--rules: {error}") from None


def floors_of(run: "Run", rules: "RulesFile", rubrics: "Collection[str]") -> "list[FloorCheck]":
    """Check the floors of a run; `rubrics` are the metrics that a model gives."""
    from assay_evals.compare.floors import floor_checks

    return floor_checks(run, rules.rules(), rubrics)


def as_json(found: "Iterable[FloorCheck]") -> list[Mapping[str, object]]:
    """Return the floors for the report of a run."""
    from dataclasses import asdict

    return [asdict(each) for each in found]
