"""Tags of runs."""

from assay_operations.errors import OperationError

#: Longest tag of a run, in characters.
TAG_MAX_CHARS = 64


def tags_of(given: list[str] | None) -> tuple[str, ...]:
    """Return the tags of a run, unique and sorted.

    Raises `OperationError` for an unprintable or long one.
    """
    for tag in given or ():
        if not tag.strip() or len(tag) > TAG_MAX_CHARS or not tag.isprintable():
            raise OperationError("invalid", f"--tag: a tag needs 1 to {TAG_MAX_CHARS} printable characters on one line")
    return tuple(sorted({*(given or ())}))
