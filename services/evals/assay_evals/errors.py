"""Errors that the user can fix: an invalid file, target or number.

The message names the problem and the fix.
"""


class EvalsError(ValueError):
    """Unusable dataset, captured rows, baseline, run or target. Never quotes a question or an answer."""


class TargetError(Exception):
    """The target did not answer, or in an unknown form. The message contains no question or answer.

    `retryable`: True if a retry may succeed. `target_message`: the target's own message, if requested; it may contain anything.
    """

    def __init__(self, message: str, *, retryable: bool = False, target_message: str | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.target_message = target_message


class TargetUsageError(EvalsError):
    """A target with an invalid name or address; the message shows a valid one."""


class ScorerError(Exception):
    """A scorer that failed: the case is an error.

    The message names the scorer and a place, never the question or the answer.
    """
