"""Shared by services that send over HTTP: the way to loopback, and `Retry-After` (RFC 9110)."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: Mounts of an httpx client: loopback is reached directly, even if the environment configures proxies.
DIRECT = {"all://127.0.0.1": None, "all://localhost": None, "all://[::1]": None}
#: Longest pause that a receiver may request, in seconds.
LONGEST_RETRY_AFTER_S = 3_600.0


def retry_after(text: str | None, now: datetime | None = None) -> float:
    """Return the bounded seconds in a `Retry-After` header; 0 if it cannot be parsed.

    Pure except for the default clock.
    """
    if not text:
        return 0.0
    if text.strip().isdecimal():
        return min(LONGEST_RETRY_AFTER_S, float(text))
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if until.tzinfo is None:  # `-0000`: UTC, without saying where
        until = until.replace(tzinfo=UTC)
    return min(LONGEST_RETRY_AFTER_S, max(0.0, (until - (now or datetime.now(UTC))).total_seconds()))
