"""Count, compare and merge datasets. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from assay_evals.dataset.model import Dataset, DatasetError, normalise


@dataclass(frozen=True)
class DatasetStats:
    """Number of cases of each kind."""

    cases: int
    by_query_type: dict[str, int]
    by_source: dict[str, int]
    by_complexity: dict[str, int]
    judged_documents: int
    mean_relevant: float
    with_answer: int
    duplicate_queries: int


def dataset_stats(dataset: Dataset) -> DatasetStats:
    """Count the cases of a dataset."""
    relevant = [sum(grade > 0 for grade in case.relevance.values()) for case in dataset.cases]
    queries = Counter(normalise(case.query) for case in dataset.cases)
    ranked = [count for count in relevant if count]
    return DatasetStats(
        cases=len(dataset.cases),
        by_query_type=dict(Counter(case.query_type for case in dataset.cases).most_common()),
        by_source=dict(Counter(case.source for case in dataset.cases).most_common()),
        by_complexity=dict(Counter(case.complexity for case in dataset.cases).most_common()),
        judged_documents=len({document for case in dataset.cases for document in case.relevance}),
        mean_relevant=sum(ranked) / len(ranked) if ranked else 0.0,
        with_answer=sum(case.expected_answer is not None for case in dataset.cases),
        duplicate_queries=sum(count - 1 for count in queries.values()),
    )


@dataclass(frozen=True)
class DatasetDiff:
    """Ids of cases, sorted. `changed` contains the fields that differ."""

    added: list[str]
    removed: list[str]
    changed: dict[str, list[str]]

    @property
    def same(self) -> bool:
        """True if nothing differs."""
        return not (self.added or self.removed or self.changed)


def diff_datasets(old: Dataset, new: Dataset) -> DatasetDiff:
    """Return the changes of the cases between two datasets."""
    before, after = ({case.id: case for case in each.cases} for each in (old, new))
    changed = {}
    for name in sorted(before.keys() & after.keys()):
        one, other = before[name].model_dump(mode="json"), after[name].model_dump(mode="json")
        if fields := sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)):
            changed[name] = fields
    return DatasetDiff(sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys()), changed)


def merge_datasets(base: Dataset, others: Iterable[Dataset], *, version: str | None = None) -> Dataset:
    """Merge the cases of all datasets, in order.

    A case in several datasets must be the same in each, else `DatasetError` names it.
    """
    merged = {case.id: case for case in base.cases}
    problems = []
    for other in others:
        problems += [
            f"case {case.id} differs between the datasets: rename one, or take one away"
            for case in other.cases
            if merged.setdefault(case.id, case) != case
        ]
    if problems:
        raise DatasetError(problems)
    return base.model_copy(update={"cases": list(merged.values()), "version": version or base.version})
