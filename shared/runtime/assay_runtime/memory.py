"""Memory bound of each service, and the return of free memory to the system.

glibc keeps a heap for each thread that ever allocated memory and rarely returns any; clients' errors and responses are
part of reference cycles that keep whole batches until they are collected. The calls to the C library do nothing with
other libraries (musl, macOS).
"""

import contextlib
import ctypes
import gc
import math
import re
from collections.abc import Callable
from pathlib import Path

from assay_runtime import metrics

#: Bound of a service's resident memory, in bytes, during any outage, with the default batch sizes.
BOUND_BYTES = 150 << 20
#: Additional bytes of each shard except the first: its batches, and one read.
SHARD_BYTES = 30 << 20
WRITER_SHARD_BYTES = 50 << 20
#: Seconds between returns of free memory to the system.
GIVE_BACK_EVERY_S = 2.0
#: `mallopt` parameters (malloc.h): the number of heaps, and the size from which a block is mapped separately, and
#: unmapped when freed.
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
_HEAPS = 1
_MAPPED_FROM_BYTES = 256 * 1024


def bound_of(service: str, shards: int) -> int:
    """Return the bound of a service that consumes streams, in bytes. Pure."""
    return BOUND_BYTES + (shards - 1) * (WRITER_SHARD_BYTES if service == "writer" else SHARD_BYTES)


def publish(bound_bytes: int) -> None:
    """Show the bound and the peak of this process on `/metrics`."""
    metrics.MEMORY_PEAK.set_function(peak)
    metrics.MEMORY_BOUND.set(bound_bytes)


def peak() -> float:
    """Return the peak resident bytes of this process; NaN if the system does not report it."""
    with contextlib.suppress(OSError):
        if found := re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE):
            return int(found[1]) * 1024
    return math.nan


def share_one_heap() -> None:
    """Make all threads share one heap, and map large blocks separately. Call before starting threads."""
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, _HEAPS)
        libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES)


def give_back() -> None:
    """Collect cycles, and return whole free pages to the system. Takes a few milliseconds."""
    gc.collect()
    _trim()


def _trimming() -> Callable[[], object]:
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return lambda: None
    return lambda: trim(0)


_trim = _trimming()
