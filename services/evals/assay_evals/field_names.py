"""Field names of datasets: camelCase names of other programs, and suggestions for misspelt ones.

Pure.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Any

#: Names that are not just another spelling. An observation is a document after ingestion, whose id retrieval returns.
_RENAMED = {"expectedObservationIds": "expected_ids"}
_CAMEL = re.compile(r"[a-z]+(?:[A-Z][a-z]*)+")


def in_snake_case(value: Any) -> Any:
    """Convert a record's names such as `queryType` to `query_type`; other values are unchanged.

    `expectedSourceIds`, a document's ids before ingestion, are the expected ids if there are no others, else metadata.
    A name in both spellings stays unchanged, and is rejected later.
    """
    if not isinstance(value, dict):
        return value
    renamed = dict(value)
    for name in value:
        new = _RENAMED.get(name) or (_snake(name) if _CAMEL.fullmatch(name) else name)
        if new not in renamed:
            renamed[new] = renamed.pop(name)
    if "expectedSourceIds" in value and (sources := renamed.pop("expected_source_ids", None)):
        if not (renamed.get("expected_ids") or renamed.get("graded_relevance")):
            renamed["expected_ids"] = sources
        elif isinstance(metadata := renamed.get("metadata", {}), dict):
            renamed["metadata"] = metadata | {"expected_source_ids": sources}
    return renamed


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean query_type?)`, or an empty string if no known name is similar."""
    close = difflib.get_close_matches(_snake(name), list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: "_" + found[1].lower(), name)
