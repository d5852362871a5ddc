"""What a person can mend: a file, a target or a number that does not fit. The message says which and how."""


class EvalsError(ValueError):
    """A dataset, captured rows, a baseline, a run or a target that cannot be used. Never quotes a question or an answer."""


class TargetError(Exception):
    """The target did not answer, or not in a form that is known. Its message never holds what was asked or answered.

    `retryable`: whether the same question may fare better in a moment. `said`: what the target itself said of it, where that was asked for;
    it may hold anything.
    """

    def __init__(self, message: str, *, retryable: bool = False, said: str | None = None) -> None:
        super().__init__(message)
        self.retryable, self.said = retryable, said


class TargetUsageError(EvalsError):
    """A target that cannot be reached as it was named; says how to name it."""


class ScorerError(Exception):
    """A scorer that came to no score: the case is an error. Its message names the scorer and a place, never what was asked or answered."""
