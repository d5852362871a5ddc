"""Supervise child processes in stages: start, wait until ready, restart, stop in reverse order.

Every child leads a separate process group, so that Ctrl-C reaches only the supervisor, and so that its own children end with it. On
Linux the kernel kills a child when the supervisor dies for any reason. Start and stop can be interrupted safely.
"""

import asyncio
import collections
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from assay_operations.errors import OperationError

#: Called with each line of a child's output: the child's name, and the text without its line end.
OnLine = Callable[[str, str], None]
#: Called with each message of the supervisor itself.
Announce = Callable[[str], None]
#: Called with name and pid of the running processes whenever the set changes.
OnChange = Callable[[Mapping[str, int]], None]

#: Last lines of a child's output that messages about its failure contain.
TAIL_LINES = 15
#: Maximum length of a line, in bytes; longer ones are split.
_LINE_MAX = 64 * 1024
_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Spec:
    """Specification of one process."""

    name: str
    argv: tuple[str, ...]
    #: Complete environment.
    env: Mapping[str, str]
    #: Returns what is still missing, or None if ready. A `once` process is ready when it has exited with 0.
    ready: Callable[[], Awaitable[str | None]] | None = None
    once: bool = False
    #: Working directory; that of this process by default.
    directory: Path | None = None
    #: True if stdout contains log lines too; otherwise only its last line is kept (`Child.answer`).
    stdout_is_log: bool = True
    start_deadline_s: float = 60.0
    #: After the start deadline, a process that is `alive` may still become ready: it is busy, not broken.
    alive: Callable[[], Awaitable[bool]] | None = None
    stop_deadline_s: float = 15.0


@dataclass(frozen=True)
class Backoff:
    """Pauses before restarts, in seconds.

    They double from `first` to `longest`, and are reset after running for `stable_s`.
    """

    first: float = 0.5
    longest: float = 30.0
    stable_s: float = 30.0

    def pause(self, failures: int) -> float:
        """Return the pause after this number of failures in a row, 1 or more."""
        return float(min(self.longest, self.first * 2 ** min(failures - 1, 20)))


class State(StrEnum):
    """State of a child."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    STOPPING = "stopping"


class Child:
    """A supervised process and its output."""

    def __init__(self, spec: Spec, on_line: OnLine) -> None:
        self.spec = spec
        self.state = State.STOPPED
        self.tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        #: Last line on stdout.
        self.answer = ""
        self.started = 0.0
        self._on_line = on_line
        self._process: asyncio.subprocess.Process | None = None
        self._group_ended = False
        self._readers: list[asyncio.Task[None]] = []

    @property
    def pid(self) -> int | None:
        """Process ID; None while it does not run."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def launch(self) -> None:
        """Start the process. Raises `OperationError` if it cannot be executed."""
        self.tail.clear()
        self.state = State.STARTING
        self.started = time.monotonic()
        self._group_ended = False
        # With the pipes of asyncio, waiting for an exited process lasts until its last descendant has closed them.
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.spec.argv,
                env=dict(self.spec.env),
                cwd=self.spec.directory,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out_end,
                stderr=err_end,
                start_new_session=True,
                umask=0o077,
                preexec_fn=_die_with_parent(),
            )
        except OSError as error:
            self.state = State.STOPPED
            os.close(out)
            os.close(err)
            raise OperationError(
                "unavailable", f"cannot start {self.spec.name} ({self.spec.argv[0]}): {error.strerror}"
            ) from None
        finally:
            os.close(out_end)
            os.close(err_end)
        self._readers = [
            asyncio.create_task(self._read(out, is_log=self.spec.stdout_is_log)),
            asyncio.create_task(self._read(err, is_log=True)),
        ]

    async def until_ready(self) -> None:
        """Wait until the process is ready.

        Raises `OperationError` with its last lines if it exits or the deadline passes.
        """
        deadline = self.started + self.spec.start_deadline_s
        missing: str | None = "no answer yet"
        while True:
            if self.spec.ready and (missing := await self.spec.ready()) is None:
                break
            if self.exit_code is not None:
                code = await self.exited()
                if self.spec.once and code == 0:
                    break
                raise OperationError(
                    "unavailable", f"{self.spec.name} ended while starting ({describe_exit(code)}){self.last_lines()}"
                )
            if time.monotonic() > deadline:
                if self.spec.alive and await self.spec.alive():
                    self._on_line(self.spec.name, f"alive but not ready yet ({missing}); continuing without it")
                    break
                raise OperationError(
                    "unavailable",
                    f"{self.spec.name} is not ready after {self.spec.start_deadline_s:.0f} s ({missing}){self.last_lines()}",
                )
            await asyncio.sleep(_POLL_S)
        self.state = State.STOPPED if self.spec.once else State.READY

    @property
    def exit_code(self) -> int | None:
        """Exit code of a process that has ended; negative for a signal."""
        return self._process.returncode if self._process else None

    async def exited(self) -> int:
        """Wait until the process, its children and its output have ended; return the exit code."""
        assert self._process
        code = await self._process.wait()
        self._kill_group()
        await self.drained()
        return code

    async def drained(self) -> None:
        """Wait until all output is forwarded, at most 2 s: a grandchild can keep the pipe open."""
        if self._readers:
            _, late = await asyncio.wait(self._readers, timeout=2)
            for task in late:
                task.cancel()

    async def stop(self) -> bool:
        """Terminate the process; after the deadline, kill it and its group.

        Returns True if it ended by itself.
        """
        if self._process is None:
            return True
        self.state = State.STOPPING
        clean = True
        try:
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.spec.stop_deadline_s):
                        await self._process.wait()
                clean = self._process.returncode is not None
        finally:
            self._kill_group()
            await self.exited()
            self.state = State.STOPPED
        return clean

    def kill(self) -> None:
        """Kill the process and its group immediately."""
        self._kill_group()

    def last_lines(self) -> str:
        """Return the last lines of output for a message."""
        if not self.tail:
            return "; it wrote nothing"
        return "; its last lines:\n" + "\n".join(f"  {line}" for line in self.tail)

    def _kill_group(self) -> None:
        # The ID of the group is the leader's pid, which is not reused while the group has members. After the leader is reaped, the group is
        # killed once, immediately, and never again: later the ID may be that of another group.
        if self._process and not self._group_ended:
            self._group_ended = self._process.returncode is not None
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _read(self, descriptor: int, *, is_log: bool) -> None:
        stream = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream),
            open(descriptor, "rb", 0),  # noqa: ASYNC230, SIM115  # the transport closes it
        )
        try:
            await self._read_lines(stream, is_log=is_log)
        finally:
            transport.close()

    async def _read_lines(self, stream: asyncio.StreamReader, *, is_log: bool) -> None:
        pending = b""
        while chunk := await stream.read(_LINE_MAX):
            *lines, pending = (pending + chunk).split(b"\n")
            if len(pending) > _LINE_MAX:
                lines.append(pending)
                pending = b""
            for line in lines:
                self._line(line, is_log=is_log)
        if pending:
            self._line(pending, is_log=is_log)

    def _line(self, line: bytes, *, is_log: bool) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        if is_log:
            self.tail.append(text)
            self._on_line(self.spec.name, text)
        elif text:
            self.answer = text


