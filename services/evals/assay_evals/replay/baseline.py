"""Published baselines: captured rows frozen under a hash of everything a gate reads. Pure.

The first line of a file describes it; each further line is a captured row with its `query_hash`, sorted by tool and
hash, so that the same rows always give the same bytes.

`content_hash` covers the thresholds, the mean latency and every field of every row. `read_baseline` recomputes it, and
rejects a file with a change of a single slug.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from assay_evals.dataset.captured_rows import METADATA_KIND, VERSION, Captured, CapturedError, captured, parse_line
from assay_evals.dataset.model import normalise
from assay_evals.errors import EvalsError


class BaselineError(EvalsError):
    """A baseline that cannot be published or trusted. The message never quotes a query."""


@dataclass(frozen=True)
class Thresholds:
    """Limits of a regression gate for a replay."""

    jaccard: float = 0.85
    top1: float = 0.80
    latency_multiplier: float = 2.0

    def __post_init__(self) -> None:
        for name, limit in (("jaccard", 1.0), ("top1", 1.0), ("latency_multiplier", math.inf)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise BaselineError(f"threshold {name} must be a number")
            if not 0 <= value <= limit or (name == "latency_multiplier" and value <= 0):
                raise BaselineError(f"threshold {name} must be {'above 0' if limit > 1 else 'between 0 and 1'}")


@dataclass(frozen=True)
class Baseline:
    """A published baseline, read and verified by its hash."""

    label: str
    published_at: str
    thresholds: Thresholds
    baseline_mean_latency_ms: float
    content_hash: str
    rows: list[Captured]


def query_hash(query: str) -> str:
    """Return the first 16 hex digits of SHA-256 over the normalized query."""
    return hashlib.sha256(normalise(query).encode()).hexdigest()[:16]


def publish(rows: Iterable[Captured], *, label: str, published_at: str, thresholds: Thresholds) -> Iterator[str]:
    """Yield the lines of a baseline, without line ends.

    Raises `BaselineError` without rows or with a duplicate question. Rows written by hand may have no sources; in the
    baseline they have an empty array.
    """
    kept = sorted(((query_hash(row.query), row) for row in rows), key=lambda pair: (pair[1].tool_name, pair[0]))
    if not kept:
        raise BaselineError("no rows to publish: export some with `assay export --kind retrieval`")
    _refuse_duplicates(kept)
    records = [
        {"schema_version": VERSION}
        | row.record
        | {"source_ids": row.record.get("source_ids", []), "query_hash": digest}
        for digest, row in kept
    ]
    metadata: dict[str, Any] = {
        "schema_version": VERSION,
        "_kind": METADATA_KIND,
        "label": label,
        "published_at": published_at,
        "source_hash": hashlib.sha256("\n".join(sorted(digest for digest, _ in kept)).encode()).hexdigest(),
        "thresholds": {name: _number(value) for name, value in asdict(thresholds).items()},
        "row_count": len(kept),
        "baseline_mean_latency_ms": _number(sum(row.latency_ms for _, row in kept) / len(kept)),
    }
    metadata["content_hash"] = content_hash(metadata, records)
    yield from (json.dumps(each, ensure_ascii=False) for each in (metadata, *records))


def content_hash(metadata: dict[str, Any], records: Iterable[dict[str, Any]]) -> str:
    """Return the SHA-256 over the metadata except this hash, and every field of every row.

    Both are in canonical JSON.
    """
    digest = hashlib.sha256()
    plain = {key: value for key, value in metadata.items() if key != "content_hash"}
    for each in (plain, *records):
        digest.update(json.dumps(each, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
    return digest.hexdigest()


def read_baseline(lines: Iterable[str]) -> Baseline:
    """Read a baseline and recompute its hash. Raises `BaselineError` with the line and the problem."""
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    try:
        first = next(numbered, None)
        if first is None:
            raise BaselineError("the file is empty; publish a baseline with `assay bench publish`")
        metadata = parse_line(*first)
        thresholds = _check_metadata(first[0], metadata)
        records = [(number, parse_line(number, line)) for number, line in numbered]
        rows = [captured(number, record) for number, record in records]
    except CapturedError as error:
        raise BaselineError(str(error)) from None
    for row in rows:
        _expect_sources(row)
    for number, record in records:
        if record.get("query_hash") != query_hash(record["query"]):
            raise BaselineError(f"line {number}: query_hash is not that of its query")
    if metadata["row_count"] != len(rows):
        raise BaselineError(
            f"it says {metadata['row_count']} rows and has {len(rows)}: it was cut or changed; publish it again"
        )
    if content_hash(metadata, (record for _, record in records)) != metadata["content_hash"]:
        raise BaselineError("it was changed after it was published (content_hash differs): publish it again")
    return Baseline(
        label=metadata["label"],
        published_at=metadata["published_at"],
        thresholds=thresholds,
        baseline_mean_latency_ms=metadata["baseline_mean_latency_ms"],
        content_hash=metadata["content_hash"],
        rows=rows,
    )


@dataclass(frozen=True)
class Heading:
    """Label and thresholds of a baseline, which publishing it again keeps."""

    label: str
    thresholds: Thresholds


def read_heading(lines: Iterable[str]) -> Heading | None:
    """Read the heading of a baseline, also of one by gbrain; None for captured rows.

    Raises `BaselineError`. Baselines by gbrain have no `content_hash`. Their number of rows and their hash of the
    queries are verified, so a baseline that was cut is refused; a change to a slug or a latency cannot be detected.
    """
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    first = next(numbered, None)
    try:
        metadata = parse_line(*first) if first else {}
    except CapturedError:
        return None  # reading its rows names the problem
    if first is None or metadata.get("_kind") != METADATA_KIND:
        return None
    try:
        thresholds = _check_metadata(first[0], {"content_hash": ""} | metadata)
        if "content_hash" not in metadata:
            hashes = sorted(str(parse_line(number, line).get("query_hash")) for number, line in numbered)
            if (
                len(hashes) != metadata["row_count"]
                or hashlib.sha256("\n".join(hashes).encode()).hexdigest() != metadata["source_hash"]
            ):
                raise BaselineError(
                    f"it says {metadata['row_count']} rows and has {len(hashes)}, or their queries differ from its source_hash: "
                    "it was cut or changed; publish it again where it comes from"
                )
    except CapturedError as error:
        raise BaselineError(str(error)) from None
    return Heading(metadata["label"], thresholds)


def _check_metadata(number: int, metadata: dict[str, Any]) -> Thresholds:
    if metadata.get("_kind") != METADATA_KIND:
        raise BaselineError(f"line {number}: not a baseline's first line; publish one with `assay bench publish`")
    if metadata.get("schema_version") != VERSION or metadata["schema_version"] is True:
        raise BaselineError(
            f"line {number}: schema_version is not {VERSION}: the baseline is of a later Assay, upgrade"
        )
    if "content_hash" not in metadata:
        raise BaselineError(
            f"line {number}: content_hash is missing, as in a baseline by gbrain; to import it: "
            "assay bench publish --from FILE --to NEW"
        )
    for name, kind in (
        ("label", str),
        ("published_at", str),
        ("source_hash", str),
        ("content_hash", str),
        ("row_count", int),
        ("thresholds", dict),
    ):
        if not isinstance(metadata.get(name), kind) or isinstance(metadata[name], bool):
            raise BaselineError(f"line {number}: {name} is missing or of the wrong type; publish the baseline again")
    mean = metadata.get("baseline_mean_latency_ms")
    if not isinstance(mean, int | float) or isinstance(mean, bool):
        raise BaselineError(
            f"line {number}: baseline_mean_latency_ms is missing or not a number; publish the baseline again"
        )
    names = set(asdict(Thresholds()))
    if set(metadata["thresholds"]) != names:
        raise BaselineError(f"line {number}: thresholds must hold {', '.join(sorted(names))}")
    return Thresholds(**metadata["thresholds"])


def _expect_sources(row: Captured) -> None:
    if "source_ids" not in row.record:
        raise BaselineError(
            f"line {row.line}: source_ids is missing: an array of strings, empty if there are no sources"
        )


def _refuse_duplicates(kept: list[tuple[str, Captured]]) -> None:
    keys = Counter((row.tool_name, ",".join(row.source_ids), digest) for digest, row in kept)
    if doubled := [key for key, count in keys.items() if count > 1]:
        shown = ", ".join(digest for _, _, digest in doubled[:5])
        lines = sorted(row.line for digest, row in kept if digest == doubled[0][2])[:5]
        raise BaselineError(
            f"{len(doubled)} question(s) appear more than once, equal except for case and white space (query_hash {shown}; "
            f"the first on lines {', '.join(map(str, lines))}): keep one of each, or publish with --deduplicate"
        )


def deduplicate(rows: Iterable[Captured]) -> Iterator[Captured]:
    """Yield the first row of each question, tool and set of sources."""
    keys = set()
    for row in rows:
        key = (row.tool_name, *row.source_ids, query_hash(row.query))
        if key not in keys:
            keys.add(key)
            yield row


def _number(value: float) -> float | int:
    """Return whole numbers without `.0`, so that every language writes the same bytes."""
    return int(value) if float(value).is_integer() else value
