"""The project's own golden questions and how well a search answers them. `golden.jsonl` is one header line, then cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

QUERY_TYPES = ("temporal", "actor", "technical", "status", "multi-hop", "null")


@dataclass(frozen=True, slots=True)
class Case:
    """One judged question; `relevant` maps slugs to grades 1 (related) to 3 (answers it), empty for a null case."""

    id: str
    query: str
    query_type: str
    relevant: dict[str, int]
    complexity: str


@dataclass(frozen=True, slots=True)
class Quality:
    """Retrieval quality over some judged cases: mean reciprocal rank and recall within the first ten, both 0 to 1."""

    cases: int
    mrr: float
    recall_at_10: float


def read_header() -> dict[str, Any]:
    """The dataset's version, date, licence, number of cases and what the grades mean."""
    header: dict[str, Any] = json.loads(_lines()[0])
    return header


def read_cases() -> list[Case]:
    """Every case, in the order of the file."""
    records = [json.loads(line) for line in _lines()[1:]]
    return [
        Case(
            id=record["id"],
            query=record["query"],
            query_type=record["query_type"],
            relevant={judged["slug"]: judged["grade"] for judged in record["relevant"]},
            complexity=record["complexity"],
        )
        for record in records
    ]


def measure(cases: Iterable[Case], retrieve: Callable[[str], Sequence[str]]) -> Quality:
    """Quality over the cases that have judgements; `retrieve` gives distinct slugs for a question, best first."""
    reciprocal, recall = [], []
    for case in cases:
        if not case.relevant:
            continue
        slugs = list(retrieve(case.query))[:10]
        ranks = [rank for rank, slug in enumerate(slugs, start=1) if slug in case.relevant]
        reciprocal.append(1 / ranks[0] if ranks else 0.0)
        recall.append(len(ranks) / len(case.relevant))
    count = len(reciprocal)
    if not count:
        raise ValueError("no case has a judged document: recall and reciprocal rank are undefined")
    return Quality(count, sum(reciprocal) / count, sum(recall) / count)


def _lines() -> list[str]:
    return (resources.files("assay_demo") / "golden.jsonl").read_text(encoding="utf-8").splitlines()
