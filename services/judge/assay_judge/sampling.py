"""Which answers are judged. Pure: a decision is a function of the event and of rates that are fixed for its project and day.

`u`, a hash of the event's id, is uniform in [0, 1). `u < base probability` is the unbiased base stream, which rates and drift use alone;
boost rules only widen it (`u < inclusion probability`), so the base stream is part of every sample. A redelivered or replayed event
draws the same `u`. Totals over everything sampled weigh each answer with the inverse of its inclusion probability (Horvitz-Thompson).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import blake2b

#: How far back a day with traffic tells what to expect today.
REMEMBERED_DAYS = 8


@dataclass(frozen=True)
class Draw:
    """What was decided about one answer, and how probable it was."""

    sampled: bool
    base: bool
    base_probability: float
    inclusion_probability: float
    boosts: tuple[str, ...] = ()


def uniform(event_id: str, salt: str) -> float:
    """The event's own number in [0, 1): the same for ever."""
    digest = blake2b(event_id.lower().encode(), key=salt.encode()[:64], digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / (1 << 53)


def draw(u: float, base_probability: float, boosts: Sequence[tuple[str, float]] = ()) -> Draw:
    """Decide about an answer, given the rate of its project and day and the boosts that apply to it (name, probability)."""
    inclusion = max([base_probability, *(probability for _, probability in boosts)])
    return Draw(
        sampled=u < inclusion,
        base=u < base_probability,
        base_probability=base_probability,
        inclusion_probability=inclusion,
        boosts=tuple(name for name, _ in boosts),
    )


def base_rate(counts: Mapping[date, int], day: date, rate: float, floor: int) -> float:
    """The base stream's share of a project's answers on a day, raised where traffic is low so that about `floor` are judged.

    What to expect is what the last earlier day with traffic had. A project on its first day has its first `floor` answers judged, then
    the plain share; from the second day on the share is fixed for the whole day.
    """
    earlier = [counts.get(day - timedelta(days=back), 0) for back in range(1, REMEMBERED_DAYS + 1)]
    expected = next((count for count in earlier if count), 0)
    if expected:
        return max(rate, min(1.0, floor / expected))
    return 1.0 if counts.get(day, 0) < floor else rate


def horvitz_thompson(values: Sequence[tuple[float, float]]) -> float:
    """Total of a population from a sample of (value, inclusion probability)."""
    return sum(value / probability for value, probability in values)


def hajek(values: Sequence[tuple[float, float]]) -> float:
    """Mean of a population from a sample of (value, inclusion probability). Raises `ZeroDivisionError` for an empty one."""
    return horvitz_thompson(values) / sum(1 / probability for _, probability in values)
