"""Slices of cases: by query type, tag, source or complexity. Pure."""

from assay_evals.dataset.model import Case

#: Fields by which cases can be sliced.
FIELDS = ("query_type", "tag", "source", "complexity")


def case_slices(case: Case) -> dict[str, list[str]]:
    """Return the fields of a case stored in its results, so that a run can be sliced without the dataset."""
    return {"tag": list(case.tags), "source": [case.source], "complexity": [case.complexity]}
