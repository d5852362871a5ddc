"""`python -m tests.support.watched_gateway`: the gateway, with a watch on the turns of its event loop.

`/metrics` has two more lines: the longest turn in seconds, by the clock and in CPU time of the loop's thread. Other load
on the machine lengthens the first, never the second.
"""

import asyncio
import time

from prometheus_client import Gauge

from assay_gateway import app
from assay_schema.settings import Settings

LONGEST = Gauge("watched_longest_turn_seconds", "Longest turn of the event loop.", ["clock"])
#: Turns before this are of the start.
_WARM_S = 2.0


async def _watch() -> None:
    await asyncio.sleep(_WARM_S)
    longest = {"wall": 0.0, "cpu": 0.0}
    wall, cpu = time.perf_counter(), time.thread_time()
    while True:
        await asyncio.sleep(0.001)
        last_wall, last_cpu = wall, cpu
        wall, cpu = time.perf_counter(), time.thread_time()
        for name, took in (("wall", wall - last_wall), ("cpu", cpu - last_cpu)):
            if took > longest[name]:
                longest[name] = took
                LONGEST.labels(name).set(took)


async def _serve(settings: Settings) -> int:
    watching = asyncio.create_task(_watch())
    try:
        return await app.Gateway(settings).run()
    finally:
        watching.cancel()


if __name__ == "__main__":
    app._serve = _serve
    app.run()
