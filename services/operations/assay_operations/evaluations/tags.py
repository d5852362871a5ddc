"""Tags of runs."""

from assay_operations.errors import OperationError

#: Longest tag of a run, in characters.
TAG_MAX_CHARS = 64


def tags_of(given: list[str] | None) -> tuple[str, ...]:
    """A run's tags, each once, sorted. Raises `OperationError` for what would not be one word or line in a list."""
    for tag in given or ():
        if not tag.strip() or len(tag) > TAG_MAX_CHARS or not tag.isprintable():
            raise OperationError("invalid", f"--tag: a tag has 1 to {TAG_MAX_CHARS} characters and no line end")
    return tuple(sorted({*(given or ())}))
