"""When not to call: a circuit breaker, and the stop that a refused key makes. Pure but for the clock that is handed in."""

from collections.abc import Callable

#: Failures in a row that open the circuit, and the seconds it stays open, doubling up to the most.
FAILURES, OPEN_S, OPEN_MOST_S = 5, 5.0, 120.0
#: Seconds after which a stopped judge asks whether its key is good again.
STOPPED_S = 60.0


class Breaker:
    """Closed: calls go. Open: none goes until a time has passed, then one alone, whose fate decides."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._open_s = OPEN_S
        self._until = 0.0
        self._probing = False
        #: Why nothing is judged at all; empty while judging goes on.
        self.stopped = ""
        self._first = True

    def wait_s(self) -> float:
        """0 when a call may go now (when the circuit is open, the one that asks first), else the seconds after which to ask again."""
        if not self._until:
            return 0.0
        if (left := self._until - self._clock()) > 0:
            return left
        if self._probing:
            return 0.2
        self._probing = True
        return 0.0

    @property
    def open(self) -> bool:
        """Whether calls are held back."""
        return bool(self._until)

    def succeeded(self) -> bool:
        """A call was answered. True when this may end a stop: of this process, or of one before it."""
        ended, self._first = bool(self.stopped) or self._first, False
        self._failures, self._open_s, self._until, self._probing, self.stopped = 0, OPEN_S, 0.0, False, ""
        return ended

    def failed(self) -> None:
        """A call failed in a way that others would too."""
        self._failures += 1
        if self._probing or self._failures >= FAILURES:
            if self._probing:
                self._open_s = min(2 * self._open_s, OPEN_MOST_S)
            self._until = self._clock() + self._open_s
            self._probing = False

    def stop(self, reason: str, for_s: float = STOPPED_S) -> bool:
        """Nothing goes any more, but for one call now and then. True when this is news."""
        news = not self.stopped
        self.stopped, self._until, self._probing = reason, self._clock() + for_s, False
        return news

    def abandoned(self) -> None:
        """A call that was let through was never made."""
        self._probing = False