class Supervisor:
    """Starts children in stages, restarts them, and stops them one by one in reverse order."""

    def __init__(
        self,
        stages: Sequence[Sequence[Spec]],
        *,
        on_line: OnLine,
        announce: Announce,
        on_change: OnChange,
        backoff: Backoff | None = None,
    ) -> None:
        self._stages = stages
        self._on_line = on_line
        self._announce = announce
        self._on_change = on_change
        self._backoff = backoff or Backoff()
        self._children: list[Child] = []
        self._keepers: list[asyncio.Task[None]] = []

    @property
    def pids(self) -> dict[str, int]:
        """Pids of the running processes by name."""
        return {child.spec.name: child.pid for child in self._children if child.pid is not None}

    @property
    def states(self) -> dict[str, State]:
        """State of each process that is not `once`."""
        return {child.spec.name: child.state for child in self._children if not child.spec.once}

    async def start(self) -> None:
        """Start every process, stage by stage; a stage starts when the previous one is ready.

        Raises `OperationError` for the first process that does not start; the others keep running until `stop`.
        """
        for stage in self._stages:
            began = time.monotonic()
            children = [await self._begin(spec) for spec in stage]
            waits = [asyncio.create_task(self._await_ready(child, began)) for child in children]
            try:
                await asyncio.gather(*waits)
            finally:
                for wait in waits:
                    wait.cancel()

    async def run(self, spec: Spec) -> Child:
        """Run a process that ends by itself; `stop` stops it first if it has not ended."""
        child = await self._begin(spec)
        await child.exited()
        child.state = State.STOPPED
        self._on_change(self.pids)
        return child

    async def stop(self) -> None:
        """Stop all processes in reverse order, each within its deadline."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        for child in reversed(self._children):
            running = child.pid is not None
            clean = await child.stop()
            self._on_change(self.pids)
            if running:
                late = f"killed: it did not stop within {child.spec.stop_deadline_s:.0f} s"
                self._announce(f"{child.spec.name} {'stopped' if clean else late}")

    def kill(self) -> None:
        """Kill all processes immediately, without draining."""
        for child in self._children:
            child.kill()

    async def _await_ready(self, child: Child, began: float) -> None:
        await child.until_ready()
        self._announce(f"{child.spec.name} {'done' if child.spec.once else 'ready'} ({time.monotonic() - began:.1f} s)")
        if not child.spec.once:
            self._keepers.append(asyncio.create_task(self._keep(child), name=f"keep {child.spec.name}"))

    async def _begin(self, spec: Spec) -> Child:
        child = Child(spec, self._on_line)
        self._children.append(child)
        await child.launch()
        self._on_change(self.pids)
        return child

    async def _keep(self, child: Child) -> None:
        failures = 0
        while True:
            code = await child.exited()
            failures = 1 if time.monotonic() - child.started > self._backoff.stable_s else failures + 1
            pause = self._backoff.pause(failures)
            child.state = State.RESTARTING
            self._announce(
                f"{child.spec.name} died ({describe_exit(code)}); restarting it in {pause:.1f} s{child.last_lines()}"
            )
            await asyncio.sleep(pause)
            try:
                await child.launch()
                self._on_change(self.pids)
                await child.until_ready()
            except OperationError as error:
                self._announce(str(error))
                await child.stop()
            else:
                self._announce(f"{child.spec.name} is back")


def describe_exit(code: int) -> str:
    """Describe an exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _die_with_parent() -> Callable[[], None] | None:
    """Return what a child calls before exec: it asks the kernel to kill the child with its parent. Linux only."""
    if not sys.platform.startswith("linux"):
        return None
    parent = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the kernel was asked
            os._exit(1)

    return ask
