"""Trace a process and break some of its system calls: `python -m tests.support.call_tracer PID CALLS FAULT [PATH]`.

A replacement for `strace -f -e inject=... -p PID` on machines that have only Python. Prints "traced" once every thread is traced, and runs
until it or the process ends; the kernel then releases all threads. Linux on x86-64 only.
"""

import ctypes
import errno
import heapq
import mmap
import os
import signal
import struct
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

#: From <sys/ptrace.h>.
SEIZE, INTERRUPT, LISTEN, SYSCALL, POKEUSER, GET_SYSCALL_INFO = 0x4206, 0x4207, 0x4208, 24, 6, 0x420E
#: Bit 7 distinguishes stops at calls from signals; new threads and processes are traced from their start.
OPTIONS = 1 | 1 << 1 | 1 << 2 | 1 << 3
#: Offsets in `struct user` of the number of a call and of its result.
NUMBER, RESULT = 15 * 8, 10 * 8
#: `struct ptrace_syscall_info`: the kind of stop, the number of the call and its first two arguments.
ENTRY, EXIT = 1, 2
INFO = struct.Struct("=B23xqQQ32x")
AT_A_CALL = signal.SIGTRAP | 0x80
JOB_CONTROL = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
#: Numbers of x86-64, and the index of the path argument; the other calls have a descriptor first.
CALLS: dict[str, tuple[int, int | None]] = {
    "read": (0, None),
    "write": (1, None),
    "pwrite64": (18, None),
    "writev": (20, None),
    "flock": (73, None),
    "fsync": (74, None),
    "fdatasync": (75, None),
    "ftruncate": (77, None),
    "rename": (82, 0),
    "mkdir": (83, 0),
    "rmdir": (84, 0),
    "unlink": (87, 0),
    "getdents64": (217, None),
    "openat": (257, 1),
    "renameat": (264, 1),
    "sync_file_range": (277, None),
    "renameat2": (316, 1),
}
LONGEST_PATH = 4096

_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
_ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_ptrace.restype = ctypes.c_long


def ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    """Call `ptrace(2)`. Raises OSError; ProcessLookupError for a thread that has ended, which a kill can cause at any time."""
    if _ptrace(request, thread, address, data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@dataclass(frozen=True)
class Fault:
    """A fault for some calls: an error, a signal or a delay, at the `first` of a thread's calls and every `step` after it."""

    calls: Mapping[int, tuple[str, int | None]]
    error: int
    signal: int
    delay_s: float
    first: int
    step: int
    path: str

    @classmethod
    def parse(cls, calls: str, text: str, path: str) -> "Fault":
        """Parse `error=NAME`, `signal=NAME`, `delay_enter=MICROSECONDS` or `list`, then maybe `:when=FIRST`, `FIRST+` or `FIRST+STEP`.

        `list` prints the names of the calls.
        """
        fault, _, when = text.partition(":when=")
        kind, _, value = fault.partition("=")
        if kind not in {"error", "signal", "delay_enter", "list"}:
            raise ValueError(f"{kind} is no fault of a call: error, signal, delay_enter or list")
        first, again, step = (when or "1+").partition("+")
        return cls(
            calls={number: (name, at) for name in calls.split(",") for number, at in [CALLS[name]]},
            error=getattr(errno, value) if kind == "error" else 0,
            signal=signal.Signals[value] if kind == "signal" else 0,
            delay_s=int(value) / 1e6 if kind == "delay_enter" else 0,
            first=int(first),
            step=int(step or 1) if again else 0,
            path=path,
        )

    def hits(self, count: int) -> bool:
        """Return whether the fault applies to a thread's call with this number, from 1."""
        past = count - self.first
        return past % self.step == 0 if self.step and past >= 0 else past == 0

    def name_of(self, thread: int, number: int, arguments: Sequence[int]) -> str | None:
        """Return the name of a call that the fault is for; with `path`, only for calls on that path or one below it."""
        name, at = self.calls.get(number, (None, None))
        if name is None or not self.path:
            return name
        path = _opened(thread, arguments[0]) if at is None else _text(thread, arguments[at])
        return name if path == self.path or path.startswith(f"{self.path}/") else None


def _opened(thread: int, descriptor: int) -> str:
    """Return the path of a thread's open descriptor."""
    try:
        return str(Path(f"/proc/{thread}/fd/{descriptor}").readlink())
    except OSError:
        return ""


def _text(thread: int, address: int) -> str:
    """Return the text at an address of a thread's memory."""
    with Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        text = memory.read(mmap.PAGESIZE - address % mmap.PAGESIZE)
        if b"\0" not in text:
            text += memory.read(LONGEST_PATH)
    return os.fsdecode(text.partition(b"\0")[0])


class Tracer:
    """Trace all threads of a process, and of the processes that it starts."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._counts = Counter[tuple[int, str]]()
        self._failing = set[int]()
        self._delayed: list[tuple[float, int]] = []
        self._info = ctypes.create_string_buffer(INFO.size)
        self._unseen = set[int]()

    def seize(self, process: int) -> None:
        """Trace every thread, and stop each once, so that it stops at its calls from then on."""
        tried = set[int]()
        while new := {int(entry.name) for entry in Path(f"/proc/{process}/task").iterdir()} - tried:
            tried |= new
            for thread in new:
                self._unseen.add(thread)
                try:
                    ptrace(SEIZE, thread, 0, OPTIONS)
                    ptrace(INTERRUPT, thread)
                except ProcessLookupError:  # it has ended, and will not stop
                    self._unseen.discard(thread)
                except PermissionError:
                    if not self._is_traced(process, thread):  # threads of a traced thread are traced already
                        raise

    @staticmethod
    def _is_traced(process: int, thread: int) -> bool:
        try:
            status = Path(f"/proc/{process}/task/{thread}/status").read_text()
        except OSError:
            return True
        return f"TracerPid:\t{os.getpid()}\n" in status

    def run(self) -> None:
        """Trace until no thread is left."""
        told = False
        while True:
            if not told and not self._unseen:
                print("traced", flush=True)
                told = True
            try:
                thread, status = self._next()
            except ChildProcessError:
                return
            self._unseen.discard(thread)
            if os.WIFSTOPPED(status):
                try:
                    self._go_on(thread, status)
                except ProcessLookupError:  # it was killed meanwhile, which the next wait reports
                    self._let_end(thread)
            else:
                self._let_end(thread)

    def _next(self) -> tuple[int, int]:
        """Return the next thread that stopped or ended. Delayed threads resume when their time is over."""
        while self._delayed:
            thread, status = os.waitpid(-1, os.WNOHANG | 0x40000000)
            if thread:
                return thread, status
            left_s = self._delayed[0][0] - time.monotonic()
            if left_s > 0:
                time.sleep(min(left_s, 0.001))
            else:
                self._resume(heapq.heappop(self._delayed)[1])
        return os.waitpid(-1, 0x40000000)  # __WALL: threads too

    def _resume(self, thread: int, number: int = 0) -> None:
        """Let a thread run to its next call, with a signal."""
        try:
            ptrace(SYSCALL, thread, 0, number)
        except ProcessLookupError:
            self._let_end(thread)

    def _let_end(self, thread: int) -> None:
        """Remove a thread that has ended."""
        self._failing.discard(thread)
        self._hold()

    def _go_on(self, thread: int, status: int) -> None:
        """Handle a stop."""
        number, event = os.WSTOPSIG(status), status >> 16
        if event:
            if number in JOB_CONTROL:
                ptrace(LISTEN, thread)
            else:
                self._resume(thread)
        elif number != AT_A_CALL:
            self._resume(thread, number)
        elif not self._at_a_call(thread):
            self._resume(thread)

    def _at_a_call(self, thread: int) -> bool:
        """Break a call if the fault applies. Returns whether the thread has to wait."""
        ptrace(GET_SYSCALL_INFO, thread, INFO.size, ctypes.addressof(self._info))
        what, number, *arguments = INFO.unpack(self._info.raw)
        if what == EXIT:
            if thread in self._failing:
                ptrace(POKEUSER, thread, RESULT, -self._fault.error)
                self._failing.remove(thread)
                self._hold()
        elif what == ENTRY and (name := self._fault.name_of(thread, number, arguments)):
            self._counts[thread, name] += 1
            if self._fault.hits(self._counts[thread, name]):
                return self._break(thread, name)
        return False

    def _break(self, thread: int, name: str) -> bool:
        """Break the call that a thread is about to make. Returns whether the thread has to wait."""
        if self._fault.error:  # the call is replaced by an invalid one, and its result by the error
            self._failing.add(thread)
            self._hold()
            ptrace(POKEUSER, thread, NUMBER, -1)
        elif self._fault.signal:
            os.kill(thread, self._fault.signal)
        elif self._fault.delay_s:
            heapq.heappush(self._delayed, (time.monotonic() + self._fault.delay_s, thread))
            return True
        else:
            print(name, flush=True)
        return False

    def _hold(self) -> None:
        """Defer the end of this process while a replaced call has no error yet: it would return as an unknown call."""
        how = signal.SIG_BLOCK if self._failing else signal.SIG_UNBLOCK
        signal.pthread_sigmask(how, [signal.SIGTERM])


def main() -> None:
    """Run the command line."""
    process, calls, fault, *path = sys.argv[1:]
    tracer = Tracer(Fault.parse(calls, fault, *path or [""]))
    tracer.seize(int(process))
    tracer.run()


if __name__ == "__main__":
    main()
