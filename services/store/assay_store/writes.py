"""Failed writes: the store ends, and restarts from the parts that are complete.

If a write to a file fails, a ClickHouse server cancels the insert or merge. The embedded engine does not: it counts the
failure, leaves the file incomplete, moves the part into place and reports success. After a statement that writes, the
response therefore waits for a check of that count. Once it has increased, nothing that the engine wrote can be trusted:
the statement fails, and the process ends, as if killed. At the next start the engine compares the files of each part
with its checksums, puts incomplete parts aside, and restores those that a merge had replaced, which
`config.OLD_PARTS_SECONDS` keeps until then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from assay_store.errors import ABORTED, CANNOT_WRITE_TO_FILE_DESCRIPTOR, StoreError

log = logging.getLogger(__name__)

#: Seconds between checks of the count: far less than the retention of parts replaced by a merge. A check takes a
#: millisecond.
EVERY_S = 1.0
#: Seconds between counts of the parts that were put aside.
COUNT_EVERY_S = 60.0

_PUT_ASIDE = "SELECT count() FROM system.detached_parts WHERE startsWith(reason, 'broken')"


def require_written(failed_writes: Callable[[], int]) -> None:
    """Return if every write of the engine so far succeeded.

    Raises:
        StoreError: one failed (75), or that is unknown.
    """
    if failed_writes():
        raise StoreError(
            CANNOT_WRITE_TO_FILE_DESCRIPTOR,
            "A write to the store's disk failed, and the store starts again. Send the statement again: it may be undone",
        )


async def watch(failed_writes: Callable[[], Awaitable[int]], end: Callable[[], None]) -> None:
    """Check the count in an endless loop, and `end` the process after a failed write."""
    while True:
        try:
            failed = await failed_writes()
        except StoreError as error:
            if error.code == ABORTED:
                return  # the store is stopping
            failed = 0  # perhaps out of memory: the next check decides
        if failed:
            log.critical(
                "a write to the store's disk failed: the store ends, to start again from the parts that are whole"
            )
            end()
        await asyncio.sleep(EVERY_S)


async def count_put_aside(control: Callable[[str], Awaitable[str]], show: Callable[[int], None]) -> None:
    """Show the number of parts that could not be read at the start, until they are dropped."""
    known = 0
    while True:
        try:
            now = int(await control(_PUT_ASIDE))
        except StoreError as error:
            if error.code == ABORTED:
                return
        else:
            if now > known:
                log.warning("%d part(s) could not be read and were put aside: see system.detached_parts", now)
            show(known := now)
        await asyncio.sleep(COUNT_EVERY_S)
