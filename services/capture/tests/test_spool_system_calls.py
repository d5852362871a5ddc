"""A spool whose process dies, or whose disk fails, at any one of its system calls: what it promised to keep is there for the next."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_capture.owners import private_directory
from assay_capture.spool import Spool
from assay_capture.stats import ProblemLog
from tests.support import system_calls

#: What a spool calls that changes anything, and what it looks with.
CALLS = ("mkdir", "openat", "flock", "write", "fsync", "ftruncate", "rename", "unlink", "rmdir", "getdents64", "read")
ERRORS = {
    "flock": "ENOLCK",
    "write": "ENOSPC",
    "mkdir": "ENOSPC",
    "rename": "EROFS",
    "unlink": "EROFS",
    "rmdir": "EROFS",
}

#: For each directory it is given, a child waits for a signal (so that the tracer is there in time), spools, ends, and sends all as the next
#: process would. It says what is safe, and what was delivered.
PROGRAM = """
import logging, os, signal, sys
from pathlib import Path
from assay_capture.spool import Spool
from assay_capture.stats import ProblemLog

logging.disable()

def opened(directory, adopt=()):
    return Spool(directory, "redis-a", 1 << 20, True, lambda _: 0, ProblemLog(), adopt)

def say(*words):
    os.write(1, (" ".join(words) + "\\n").encode())

def kept(spool, *names, place=None):
    entries = [(0, b'{"name":"%b"}' % name.encode()) for name in names]
    for _ in range(3):  # the publisher tries again and again
        if spool.write(entries, place) is None:
            say("safe", *names)
            return

def run(directory):
    spool = opened(directory)
    place = spool.reserve()
    kept(spool, "c", "d")
    kept(spool, "a", "b", place=place)
    kept(spool, "e")
    spool.close()
    heir = opened(directory, ["all"])
    for _ in range(3):
        heir.adopt()
        while entries := heir.read(2, 1 << 20):
            say("delivered", *[data.decode()[9:-2] for _, data in entries])
            heir.sent()
    heir.close()

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.sigwait([signal.SIGUSR1])
        run(Path(line.strip()))
        os._exit(0)
    say("child", str(child))
    say("ended", str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
"""


def entries_left(directory: Path) -> Counter[str]:
    """What the next process finds, after which nothing is left."""
    heir = Spool(directory, "redis-a", 1 << 20, True, lambda _: 0, ProblemLog(), ["all"])
    found: Counter[str] = Counter()
    heir.adopt()
    while read := heir.read(100, 1 << 20):
        found.update(data.decode()[9:-2] for _, data in read)
        heir.sent()
    heir.close()
    return found


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[Path]:
    """A spool directory with an event for another Redis and one of the version before; both are to be adopted."""
    directory = tmp_path / "spool"
    other = Spool(directory, "redis-b", 1 << 20, True, lambda _: 0, ProblemLog())
    other.write([(0, b'{"name":"other"}')])
    other.close()
    (private_directory(directory) / "dead-0000000001.jsonl").write_text('{"name":"before"}\n')
    (private_directory(directory) / "dead.lock").touch()
    yield directory
    shutil.rmtree(directory)


class Traced:
    """Runs the program's children and breaks a call of theirs."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, directory: Path, calls: str, fault: str) -> tuple[int, str, list[str]]:
        """A child's exit code, what it said, and with `list` as the fault its calls on the directory's files."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(directory, file=self._process.stdin, flush=True)
        child = int(self._process.stdout.readline().split()[1])
        with system_calls.broken(child, calls, fault, path=directory) as tracer:
            os.kill(child, signal.SIGUSR1)
            said = ""
            while not (line := self._process.stdout.readline()).startswith("ended"):
                said += line
            listed, _ = tracer.communicate(timeout=60)
        return int(line.split()[1]), said, listed.split()

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def traced() -> Iterator[Traced]:
    if why := system_calls.missing():
        pytest.skip(why)
    running = Traced()
    yield running
    running.stop()


def named(said: str, word: str) -> set[str]:
    return {name for line in said.splitlines() for name in line.split()[1:] if line.startswith(word)}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill", "error"])
def test_what_is_safe_stays_so_whichever_system_call_is_the_last_or_fails(
    fault: str, prepared: Path, traced: Traced
) -> None:
    untouched = prepared.parent / "untouched"
    shutil.copytree(prepared, untouched)
    code, said, calls = traced.run(prepared, ",".join(CALLS), "list")
    assert code == 0
    assert named(said, "safe") == set("abcde")
    assert named(said, "delivered") == {"other", "before", *"abcde"}
    assert set(calls) >= {"mkdir", "openat", "flock", "write", "fsync", "rename", "unlink", "rmdir"}
    for place, name in enumerate(calls):
        number = calls[: place + 1].count(name)
        shutil.rmtree(prepared)
        shutil.copytree(untouched, prepared)
        what = "signal=SIGKILL" if fault == "kill" else f"error={ERRORS.get(name, 'EIO')}"
        code, said, _ = traced.run(prepared, name, f"{what}:when={number}")
        at = f"{fault} at {name} {number}"
        assert code == (0 if fault == "error" else -9), at
        left = entries_left(prepared)
        assert {"other", "before"} | named(said, "safe") <= named(said, "delivered") | set(left), at
        assert max(left.values(), default=0) <= 2, at
        assert entries_left(prepared) == Counter(), at
        assert list(prepared.rglob("*.jsonl")) == [], at
