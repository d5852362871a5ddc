"""Positions in the streams of scrubbed events: the last id of each shard. Pure."""

import re

_ID = re.compile(r"\d{1,20}-\d{1,20}")
StreamPosition = tuple[str, ...]


def parse_stream_position(text: str, shards: int) -> StreamPosition | None:
    """Return the position of a text; None if it is none, or of another number of shards."""
    ids = tuple(text.split(","))
    return ids if len(ids) == shards and all(_ID.fullmatch(each) for each in ids) else None


def order(entry_id: str) -> tuple[int, int]:
    """Return the key that sorts ids of entries."""
    ms, _, sequence = entry_id.partition("-")
    return int(ms), int(sequence)
