"""Export sessions as NDJSON: one line for each session, in its newest revision that is stored whole."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from assay_operations.clients import open_store, settings_for
from assay_operations.export.run import stored_watermark, window
from assay_operations.sessions.stored import Chosen, Seen, documents
from assay_operations.time_bounds import Bound
from assay_sessions.document import derived
from assay_sessions.vertex import Refusal, vertex, vertex_agent


class Format(StrEnum):
    """Formats of exported sessions."""

    ASSAY = "assay"
    VERTEX = "vertex"
    VERTEX_AGENT = "vertex-agent"


@dataclass
class Exported:
    """The outcome of an export: lines, sessions that were left out with the reason, and the next cursor."""

    rows: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    incomplete: list[str] = field(default_factory=list)
    malformed: dict[str, str] = field(default_factory=dict)
    cursor: int = 0


def export_sessions(
    data: Path,
    out: BinaryIO,
    form: Format,
    *,
    since: Bound | None = None,
    project: str | None = None,
    source: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write the sessions of which a part arrived after `since`, up to the watermark.

    A chain of exports, each with the previous cursor, has every session, and one that grew again. Raises `OperationError`.
    """
    settings, done, seen = settings_for("exporter", data), Exported(), Seen()
    render = {Format.ASSAY: derived, Format.VERTEX: vertex, Format.VERTEX_AGENT: vertex_agent}[form]
    with open_store(settings.store) as client:
        span = window(since, None, stored_watermark(client, settings.store.database))
        for document in documents(client, Chosen(span.upto, span.after, project, source), seen):
            row: dict[str, Any] | Refusal = render(document)
            if isinstance(row, Refusal):
                done.refused[row.reason] += 1
                continue
            out.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
            done.rows += 1
            progress(done.rows)
    done.incomplete, done.malformed, done.cursor = seen.incomplete, seen.malformed, span.cursor
    return done
