"""The page of patterns: every component in each of its states, with fixed data. It reads nothing."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from assay_console.page import Ask, Document, Page, Panel
from assay_console.pieces import Text, text_of
from assay_operations.drift.episodes import Episode
from assay_operations.events.rows import EventRow
from assay_schema.fields import Kind
from assay_ui.charts import BandPoint, Series, Shade
from assay_ui.forest import ForestRow

_AT = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
_HOUR_MS = 3_600_000
_HOSTILE = "<b>bold</b> {{ 7*7 }} ![x](https://example.com/x.png) a\u202ethgir-ot-tfel\u202c zero\u200bwidth\x07"


class Patterns(Document):
    """Fixed data of the components. Each is as its page has it."""

    at: datetime
    panels: dict[str, Panel[int]]
    rows: tuple[EventRow, ...]
    episodes: tuple[Episode, ...]
    texts: dict[str, Text]
    hostile: str
    numbers: tuple[float | None, ...]
    starts_ms: tuple[float, ...]
    series: tuple[Series, ...]
    points: tuple[BandPoint, ...]
    shades: tuple[Shade, ...]
    changes: tuple[ForestRow, ...]


async def read(_: Ask) -> Patterns:
    """Return the data."""
    return PATTERNS


def _row(number: int, kind: Kind, status: str, text: str, **fields: object) -> EventRow:
    common: dict[str, object] = {
        "event_id": f"019b8d2e-5c00-7a3b-8c4d-00000000000{number}", "time": _AT + timedelta(seconds=number), "kind": kind,
        "project": "shop", "service": "search", "tool": "", "model": "", "text": text, "text_chars": len(text), "status": status,
        "error_kind": None, "latency_ms": None, "results": None, "pii": {}, "trace_id": None, "session_id": None,
    }  # fmt: skip
    return EventRow(**common | fields)  # type: ignore[arg-type]


def _episode(number: int, state: str, metric: str, value: float, baseline: float) -> Episode:
    return Episode(
        alert_id=UUID(int=number), state=state, kind="score_drift", severity="critical", project="shop", service=None, metric=metric,
        series="answer", value=value, baseline=baseline, effect=value / baseline - 1, low=value - 0.04, high=value + 0.04, n=120,
        evidence=1.4, since=_AT, at=_AT + timedelta(minutes=9), summary=f"{metric.replace('_', ' ')} of shop changed", query="",
    )  # fmt: skip


def _ms(hours: float) -> float:
    return (_AT + timedelta(hours=hours)).timestamp() * 1000


_MEANS = (0.9, 0.92, 0.91, 0.89, 0.9, 0.74, 0.6, 0.58)
PATTERNS = Patterns(
    at=_AT,
    panels={
        "ready": Panel(state="ready", value=12),
        "stale": Panel(
            state="stale", value=12, message="the store does not answer", fix="start it, or correct store.url", age_s=75.0
        ),
        "unavailable": Panel(state="unavailable", message="Redis does not answer (ConnectionError)", fix="start it, or correct redis.url"),
    },
    rows=(
        _row(1, Kind.RETRIEVAL, "found", "How do I rotate the signing key?", tool="search", latency_ms=12.4, results=5),
        _row(2, Kind.ANSWER, "cited", "How do I rotate the signing key?", model="model-1", latency_ms=1240.0, results=5,
             judged="scored", faithfulness=0.91, feedback="positive"),
        _row(3, Kind.ANSWER, "uncited", _HOSTILE, model="model-1", latency_ms=890.0, results=0, judged="no_context", pii={"email": 2}),
        _row(4, Kind.FEEDBACK, "negative", "That is not what I asked."),
        _row(5, Kind.TOOL_CALL, "error", '{"path": "/srv"}', tool="read_file", latency_ms=3.2, error_kind="timeout"),
        _row(6, Kind.SERVER_EVENT, "server_start", ""),
    ),
    episodes=(
        _episode(1, "critical", "faithfulness", 0.61, 0.88),
        _episode(2, "warn", "latency_p95", 0.12, 0.05),
        _episode(3, "recovering", "no_context", 0.06, 0.05),
        _episode(4, "resolved", "hallucination_rate", 0.05, 0.04),
    ),
    texts={
        "whole": text_of("A text of one line.\nAnd of another one."),
        "cut": text_of("A long text that is not shown whole. " * 40, (), 120),
        "none": text_of(""),
    },
    hostile=_HOSTILE,
    numbers=(None, 0.0, 0.0421, 12.5, 1_234_567.0, -3.0),
    starts_ms=tuple(_ms(hour) for hour in range(12)),
    series=(
        Series("retrieval", "retrieval", (4, 6, 9, 12, 14, 9, 8, 0, 3, 5, 7, 9)),
        Series("answer", "answer", (3, 5, 8, 11, 12, 8, 7, 0, 2, 4, 6, 8)),
        Series("feedback", "feedback", (0, 1, 2, 1, 3, 0, 1, 0, 0, 1, 1, 2)),
    ),
    points=tuple(
        BandPoint(_ms(hour), mean, mean - 0.05, mean + 0.05, 40, 0.9, breaks="another judge" if hour == 3 else "")
        for hour, mean in enumerate(_MEANS)
    ),
    shades=(Shade("warn", "warn", _ms(4.5), _ms(5.5)), Shade("critical", "critical", _ms(5.5), _ms(7))),
    changes=(
        ForestRow("faithfulness", -0.01, 0.02, 0.05, -0.03, "pass", "faithfulness: +0.020"),
        ForestRow("mrr", -0.16, -0.11, -0.06, -0.03, "fail", "mrr: -0.110"),
        ForestRow("hit rate", -0.08, 0.0, 0.08, -0.03, "inconclusive", "hit rate: 0.000"),
    ),
)  # fmt: skip

PAGE = Page(
    "patterns",
    "/patterns",
    "Patterns",
    "How does each component look?",
    read,
    Patterns,
    span="",
)
