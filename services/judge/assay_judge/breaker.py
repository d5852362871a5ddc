"""Circuit breaker, and the stop after a refused key. Pure; the clock is passed in."""

from collections.abc import Callable

#: Consecutive failures that open the circuit, and the seconds it stays open, doubling up to a maximum.
FAILURES, OPEN_S, OPEN_MOST_S = 5, 5.0, 120.0
#: Seconds after which a stopped judge tries whether its key works again.
STOPPED_S = 60.0


class Breaker:
    """A circuit breaker: closed lets calls through, open blocks them, then a single trial call decides."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._open_s = OPEN_S
        self._until = 0.0
        self._probing = False
        #: Why judging has stopped; empty while it runs.
        self.stopped = ""
        self._first = True

    @property
    def is_open(self) -> bool:
        """True if calls are held back since others failed or were refused."""
        return bool(self._until)

    def wait_s(self) -> float:
        """Return 0 if a call may start now, else the seconds until the next check.

        With an open circuit, the first caller after the pause makes the trial call.
        """
        if not self._until:
            return 0.0
        if (left := self._until - self._clock()) > 0:
            return left
        if self._probing:
            return 0.2
        self._probing = True
        return 0.0

    def succeeded(self) -> bool:
        """Record an answered call. True if this may end a stop, also one of an earlier process."""
        ended, self._first = bool(self.stopped) or self._first, False
        self._failures = 0
        self._open_s = OPEN_S
        self._until = 0.0
        self._probing = False
        self.stopped = ""
        return ended

    def failed(self) -> None:
        """Record a failure that other calls would share."""
        self._failures += 1
        if self._probing or self._failures >= FAILURES:
            if self._probing:
                self._open_s = min(2 * self._open_s, OPEN_MOST_S)
            self._until = self._clock() + self._open_s
            self._probing = False

    def stop(self, reason: str, for_s: float = STOPPED_S) -> bool:
        """Stop all calls except an occasional trial call. True if this is a new stop."""
        news = not self.stopped
        self.stopped = reason
        self._until = self._clock() + for_s
        self._probing = False
        return news

    def abandoned(self) -> None:
        """Cancel a call that was let through and never made."""
        self._probing = False
