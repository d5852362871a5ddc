"""Summary of a run: accuracy and recall by question type with intervals, and retrieval. Pure.

An error counts as wrong in each share, and each share has a second rate without errors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay_evals.longmemeval.reading import by_type
from assay_evals.longmemeval.results import BY_TYPE, Result
from assay_runtime.shares import wilson


@dataclass(frozen=True)
class Share:
    """Number of questions that are right, with errors counted as wrong."""

    right: int
    total: int
    errors: int

    def as_json(self, right: str = "right") -> dict[str, Any]:
        """Return counts, and the rates with and without errors, each with its Wilson interval."""
        each, others = wilson(self.right, self.total), wilson(self.right, self.total - self.errors)
        return {
            right: self.right,
            "total": self.total,
            "rate": None if each is None else each.value,
            "low": None if each is None else each.low,
            "high": None if each is None else each.high,
            "errors": self.errors,
            "without_errors": None
            if others is None
            else {"total": self.total - self.errors, "rate": others.value, "low": others.low, "high": others.high},
        }


def share(results: Iterable[Result], right: Callable[[Result], bool], failed: Callable[[Result], bool]) -> Share:
    """Count the results that are right, and those with an error."""
    chosen = list(results)
    return Share(sum(map(right, chosen)), len(chosen), sum(map(failed, chosen)))


def accuracy(results: Iterable[Result]) -> Share:
    """Count the correct answers; questions without an answer or a label are errors."""
    return share(results, lambda each: each.label is True, lambda each: each.failed or each.label is None)


def recall(results: Iterable[Result]) -> Share:
    """Count the questions whose evidence was found, of those with evidence.

    A memory that found it has no error here, even if it gave no answer.
    """
    measured = [each for each in results if each.recall_hit is not None]
    return share(
        measured, lambda each: each.recall_hit is True, lambda each: each.error is not None and not each.recall_hit
    )


def types_of(results: Sequence[Result]) -> list[str]:
    """Return the question types of results, in the benchmark's order."""
    return by_type([each.question_type for each in results])


def recall_by_type(results: Sequence[Result]) -> dict[str, Any]:
    """Return the recall by type, without abstention: the last line that `--by-type` adds."""
    shares = {name: recall(each for each in results if each.question_type == name) for name in types_of(results)}
    return {
        "schema_version": 1,
        "kind": BY_TYPE,
        "recall_by_type": {name: shares[name].as_json("hit") for name in sorted(shares) if shares[name].total},
        "aggregate": recall(results).as_json("hit"),
    }


def below_floor(results: Sequence[Result], floor: float) -> dict[str, Share]:
    """Return the types whose recall is below a floor, errors counted as misses."""
    shares = {name: recall(each for each in results if each.question_type == name) for name in types_of(results)}
    return {name: each for name, each in shares.items() if each.total and each.right / each.total < floor - 1e-9}


def accuracy_summary(results: Sequence[Result]) -> dict[str, Any] | None:
    """Return the accuracy of all questions, by type, and of abstention; None without judging.

    Abstention is also in the types, as in the benchmark. `task_averaged` is the mean of the types.
    """
    if all(each.label is None and each.judge_error is None for each in results):
        return None
    shares = {name: accuracy(each for each in results if each.question_type == name) for name in types_of(results)}
    rates = [each.right / each.total for each in shares.values()]
    return {
        "overall": accuracy(results).as_json(),
        "task_averaged": sum(rates) / len(rates),
        "by_type": {name: each.as_json() for name, each in shares.items()},
        "abstention": accuracy(each for each in results if each.abstention).as_json(),
        "answerable": accuracy(each for each in results if not each.abstention).as_json(),
    }


def retrieval_summary(results: Sequence[Result], convention: str) -> dict[str, float] | None:
    """Return the means of a convention over the questions that it covers; None without any."""
    rows = [each.metrics[convention] for each in results if convention in each.metrics]
    names = [name for name in rows[0] if all(name in row for row in rows)] if rows else []
    return {"questions": len(rows)} | {name: mean(row[name] for row in rows) for name in names} if rows else None


def mean(values: Iterable[float]) -> float:
    """Return the mean of at least one value."""
    listed = list(values)
    return sum(listed) / len(listed)


def summary(results: Sequence[Result], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of a run; `run` describes dataset, target and judge."""
    latencies = [each.latency_ms for each in results if each.latency_ms is not None]
    return {
        "schema_version": 1,
        "kind": "longmemeval_summary",
        **run,
        "questions": len(results),
        "errors": sum(each.error is not None for each in results),
        "unjudged": sum(each.judge_error is not None for each in results),
        "accuracy": accuracy_summary(results),
        "recall": {
            name: value for name, value in recall_by_type(results).items() if name not in ("schema_version", "kind")
        },
        "retrieval": {name: retrieval_summary(results, name) for name in ("reference", "standard")},
        "latency_ms": {
            name: float(np.quantile(latencies, quantile)) for name, quantile in (("p50", 0.5), ("p95", 0.95))
        }
        if latencies
        else None,
        "unknown_results": sum(each.unknown_results for each in results),
    }
