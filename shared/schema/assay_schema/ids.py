"""Ids: `event_id` from the producer, `id` from the position in the log.

`event_id` is a UUIDv7 (RFC 9562): it contains the producer's time and is the idempotency key from SDK to table.

`id` is the row's number in exports. It packs the capture entry's position in the log into 53 bits, so that every JSON
parser reads it exactly: 40 bits of milliseconds since 2024-01-01 (enough until 2058), then 12 bits shared by the
entry's sequence number within that millisecond and its shard, then a zero. With N shards, an entry whose sequence
reaches 4096 / N does not fit (a burst of more than four million entries per second, or a Redis clock that was set
back). The script that forwards it then assigns an odd `id` from a separate counter of the shard, as it does for an
entry whose id is far ahead of the clock.
"""

import hashlib
import os
import random
import time
from uuid import UUID

#: 2024-01-01T00:00:00Z in Unix milliseconds.
EPOCH_MS = 1_704_067_200_000
#: Bits of an `id` below its milliseconds.
PLACE_BITS = 13
PLACES = 1 << PLACE_BITS
#: The last Unix millisecond with an `id`, except for a day that the counter may need.
LAST_MS = EPOCH_MS + (1 << 53 - PLACE_BITS) - 86_400_000
#: An entry id further ahead of the clock than this, in milliseconds, was chosen by a producer; it is not used for times
#: or ids.
AHEAD_MAX_MS = 3_600_000

# No secret is made here, so a seeded generator is sufficient and saves a system call. It is private to this module: a
# program that seeds Python's shared generator to repeat its results must not repeat its ids.
_random = random.Random()  # noqa: S311
_random_bits = _random.getrandbits
os.register_at_fork(after_in_child=_random.seed)

_VERSION_AND_VARIANT = 0x7 << 76 | 0x2 << 62
#: 4096 steps of this many nanoseconds cover a millisecond.
_STEP_NS = 245
#: The last Unix millisecond that a UUIDv7 can hold.
EVENT_MS_MAX = (1 << 48) - 1


def new_event_id() -> str:
    """Return a new UUIDv7: Unix milliseconds, 12 bits of finer clock, 62 random bits.

    The clock bits follow RFC 9562, section 6.2, method 3. Every call of a producer waits for this, so it takes a
    microsecond. The clock bits keep a process's events in order, and separate clones of a virtual machine, which share
    the generator's state.
    """
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    bits = (milliseconds << 16 | nanoseconds // _STEP_NS) << 64 | _VERSION_AND_VARIANT | _random_bits(62)
    return _uuid(bits)


def derived_event_id(milliseconds: int, key: bytes) -> str:
    """Return the UUIDv7 of a time and of a hash of a key: always the same for the same arguments.

    A time outside the range of a UUIDv7 becomes its first or last one.
    """
    bits = int.from_bytes(hashlib.blake2b(key, digest_size=10).digest())
    moment = min(max(0, milliseconds), EVENT_MS_MAX)
    return _uuid(moment << 80 | _VERSION_AND_VARIANT | (bits >> 62 & 0xFFF) << 64 | bits & (1 << 62) - 1)


def _uuid(bits: int) -> str:
    digits = bits.to_bytes(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def event_ms(event_id: UUID) -> int:
    """Return the Unix milliseconds in a UUIDv7."""
    return event_id.int >> 80


def entry_parts(entry_id: str) -> tuple[int, int]:
    """Split a Redis stream entry id `ms-seq` into its two integers."""
    ms, _, sequence = entry_id.partition("-")
    return int(ms), int(sequence)


def row_id(entry_id: str, shard: int = 0, shards: int = 1) -> int | None:
    """Return the `id` of a capture entry, or None if its sequence number does not fit.

    See the module's docstring.
    """
    ms, sequence = entry_parts(entry_id)
    place = (sequence * shards + shard) * 2
    if place >= PLACES:
        return None
    return ms - EPOCH_MS << PLACE_BITS | place


def row_ms(row: int) -> int:
    """Return the Unix milliseconds of the capture entry behind an `id`."""
    return (row >> PLACE_BITS) + EPOCH_MS


def first_row_at(ms: int) -> int:
    """Return the smallest `id` of entries that arrive at Unix millisecond `ms`; 0 before the epoch."""
    return max(0, ms - EPOCH_MS) << PLACE_BITS
