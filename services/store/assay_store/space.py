"""Room on the disk: merges end before it runs out.

An engine that finds no room in the middle of a merge may finish the part with an empty file in it, and the table then cannot be read.
So the disk's `keep_free_space_bytes` refuses inserts and new merges while there is still room, and what is left of it is for the merges
that run; should another program eat into that, they are cancelled, which leaves the parts they came from as they were.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from assay_store.errors import ABORTED, StoreError

log = logging.getLogger(__name__)

#: How often the disk is looked at, in seconds. A look costs microseconds.
EVERY_S = 0.05


def statement(free_bytes: int, reserve_bytes: int, *, stopped: bool) -> str | None:
    """What to tell the engine, if anything: to stop merges below half of the reserve, to start them once all of it is free."""
    if not stopped and free_bytes < reserve_bytes // 2:
        return "SYSTEM STOP MERGES"
    if stopped and free_bytes >= reserve_bytes:
        return "SYSTEM START MERGES"
    return None


async def watch(data: Path, reserve_bytes: int, control: Callable[[str], Awaitable[object]]) -> None:
    """Look at the disk, for ever; `control` runs a statement of the store's own."""
    stopped = False
    while True:
        await asyncio.sleep(EVERY_S)
        free = shutil.disk_usage(data).free
        if (sql := statement(free, reserve_bytes, stopped=stopped)) is None:
            continue
        try:
            await control(sql)
        except StoreError as error:
            if error.code == ABORTED:
                return  # the store is stopping
            continue  # want of memory, perhaps: the next look tries again
        stopped = not stopped
        log.warning(
            "merges are %s: %d MiB free on the store's disk, reserve %d MiB (--keep-free-bytes)",
            "stopped" if stopped else "started again",
            free >> 20,
            reserve_bytes >> 20,
        )
