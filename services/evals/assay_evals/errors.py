"""What a person can mend: a file, a target or a number that does not fit. The message says which and how."""


class EvalsError(ValueError):
    """A dataset, captured rows, a baseline, a run or a target that cannot be used. Never quotes a question or an answer."""
