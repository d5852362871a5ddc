"""Budget of judging one answer: money, attempts and time, and the next step after a failed attempt."""

import random
import time
from enum import Enum, auto
from types import TracebackType
from typing import Self

from assay_judge.api import BadReplyError, CallError, RejectedError, StoppedError, TryAgainError
from assay_judge.ledger import Call, Ledger, Reservation
from assay_judge.messages import NO_TIME_LEFT
from assay_judge.pricing import Tariff, Usage, bound_tokens

#: Attempts per answer that are, or may be, billed.
BILLED_ATTEMPTS = 2
#: Seconds before the first retry, doubling up to a maximum.
PAUSE_S, PAUSE_MOST_S = 0.5, 8.0
#: Minimum time-out of an attempt, in seconds.
ATTEMPT_MIN_S = 0.1


class NotJudgedError(Exception):
    """The service stopped before the answer was judged. Its entry stays pending, and nothing was spent."""


class NextStep(Enum):
    """Next step after a failed attempt."""

    #: Retry, after a pause.
    RETRY = auto()
    #: Retry immediately: the model replied, but not with a verdict.
    REPEAT = auto()
    #: Wait until the API accepts our calls again.
    STOP = auto()
    #: Record the error as the result.
    RECORD = auto()


def classify(error: CallError) -> NextStep:
    """Return the step for an error, if there are attempts and time left."""
    match error:
        case StoppedError():
            return NextStep.STOP
        case TryAgainError():
            return NextStep.RETRY
        case RejectedError():
            return NextStep.RECORD
        case _:
            return NextStep.REPEAT


class Bill:
    """Cost of an answer so far, in nano-dollars.

    An attempt that may have been billed counts with its upper bound.
    """

    def __init__(self, tariff: Tariff) -> None:
        self._tariff = tariff
        self.nano = 0
        self.usage = Usage()

    def charge(self, usage: Usage | None, bound: int) -> None:
        """Add an attempt. `usage` is None if it is unknown."""
        if usage is None:
            self.nano += bound
        else:
            self.usage += usage
            self.nano += self._tariff.cost(usage)


class CallBudget:
    """Budget of one answer.

    Each attempt reserves its upper bound; `charge` replaces it by the cost, and `settle` books the sum with the score. On
    exit, the reservation of an answer that was not judged and certainly not billed is released.
    """

    def __init__(
        self,
        ledger: Ledger,
        tariff: Tariff,
        call: Call,
        *,
        message_bytes: int,
        max_output_tokens: int,
        deadline_s: float,
    ) -> None:
        self._ledger = ledger
        self._deadline_s = deadline_s
        #: Upper bounds of one attempt, in nano-dollars and in tokens read.
        self.bound = tariff.bound(message_bytes, max_output_tokens)
        self.tokens = bound_tokens(message_bytes)
        #: The call, which determines the day that is charged.
        self.call = call
        self.bill = Bill(tariff)
        self._reserved = False
        self._attempt = 1
        self._requests = 0
        self._failures = 0
        self._deadline = 0.0
        self._pause_s = PAUSE_S

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, NotJudgedError) and self._reserved and not self.bill.nano:
            await self._ledger.release(self.call)  # charges stay spent, and the next judge finds the answer interrupted

    def new_request(self) -> str:
        """Return the id of the next request: each counts towards the rate limits, billed or not."""
        self._requests += 1
        return f"{self.call.owner}/{self._requests}"

    def start(self, waited_s: float) -> None:
        """Start the deadline, or extend it by the time waited.

        Waiting for the breaker and the rate limits does not count towards it.
        """
        self._deadline = self._deadline + waited_s if self._deadline else time.monotonic() + self._deadline_s

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, for the time-out of an attempt."""
        return max(ATTEMPT_MIN_S, self._deadline - time.monotonic())

    async def reserve(self) -> Reservation:
        """Reserve the upper bound of the next attempt, unless it is reserved. Raises `RedisError`."""
        if self._reserved:
            return Reservation("ok")
        if not self.bill.nano:  # it may have waited past midnight; earlier charges stay on their day
            self.call = self._ledger.today(self.call)
        reservation = await self._ledger.reserve(self.call, self._attempt, self.bound)
        if reservation.what == "ok":
            self._reserved = True
        elif reservation.what == "interrupted":
            self.bill.charge(None, reservation.nano)
        return reservation

    def charge(self, usage: Usage | None) -> None:
        """Charge an attempt. `usage` is None if it is unknown."""
        self.bill.charge(usage, self.bound)

    def after(self, error: CallError) -> NextStep:
        """Charge a failed attempt if it may have been billed, and return the next step."""
        step = classify(error)
        if step is NextStep.STOP:
            return step
        billed = error.usage is None or error.usage != Usage()
        if billed:
            self.charge(error.usage)
            self._reserved = False
            self._attempt += 1
        if billed or isinstance(error, BadReplyError):
            self._failures += 1
        return NextStep.RECORD if self._failures >= BILLED_ATTEMPTS or self._is_late else step

    @property
    def _is_late(self) -> bool:
        return time.monotonic() + self._pause_s >= self._deadline

    def detail(self, error: CallError) -> str:
        """Return the recorded detail of the last error."""
        late = NO_TIME_LEFT if self._is_late and isinstance(error, TryAgainError) else ""
        return f"{error.kind}{late}"

    def next_pause_s(self) -> float:
        """Return the seconds before a retry, with jitter, and double the next pause."""
        pause = self._pause_s * random.uniform(0.5, 1)  # noqa: S311  # jitter, not a secret
        self._pause_s = min(2 * self._pause_s, PAUSE_MOST_S)
        return pause

    async def settle(self, score: bytes) -> bool:
        """Book the cost and store the score. False if another judge took over the answer."""
        return await self._ledger.settle(self.call, self.bill.nano, score)
