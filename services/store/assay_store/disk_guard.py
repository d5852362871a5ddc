"""Disk space: merges are stopped before it runs out.

If the disk is full in the middle of a merge, the engine may finish the part with an empty file in it, and the table
then cannot be read. The disk's `keep_free_space_bytes` therefore refuses inserts and new merges while there is still
space, and the rest is for running merges. If another program uses that space, they are cancelled, which leaves their
source parts unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from assay_store.errors import ABORTED, StoreError

log = logging.getLogger(__name__)

#: Seconds between checks of the disk. A check takes microseconds.
EVERY_S = 0.05


def statement(free_bytes: int, reserve_bytes: int, *, stopped: bool) -> str | None:
    """Return the statement for the engine, if any.

    It stops merges below half of the reserve, and starts them once all of it is free.
    """
    if not stopped and free_bytes < reserve_bytes // 2:
        return "SYSTEM STOP MERGES"
    if stopped and free_bytes >= reserve_bytes:
        return "SYSTEM START MERGES"
    return None


async def watch(data: Path, reserve_bytes: int, control: Callable[[str], Awaitable[object]]) -> None:
    """Check the disk in an endless loop; `control` runs a statement of the store's own."""
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
            continue  # perhaps out of memory: the next check tries again
        stopped = not stopped
        log.warning(
            "merges are %s: %d MiB free on the store's disk, reserve %d MiB (--keep-free-bytes)",
            "stopped" if stopped else "started again",
            free >> 20,
            reserve_bytes >> 20,
        )
