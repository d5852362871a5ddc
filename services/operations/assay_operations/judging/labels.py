"""Human labels of judged answers and sessions."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from assay_operations.clients import open_store
from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_judge.calibration import Confusion as Confusion
    from assay_runtime.store import Client as Store
    from assay_schema.settings import StoreSettings


_SAMPLE = """
SELECT toString(s.event_id) AS event_id, a.query AS query, a.answer AS answer, a.contexts AS contexts
FROM (
    SELECT DISTINCT event_id FROM scores
    WHERE project = {project:String} AND base AND status = 'scored' AND event_time >= fromUnixTimestamp64Milli({since:Int64})
        AND event_id IN (SELECT event_id FROM answers WHERE project = {project:String})
    ORDER BY sipHash64(event_id, {seed:UInt64}) LIMIT {count:UInt32}
) AS s INNER JOIN answers AS a ON a.event_id = s.event_id
ORDER BY sipHash64(s.event_id, {seed:UInt64})
"""


_SESSIONS = """
SELECT toString(event_id) AS event_id, session_id, revision, digest FROM (
    SELECT event_id, any(assumeNotNull(t.session_id)) AS session_id, argMax(revision, judged_at) AS revision FROM scores AS t
    WHERE project = {project:String} AND base AND status = 'scored' AND event_time >= fromUnixTimestamp64Milli({since:Int64})
        AND t.session_id IS NOT NULL
    GROUP BY event_id
) AS s INNER JOIN (
    SELECT session_id, revision, digest FROM session_parts WHERE project = {project:String}
    GROUP BY session_id, revision, digest HAVING uniqExact(part) = max(parts)
) AS p USING (session_id, revision)
ORDER BY sipHash64(event_id, {seed:UInt64}) LIMIT 1 BY event_id LIMIT {count:UInt32}
"""


def sample(store: "Store", *, project: str, since_ms: int, seed: int, count: int) -> list[dict[str, Any]]:
    """Sample judged answers of the base stream at random; the sample depends on the seed alone."""
    drawn = {"project": project, "since": since_ms, "seed": seed, "count": count}
    return [dict(row) for row in store.query(_SAMPLE, parameters=drawn).named_results()]


def sample_sessions(store: "Store", *, project: str, since_ms: int, seed: int, count: int) -> list[dict[str, Any]]:
    """Sample judged sessions like `sample`.

    Returns their event_id and key, in the revision that was judged last; no text.
    """
    drawn = {"project": project, "since": since_ms, "seed": seed, "count": count}
    rows = store.query(_SESSIONS, parameters=drawn).named_results()
    return [dict(row) | {"project": project} for row in rows]


def session_of(settings: "StoreSettings", row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a sampled session. Raises `OperationError` if it is not stored any more."""
    from assay_operations.sessions.stored import document_of

    with open_store(settings) as store:
        return document_of(store, row["project"], row["session_id"], row["revision"], row["digest"])


def append(path: Path, event_id: str, label: str) -> None:
    """Append a label to a private file; it is on disk when this returns."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(orjson.dumps({"event_id": event_id, "label": label}) + b"\n")
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise OperationError("unavailable", f"--output: {path} cannot be written: {error.strerror}") from None


def of_two(one: Mapping[str, bool], other: Mapping[str, bool]) -> "Confusion":
    """Compare two people's labels of the answers that both labelled. Raises `OperationError` for too few."""
    from assay_judge.calibration import Confusion

    both = sorted(one.keys() & other.keys())
    if len(both) < 2:
        raise OperationError(
            "invalid",
            f"{len(both)} answer(s) or session(s) are labelled in both files, at least 2 are needed; label with the same --seed",
        )
    return Confusion.of([one[name] for name in both], [other[name] for name in both])


def agreement_document(one: Mapping[str, bool], other: Mapping[str, bool]) -> dict[str, Any]:
    """Return the agreement of two people for programs. Raises `OperationError` for too few labels."""
    table = of_two(one, other)
    return {
        "n": table.n,
        "agreement": table.agreement,
        "kappa": table.kappa,
        "kappa_low": table.kappa_low,
        "only_first": len(one.keys() - other.keys()),
        "only_second": len(other.keys() - one.keys()),
        "differ": sorted(name for name in one.keys() & other.keys() if one[name] != other[name]),
    }


def read_labels(path: Path) -> dict[str, bool]:
    """Read labels by event id, True for good. Raises `OperationError` that names the file and line."""
    from assay_judge.labels import LabelError, read

    try:
        return read(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OperationError("unavailable", f"{path} cannot be read: {error.strerror}") from None
    except (LabelError, UnicodeDecodeError) as error:
        raise OperationError("invalid", f"{path}: {error}") from None
