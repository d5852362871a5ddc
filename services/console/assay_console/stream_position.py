"""Positions in the streams of scrubbed events: the last id of each shard. Pure."""

import re

from assay_schema.ids import entry_parts

_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
#: Redis refuses ids with a larger number.
_NUMBER_MAX = 2**64 - 1
StreamPosition = tuple[str, ...]


def parse_stream_position(text: str, shards: int) -> StreamPosition | None:
    """Return the position of a text; None if it is none, or of another number of shards."""
    ids = tuple(text.split(","))
    if len(ids) != shards or not all(_ID.fullmatch(each) for each in ids):
        return None
    return ids if max(max(entry_parts(each)) for each in ids) <= _NUMBER_MAX else None
