"""Golden questions of the demo. `golden.jsonl` has a header line, then one case per line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Case:
    """One judged question.

    `relevant` maps slugs to grades, 1 (related) to 3 (answers it); it is empty for a null case.
    """

    id: str
    query: str
    query_type: str
    relevant: dict[str, int]
    complexity: str


def read_cases() -> list[Case]:
    """Return all cases in the order of the file."""
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


def _lines() -> list[str]:
    return (resources.files("assay_demo") / "golden.jsonl").read_text(encoding="utf-8").splitlines()
