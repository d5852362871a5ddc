"""How much memory and disk an outage takes: the bounds that the guide states."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.redis import RedisServer

MIB = 1024 * 1024
#: What the guide adds to `capture.queue_bytes`: a batch on its way, and its copies.
BATCH_MIB = 32

PROGRAM = """
import json, sys, time
from pathlib import Path
from assay_capture import Capture

def memory(name):
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024

size, count = int(sys.argv[1]), int(sys.argv[2])
text = "x" * size
capture = Capture.from_env(service="outage")

def one():
    capture.retrieval(tool_name="query", query=text, retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1)

one()
assert capture.flush(60)
Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
before = memory("VmRSS")
print("ready", flush=True)
sys.stdin.readline()
most = spool = 0
for number in range(count):
    one()
    most = max(most, capture.stats().queue_bytes)
    if number % 200 == 0:
        spool = max(spool, capture.stats().spool_bytes)
        time.sleep(0.002)  # the background thread has its turn between them, as in a program that also does other work
print("captured", flush=True)
sys.stdin.readline()
while not (capture.flush(60) and not capture.stats().spool_bytes):
    time.sleep(0.01)
stats = capture.stats()
print(json.dumps({
    "grown": memory("VmHWM") - before, "captured": stats.captured, "dropped": stats.dropped, "most": most, "spool": spool,
}))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize("durability", ["memory", "spool"])
@pytest.mark.parametrize(("size", "count"), [(MIB - 2_000, 300), (200, 100_000)], ids=["1 MiB events", "small events"])
def test_an_outage_takes_no_more_memory_and_disk_than_the_guide_says(
    durability: str, size: int, count: int, spool_dir: Path, redis_server: RedisServer
) -> None:
    queue_bytes, queue_entries, spool_bytes = 64 * MIB, 10_000, 32 * MIB
    environment = {
        **os.environ,
        "ASSAY_CAPTURE": "1",
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_REDIS_COMMAND_TIMEOUT_S": "300",  # the batch on its way stays on its way
        "ASSAY_CAPTURE_SPOOL_DIR": str(spool_dir),
        "ASSAY_CAPTURE_SPOOL_BYTES": str(spool_bytes),
        "ASSAY_CAPTURE_DURABILITY": durability,
    }
    program = [sys.executable, "-c", PROGRAM, str(size), str(count)]
    with subprocess.Popen(
        program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        redis_server.kill(signal.SIGSTOP)
        print("go", file=process.stdin, flush=True)
        assert process.stdout.readline() == "captured\n"
        files = sum(path.stat().st_size for path in spool_dir.rglob("*.jsonl"))
        redis_server.kill(signal.SIGCONT)
        print("go", file=process.stdin, flush=True)
        found: dict[str, Any] = json.loads(process.stdout.readline())
    assert found["captured"] == count + 1
    assert sum(found["dropped"].values()) > 0, "the outage filled whatever there is to fill"
    assert found["most"] <= queue_bytes
    assert files <= (spool_bytes if durability == "spool" else 0)
    assert found["spool"] <= spool_bytes
    assert found["grown"] <= queue_bytes + 100 * queue_entries + BATCH_MIB * MIB, found
