"""What a process gives back, seen from outside: its resident memory."""

import subprocess
import sys

import pytest

#: Threads take memory and free most of it, so that what is left lies scattered; cycles hold the rest.
GREEDY = """
import gc, threading, psutil
from assay_runtime import memory

def resident():
    return psutil.Process().memory_info().rss >> 20

memory.share_one_heap()
gc.set_threshold(1_000_000)
left = []

def work():
    taken = [bytearray(1_000) for _ in range(20_000)]
    left.append(taken[::100])
    cycle = [bytes(b'x' * 4_000_000)]
    cycle.append(cycle)

for _ in range(4):
    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
before = resident()
memory.give_back()
print(before, resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc")
def test_what_is_free_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", GREEDY], capture_output=True, text=True, check=True, timeout=120)
    before, after = map(int, done.stdout.split())
    assert before - after > 20, (before, after)
