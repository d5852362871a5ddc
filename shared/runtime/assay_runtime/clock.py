"""The clock of Redis, by which what arrives is dated. A host's own may be a day wrong: a resumed machine, a board without a battery."""

import time
from datetime import UTC, datetime

#: From this difference on a service says that its host's clock is wrong, in seconds.
TOLD_S = 300.0


class RedisClock:
    """Redis's clock as it was last asked, carried on by a clock that nobody sets. Before it was asked: the host's.

    That other clock may stand still while a machine sleeps: after that this one is late until Redis is asked again.
    """

    def __init__(self) -> None:
        self._ahead_ms: int | None = None

    def set(self, seconds: int, microseconds: int) -> None:
        """Take an answer to TIME, just received."""
        self._ahead_ms = seconds * 1_000 + microseconds // 1_000 - _monotonic_ms()

    def now_ms(self) -> int:
        """Unix milliseconds."""
        return time.time_ns() // 1_000_000 if self._ahead_ms is None else _monotonic_ms() + self._ahead_ms

    def now(self) -> datetime:
        """The same as a time in UTC."""
        return datetime.fromtimestamp(self.now_ms() / 1_000, UTC)

    def host_is_off(self) -> str:
        """How far this host's clock is from Redis's, if that is worth telling; else ''."""
        ahead_s = time.time() - self.now_ms() / 1_000
        if abs(ahead_s) < TOLD_S:
            return ""
        return f"this host's clock is {abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'} Redis's; synchronise both (NTP)"


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


#: Of this process. Its service sets it before it consumes, and every few seconds.
clock = RedisClock()
