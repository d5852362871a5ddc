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

from assay_store.errors import StoreError

log = logging.getLogger(__name__)

#: How often the disk is looked at, in seconds. A look costs microseconds.
EVERY_S = 0.05


class Merges:
    """Stops merges when less than half of the reserve is free, and starts them again once all of it is."""

    def __init__(self, reserve_bytes: int) -> None:
        self._reserve = reserve_bytes
        self.stopped = False

    def judge(self, free_bytes: int) -> str | None:
        """The statement to run, if any, now that so much is free. Pure."""
        if not self.stopped and free_bytes < self._reserve // 2:
            self.stopped = True
            return "SYSTEM STOP MERGES"
        if self.stopped and free_bytes >= self._reserve:
            self.stopped = False
            return "SYSTEM START MERGES"
        return None


async def watch(data: Path, reserve_bytes: int, control: Callable[[str], Awaitable[object]]) -> None:
    """Look at the disk, for ever; `control` runs a statement of the store's own."""
    merges = Merges(reserve_bytes)
    while True:
        await asyncio.sleep(EVERY_S)
        free = shutil.disk_usage(data).free
        if statement := merges.judge(free):
            log.warning(
                "merges are %s: %d MiB free on the store's disk, reserve %d MiB (--keep-free-bytes)",
                "stopped" if merges.stopped else "started again",
                free >> 20,
                reserve_bytes >> 20,
            )
            try:
                await control(statement)
            except StoreError:
                return  # the store is stopping
