"""What every way of telling somebody has in common."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from assay_notifier.notice import Notice


class NotDeliveredError(Exception):
    """A channel did not take a notice. `why` names what mends it, and holds no secret.

    `passing`: trying again soon may help (no answer, overload). Otherwise somebody has to change something (401, an unknown address).
    """

    def __init__(self, why: str, *, passing: bool, retry_after_s: float = 0.0) -> None:
        super().__init__(why)
        self.why, self.passing, self.retry_after_s = why, passing, retry_after_s


class Channel(ABC):
    """One receiver of notices."""

    #: Names the channel in records, metrics and messages: stable across restarts, and no secret.
    name: str

    def groups(self, notices: Sequence[Notice]) -> list[list[Notice]]:
        """How transitions that came together are told: by default each by itself, in order."""
        return [[notice] for notice in notices]

    @abstractmethod
    async def send(self, notices: Sequence[Notice]) -> None:
        """Tell of these transitions at once. Returns when the receiver has taken it; raises `NotDeliveredError`.

        Delivery: at least once. A receiver that took a notice and could not say so is given it again, under the same id.
        """
