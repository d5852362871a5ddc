"""How much memory each service may hold, and how what is free goes back to the system.

glibc keeps a heap for each thread that ever took memory and rarely gives any back; clients' errors and responses are part of reference
cycles that hold whole batches until they are collected. The calls to the C library do nothing where it is another (musl, macOS).
"""

import contextlib
import ctypes
import gc
import math
import re
from collections.abc import Callable
from pathlib import Path

from assay_runtime import metrics

#: Resident memory that every service stays below, in bytes, whatever is away and for how long; with the default sizes of batches.
BOUND_BYTES = 150 << 20
#: What each shard but the first may add: its batches, and one read.
SHARD_BYTES = 30 << 20
WRITER_SHARD_BYTES = 50 << 20
#: How often memory that is free goes back to the system, in seconds.
GIVE_BACK_EVERY_S = 2.0
#: `mallopt` parameters (malloc.h): how many heaps there are, and from which size on a block is mapped, and unmapped when it is freed.
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
_HEAPS = 1
_MAPPED_FROM_BYTES = 256 * 1024


def publish(service: str, shards: int) -> None:
    """Show the bound and the peak of this process on `/metrics`."""
    metrics.MEMORY_PEAK.set_function(peak)
    metrics.MEMORY_BOUND.set(BOUND_BYTES + (shards - 1) * (WRITER_SHARD_BYTES if service == "writer" else SHARD_BYTES))


def peak() -> float:
    """The most resident bytes that this process ever had; not a number where the system does not say."""
    with contextlib.suppress(OSError):
        if found := re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE):
            return int(found[1]) * 1024
    return math.nan


def share_one_heap() -> None:
    """Have all threads share one heap, and large blocks mapped by themselves. Call before threads are started."""
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, _HEAPS)
        libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)


def give_back() -> None:
    """Collect cycles, and give whole free pages to the system. Takes a few milliseconds."""
    gc.collect()
    _trim()


def _trimming() -> Callable[[], object]:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return lambda: None
    return lambda: trim(0)


_trim = _trimming()
