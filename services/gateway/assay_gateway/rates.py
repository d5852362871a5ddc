"""Limit the rate of a key: a token bucket for events and one for bytes.

Pure: the caller passes the time.
"""

import math
from dataclasses import dataclass

from assay_access.api_keys import KeyRecord
from assay_gateway.refusal import RETRY_MAX_S, RefusedError

#: Addresses whose rate of feedback is remembered. The longest unused one is forgotten first.
ADDRESSES_MAX = 10_000


@dataclass
class Bucket:
    """Tokens that come back at a rate, up to those of one second.

    A request may begin while one is left and may take more than there are: a batch is not split.
    """

    per_s: float
    burst: float
    tokens: float
    at: float

    @classmethod
    def full(cls, per_s: float, now: float, burst: float | None = None) -> "Bucket":
        """Return a bucket with the tokens of one second, or `burst`."""
        most = max(1.0, per_s) if burst is None else burst
        return cls(per_s, most, most, now)

    def wait_s(self, now: float) -> float:
        """Return the seconds until a request may begin; 0 if it may now."""
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_s)
        self.at = now
        return 0.0 if self.tokens >= 1 else (1 - self.tokens) / self.per_s

    def take(self, amount: float) -> None:
        """Take the tokens of a request that has begun."""
        self.tokens -= amount


class Rates:
    """The buckets of every key that has a limit, and of every address that sends feedback."""

    def __init__(self, feedback_per_minute: int) -> None:
        self._feedback_per_minute = feedback_per_minute
        self._keys: dict[str, dict[str, Bucket]] = {}
        self._addresses: dict[str, Bucket] = {}

    def begin(self, record: KeyRecord, now: float) -> None:
        """Refuse a request whose key has used up its rate."""
        for name, bucket in self._of(record, now).items():
            _expect(name, bucket, now)

    def took(self, record: KeyRecord, *, events: int, size: int, now: float) -> None:
        """Count what a request has sent."""
        for name, bucket in self._of(record, now).items():
            bucket.take(events if name == "events" else size)

    def feedback_from(self, address: str, now: float) -> None:
        """Count a verdict from an address, or refuse it. Public keys can be copied, so this limit has no key."""
        if not self._feedback_per_minute:
            return
        bucket = self._addresses.pop(address, None) or Bucket.full(
            self._feedback_per_minute / 60, now, self._feedback_per_minute
        )
        self._addresses[address] = bucket
        if len(self._addresses) > ADDRESSES_MAX:
            del self._addresses[next(iter(self._addresses))]
        _expect("feedback", bucket, now, "this address has sent as much feedback as it may; send it later")
        bucket.take(1)

    def forget(self, known: set[str]) -> None:
        """Forget the buckets of keys that are gone."""
        for key_id in self._keys.keys() - known:
            del self._keys[key_id]

    def _of(self, record: KeyRecord, now: float) -> dict[str, Bucket]:
        if not record.events_per_s and not record.bytes_per_s:
            return {}
        if record.id not in self._keys:
            limits = {"events": record.events_per_s, "bytes": record.bytes_per_s}
            self._keys[record.id] = {name: Bucket.full(rate, now) for name, rate in limits.items() if rate}
        return self._keys[record.id]


def _expect(name: str, bucket: Bucket, now: float, why: str = "") -> None:
    wait = bucket.wait_s(now)
    if wait <= 0:
        return
    seconds = max(1, min(RETRY_MAX_S, math.ceil(wait)))
    raise RefusedError(
        429,
        "rate_limited",
        why or f"the key's rate of {name} is used up; send more slowly",
        headers={
            "Retry-After": str(seconds),
            "RateLimit-Policy": f'"{name}";q={max(1, round(bucket.burst))};w={max(1, round(bucket.burst / bucket.per_s))}',
            "RateLimit": f'"{name}";r=0;t={math.ceil(wait)}',
        },
    )
