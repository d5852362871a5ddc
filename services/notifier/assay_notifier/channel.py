"""Interface of all notification channels."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from assay_notifier.notice import Notice


class NotDeliveredError(Exception):
    """A channel did not accept a notice. `why` names the fix and contains no secret.

    `passing`: a retry may succeed soon (no answer, overload). Otherwise an operator has to change something (401, an
    unknown address).
    """

    def __init__(self, why: str, *, passing: bool, retry_after_s: float = 0.0) -> None:
        super().__init__(why)
        self.why = why
        self.passing = passing
        self.retry_after_s = retry_after_s


class Channel(ABC):
    """A receiver of notices."""

    #: Name of the channel in records, metrics and messages: stable across restarts, and not secret.
    name: str

    def groups(self, notices: Sequence[Notice]) -> list[list[Notice]]:
        """Group transitions that arrived together into notices; by default each is its own notice, in order."""
        return [[notice] for notice in notices]

    @abstractmethod
    async def send(self, notices: Sequence[Notice]) -> None:
        """Send these transitions as one notice. Returns once the receiver has accepted it.

        Raises `NotDeliveredError`. Delivery: at least once. A receiver whose acceptance was lost gets the notice again
        with the same id.
        """
