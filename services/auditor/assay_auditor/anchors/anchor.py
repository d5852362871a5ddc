"""The interface of all anchors: a name, a kind, and a way to submit a checkpoint."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from assay_auditor.notes import Signed

WITNESS, TIMESTAMP, DIRECTORY = "witness", "timestamp", "directory"

#: Returns the consistency proof from an older size of the log to the submitted checkpoint.
Prove = Callable[[int], Sequence[bytes]]


class AnchorError(Exception):
    """An anchor did not take a checkpoint. The message names the reason and the fix.

    `contradicts`: it has another or a longer log under this name. Trying again does not help: an operator has to look.
    """

    def __init__(self, why: str, *, contradicts: bool = False) -> None:
        super().__init__(why)
        self.contradicts = contradicts


@dataclass(frozen=True)
class Anchored:
    """A checkpoint that an anchor has, and what it signed.

    `token`: the response of a time-stamp server in base64, otherwise empty.
    """

    size: int
    note: str
    token: str
    at: datetime


class Anchor(ABC):
    """A place that gets checkpoints. `every_s`: seconds between two submissions; 0: each checkpoint."""

    kind: str
    name: str
    every_s: float = 0.0

    @abstractmethod
    def submit(self, signed: Signed, prove: Prove, known: int) -> Anchored:
        """Submit a checkpoint, and return what the anchor has now. Safe to repeat.

        `known`: the size of the last checkpoint that it is known to have, 0 if none. Raises `AnchorError`.
        """
