"""Identity: `event_id` from the producer, `id` from the place in the log.

`event_id` is a UUIDv7 (RFC 9562): it carries the producer's time and is the idempotency key from SDK to table.

`id` is the row's number in exports. It packs the capture entry's place in the log into 53 bits, so that every JSON parser reads it
exactly: 40 bits of milliseconds since 2024-01-01 (enough until 2058), then 12 bits shared by the entry's sequence number within that
millisecond and its shard, then a zero. With N shards an entry whose sequence reaches 4096 / N does not fit (a burst beyond four million
entries a second, or a Redis clock that was set back); the script that forwards it gives it an odd `id` from a counter of the shard's own,
as it does with an entry that came under an id far ahead of the clock.
"""

import os
import random
import time
from uuid import UUID

#: 2024-01-01T00:00:00Z in Unix milliseconds.
EPOCH_MS = 1_704_067_200_000
#: Bits of an `id` below its milliseconds.
PLACE_BITS = 13
PLACES = 1 << PLACE_BITS
#: The last Unix millisecond for which there is an `id`, but for a day that the counter may need.
LAST_MS = EPOCH_MS + (1 << 53 - PLACE_BITS) - 86_400_000
#: An entry id further ahead of the clock than this was chosen by a producer, in milliseconds; it dates and numbers nothing.
AHEAD_MAX_MS = 3_600_000

# No secret is made here, so a seeded generator will do, and it saves a system call. It is this module's own: a program that seeds
# Python's shared one to repeat its results must not repeat its identities.
_random = random.Random()  # noqa: S311
_random_bits = _random.getrandbits
os.register_at_fork(after_in_child=_random.seed)

_VERSION_AND_VARIANT = 0x7 << 76 | 0x2 << 62
#: 4096 steps of this many nanoseconds cover a millisecond.
_STEP_NS = 245


def new_event_id() -> str:
    """A fresh UUIDv7: Unix milliseconds, the rest of the clock in 12 bits (RFC 9562, section 6.2, method 3), 62 random bits.

    Every call of a producer waits for this, so it takes a microsecond. The rest of the clock keeps a process's events in order, and clones
    of a virtual machine, which share the generator's state, apart.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    bits = (milliseconds << 16 | nanoseconds // _STEP_NS) << 64 | _VERSION_AND_VARIANT | _random_bits(62)
    digits = bits.to_bytes(16, "big").hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def event_ms(event_id: UUID) -> int:
    """The Unix milliseconds a UUIDv7 carries."""
    return event_id.int >> 80


def entry_parts(entry_id: str) -> tuple[int, int]:
    """Split a Redis stream entry id `ms-seq` into its two integers."""
    ms, _, sequence = entry_id.partition("-")
    return int(ms), int(sequence)


def row_id(entry_id: str, shard: int = 0, shards: int = 1) -> int | None:
    """The `id` of a capture entry, or None when its sequence number does not fit (see the module's docstring)."""
    ms, sequence = entry_parts(entry_id)
    place = (sequence * shards + shard) * 2
    if place >= PLACES:
        return None
    return ms - EPOCH_MS << PLACE_BITS | place


def row_ms(row: int) -> int:
    """The Unix milliseconds of the capture entry an `id` was made from."""
    return (row >> PLACE_BITS) + EPOCH_MS


def first_row_at(ms: int) -> int:
    """The smallest `id` an entry that arrived at Unix millisecond `ms` can have; times before the epoch give 0."""
    return max(0, ms - EPOCH_MS) << PLACE_BITS
