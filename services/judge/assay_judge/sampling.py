"""Sampling of the answers to judge.

Pure: a function of the event, and of rates fixed by project and day.

`u`, a hash of the event's id, is uniform in [0, 1). `u < base probability` is the unbiased base stream, the only one
used for rates and drift. Boost rules only widen it (`u < inclusion probability`), so the base stream is part of every
sample. A redelivered or replayed event draws the same `u`. Totals over all sampled answers weight each answer by the
inverse of its inclusion probability (Horvitz-Thompson).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import blake2b

#: Days of traffic used to estimate today's.
REMEMBERED_DAYS = 15
#: Share of a day's budget reserved for more traffic than expected.
SPARED = 0.2
#: Lowest share, so that weights stay finite.
SHARE_MIN = 1e-6


@dataclass(frozen=True)
class Draw:
    """Decision about one answer, and its probability."""

    sampled: bool
    base: bool
    base_probability: float
    inclusion_probability: float
    boosts: tuple[str, ...] = ()


def uniform(event_id: str, salt: str) -> float:
    """Return the event's own constant number in [0, 1)."""
    digest = blake2b(event_id.lower().encode(), key=salt.encode()[:64], digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / (1 << 53)


def draw(u: float, base_probability: float, boosts: Sequence[tuple[str, float]] = ()) -> Draw:
    """Decide about an answer from its project's base rate of the day and its boosts (name, probability)."""
    inclusion = max([base_probability, *(probability for _, probability in boosts)])
    return Draw(
        sampled=u < inclusion,
        base=u < base_probability,
        base_probability=base_probability,
        inclusion_probability=inclusion,
        boosts=tuple(name for name, _ in boosts),
    )


def base_rate(counts: Mapping[date, int], day: date, rate: float, floor: int, pays_for: float | None = None) -> float:
    """Return the base stream's share of a project's answers on a day.

    This is `rate`, raised if traffic is low so that about `floor` answers are judged, and lowered so that the
    `pays_for` answers that the day's budget pays for are spread over the whole day.

    The expected traffic is that of the same weekday in the last two weeks, else of the busiest of the last seven days.
    If a day exceeds it, its share is lowered when the count reaches the expectation, and at each doubling: each time,
    half of the remaining floor and budget is used. A project on its first day has its first `floor` answers judged,
    then the plain share.
    """
    today, usual = counts.get(day, 0), _usual(counts, day)
    if not usual:
        return 1.0 if today < floor else rate
    size = expected = usual
    part, left = 1 - SPARED, SPARED
    while today >= expected:
        size, expected = expected, 2 * expected
        part = left = left / 2
    wanted = max(rate, min(1.0, floor / expected))
    return wanted if pays_for is None else min(wanted, max(part * pays_for / size, SHARE_MIN))


def _usual(counts: Mapping[date, int], day: date) -> int:
    same_weekday = [counts.get(day - timedelta(days=back), 0) for back in (7, 14)]
    return max(same_weekday) or max(counts.get(day - timedelta(days=back), 0) for back in range(1, 7))
