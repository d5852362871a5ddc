"""Build scores, retrievals and settings for the tests of drift."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from assay_drift.embedding import HASHED_DIMENSIONS, hashed
from assay_drift.monitor import Monitor, Observation
from assay_schema.scores import Score, ScoreStatus, score_id
from assay_schema.settings import DriftSettings

DAY_MS = 86_400_000
START_MS = 1_767_225_600_000 + 4 * DAY_MS  # 2026-01-05, a Monday
FINGERPRINT = "9f2c4e1ab07d3355"
#: A day of one minute; learned in two days.
QUICK = DriftSettings(
    day_minutes=1.0, learning_samples=100, learning_days=2, page_uncalibrated=True, run_length_days=30, rule="off"
)
HASHED = (f"hashed-{HASHED_DIMENSIONS}", hashed)


def noise_of(seed: int | str) -> random.Random:
    """Return reproducible noise."""
    return random.Random(seed)


def uuid7(at_ms: float, number: int) -> UUID:
    """Return the UUIDv7 of the event number `number` at its time."""
    return UUID(int=int(at_ms) << 80 | 7 << 76 | 2 << 62 | number)


def score(at_ms: float, value: float | None, number: int = 0, **changes: Any) -> Score:
    """Return a score of faithfulness; None is an error of the judge."""
    event_id = uuid7(at_ms, number)
    moment = datetime.fromtimestamp(int(at_ms) / 1000, UTC)
    return Score.model_validate(
        {
            "score_id": score_id(event_id, FINGERPRINT),
            "event_id": event_id,
            "project": "acme",
            "service": "shop",
            "event_time": moment,
            "judged_at": moment,
            "status": ScoreStatus.JUDGE_ERROR if value is None else ScoreStatus.SCORED,
            "base": True,
            "inclusion_probability": 0.05,
            "metrics": {} if value is None else {"faithfulness": value},
            "fingerprint": FINGERPRINT,
            "backend": "lexical",
            "model": "lexical-1",
            "prompt_hash": "0" * 16,
            "schema_hash": "1" * 16,
            **changes,
        },
        strict=False,
    )


def stream(
    days: float, per_day: int, *, day_ms: float = 60_000, drop_from: float = 1e9, drop: float = 0.0,
    back_at: float = 1e9, seed: int = 1, start_ms: float = START_MS,
) -> Iterator[tuple[float, float]]:  # fmt: skip
    """Return times (Unix ms) and scores in [0, 1] around 0.85, lower by `drop` between two days."""
    noise = random.Random(seed)
    for number in range(int(days * per_day)):
        day = number / per_day
        mean = 0.85 * (1 - drop) if drop_from <= day < back_at else 0.85
        yield start_ms + day * day_ms, min(1.0, max(0.0, noise.gauss(mean, 0.1)))


def asked(at_ms: float, number: int, query: str | None = None, scores: tuple[float, ...] = ()) -> Observation:
    """Return a retrieval."""
    return Observation(str(uuid7(at_ms, number)), "acme", at_ms, query, scores, "bm25")


def monitor(settings: DriftSettings = QUICK, fields: dict[str, bytes] | None = None, **options: Any) -> Monitor:
    """Return a monitor with hashed words."""
    return Monitor(settings, fields, embed=HASHED, **options)
