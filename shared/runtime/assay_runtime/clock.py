"""The clock of Redis, which dates all arrivals.

A host's own clock may be wrong by a day: a resumed machine, a board without a battery.
"""

import time
from datetime import UTC, datetime

#: Difference above which a service reports that its host's clock is wrong, in seconds.
TOLD_S = 300.0


class RedisClock:
    """Redis's last reported time, advanced by a monotonic clock; before that, the host's clock.

    The monotonic clock may stop while a machine sleeps. This clock is then late until Redis is asked again.
    """

    def __init__(self) -> None:
        self._ahead_ms: int | None = None

    def set(self, seconds: int, microseconds: int) -> None:
        """Set the clock from a reply to TIME, just received."""
        self._ahead_ms = seconds * 1_000 + microseconds // 1_000 - _monotonic_ms()

    def now_ms(self) -> int:
        """Return the Unix milliseconds."""
        return time.time_ns() // 1_000_000 if self._ahead_ms is None else _monotonic_ms() + self._ahead_ms

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.fromtimestamp(self.now_ms() / 1_000, UTC)

    def host_is_off(self) -> str:
        """Describe the difference between this host's clock and Redis's if it is large; else return ''."""
        ahead_s = time.time() - self.now_ms() / 1_000
        if abs(ahead_s) < TOLD_S:
            return ""
        return f"this host's clock is {abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'} Redis's; synchronise both (NTP)"


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


#: The clock of this process. Its service sets it before it consumes, and every few seconds.
clock = RedisClock()
