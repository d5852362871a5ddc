"""Captured retrievals as NDJSON, written by `assay export` or by hand. Pure, one line at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from assay_evals.errors import EvalsError
from assay_evals.strict_json import JsonError, loads

#: Value of `_kind` on a published baseline's first line.
METADATA_KIND = "baseline_metadata"
VERSION = 1
#: Placeholder of the scrubber for findings, unless a policy sets another.
REDACTED = "[REDACTED]"


class CapturedError(EvalsError):
    """A line that cannot be used. The message names the line and the reason and never quotes it."""


@dataclass(frozen=True)
class Captured:
    """A captured retrieval, as needed for its replay. `record` is the original line with all fields."""

    line: int
    id: int | str
    tool_name: str
    query: str
    slugs: list[str]
    source_ids: list[str]
    latency_ms: float
    record: dict[str, Any]

    @property
    def source(self) -> str | None:
        """The source of all slugs if there is exactly one; rows do not say which slug came from which."""
        return self.source_ids[0] if len(self.source_ids) == 1 else None

    @property
    def scrubbed(self) -> bool:
        """True if personal data was removed: a system may answer the remaining query differently."""
        return bool(self.record.get("pii_families")) or REDACTED in self.query


def read_captured(lines: Iterable[str]) -> Iterator[Captured]:
    """Read captured rows one at a time, in file order.

    Blank lines and a baseline's first line are skipped.

    Raises `CapturedError` at the first line that is not a row of version 1, and at the end when there was none.
    """
    rows = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        record = parse_line(number, line)
        if record.get("_kind") == METADATA_KIND:
            continue
        rows += 1
        yield captured(number, record)
    if not rows:
        raise CapturedError("no rows: export some with `assay export --kind retrieval`, or write them by hand")


def parse_line(number: int, line: str) -> dict[str, Any]:
    """Return a line's JSON object. Raises `CapturedError`."""
    try:
        record = loads(line)
    except JsonError as error:
        raise CapturedError(f"line {number}: {error}") from None
    if not isinstance(record, dict):
        raise CapturedError(f"line {number}: not a JSON object")
    return record


def captured(number: int, record: dict[str, Any]) -> Captured:
    """Parse a row from its record. Raises `CapturedError` with the line and the field."""
    version = record.get("schema_version")
    if version is None:
        raise CapturedError(
            f"line {number}: schema_version is missing; rows of `assay export` have it, hand-made ones say 1"
        )
    if version is True or version != VERSION:
        raise CapturedError(
            f"line {number}: schema_version is not {VERSION}: this file is of a later Assay, upgrade to read it"
        )
    if "tool_name" not in record and "answer" in record:
        raise CapturedError(f"line {number}: an answer, not a retrieval; export with --kind retrieval")
    _expect(number, record, "tool_name", record.get("tool_name") in ("query", "search"), "query or search")
    _expect(number, record, "query", isinstance(record.get("query"), str), "a string")
    _expect(number, record, "retrieved_slugs", _names(record.get("retrieved_slugs")), "an array of strings")
    sources = record.get("source_ids", [])
    _expect(number, record, "source_ids", _names(sources), "an array of strings")
    latency = record.get("latency_ms")
    is_number = isinstance(latency, int | float) and not isinstance(latency, bool) and 0 <= latency < float("inf")
    _expect(number, record, "latency_ms", is_number, "a number of milliseconds, 0 or more")
    identity = record.get("id", number)
    _expect(number, record, "id", isinstance(identity, int | str), "a number or a string")
    assert isinstance(latency, int | float)
    return Captured(
        line=number,
        id=identity,
        tool_name=record["tool_name"],
        query=record["query"],
        slugs=list(dict.fromkeys(record["retrieved_slugs"])),
        source_ids=sorted(set(sources)),
        latency_ms=float(latency),
        record=record,
    )


def _expect(number: int, record: dict[str, Any], field: str, fits: bool, what: str) -> None:
    if not fits:
        raise CapturedError(f"line {number}: {field} {'must be ' + what if field in record else 'is missing: ' + what}")


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
