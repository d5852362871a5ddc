"""`assay up`: start the whole system on one machine, and stop it without leaving processes behind."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
import tomllib
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio import Redis
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from assay_access.secrets import load_or_create, make_private, write_derived
from assay_access.settings_files import Ports
from assay_local.agent_run import agent_summary, import_log
from assay_local.demo_report import Report, quality_summary, reconciled, start_again, summary, where_to_look
from assay_local.gateway_key import keep_gateway_key
from assay_local.otlp_run import is_complete, otlp_summary, run_instrumented
from assay_local.preflight import check_directory, check_ports, find_redis
from assay_local.probes import (
    alertmanager_has,
    alerts_since,
    answers_with_contexts,
    lag,
    memory,
    quality,
    run_details,
    sessions,
    stored_watermark,
    tool_calls,
)
from assay_local.process_logs import ProcessLogs, Terminal
from assay_local.processes import LocalStack, write_redis_conf
from assay_local.run_directory import RunDirectory
from assay_local.scenario import Scenario, alertmanager, directory_of, over, settings_of
from assay_local.status_line import Status
from assay_local.supervisor import Supervisor
from assay_local.waits import until_accounted, until_met, until_watermark
from assay_operations.channels import check_channels
from assay_operations.console_link import way_in_from_file
from assay_operations.errors import OperationError
from assay_runtime.config import load_settings, settings_file

T = TypeVar("T")

#: The demo producer's `service`.
DEMO_SERVICE = "stdlib-search"
#: Time to wait, after the last event is stored, for a verdict on every answer, and for the alert of a scenario, in seconds.
_JUDGE_WAIT_S = 120.0
_ALERT_WAIT_S = 120.0
_STATUS_EVERY_S = 10.0
_LIVE_EVERY_S = 1.0
#: Time until a task that does not end is cancelled again, in seconds.
_CANCEL_AGAIN_S = 0.5


class _Stopped(Exception):  # noqa: N818  # not an error
    """A signal or the end of the parent process stops the system."""


class Ending(StrEnum):
    """End of a run: by a signal, or after the summary of the demo, with every event accounted for or not."""

    STOPPED = "stopped"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True)
class Options:
    """Options of `assay up`."""

    data: Path
    port_base: int
    demo: bool
    once: bool
    keep_logs: bool
    quality: bool = True
    scenario: Scenario | None = None


async def launch(options: Options) -> Ending:
    """Start all processes; stop them after a demo or on a signal.

    Raises `OperationError` if one does not start.
    """
    warning = check_directory(options.data)
    run = RunDirectory(options.data / "run")
    run.lock()
    console = Terminal()
    logs = ProcessLogs(options.data / "logs", console, keep=options.keep_logs)
    try:
        if warning:
            logs.announce(f"warning: {warning}")
        for ended in run.clean_up():
            logs.announce(f"ended {ended}, left over from an `assay up` that was killed")
        system = _prepare(options)
        check_ports(system.ports_used)
        return await _supervise(options, system, run.record, console, logs)
    finally:
        logs.close()
        run.unlock()


def _prepare(options: Options) -> LocalStack:
    """Create directories, secrets and settings files."""
    from assay_store import account, landlock

    # An error in the operator's settings stops the start here, once, instead of in every process.
    settings = load_settings()
    if options.quality:
        check_channels(settings.notifier)
    if settings.otlp_exporter.endpoint:
        from assay_otlp_exporter.endpoint import check

        check(settings.otlp_exporter)
    # The store's account passes through to its own directory; the content stays private.
    make_private(options.data, passable=account.can_change() and landlock.version() < landlock.OLDEST_VERSION)
    for name in ("redis", "store", "spool"):
        make_private(options.data / name)
    redis = find_redis(options.data / "redis")
    passwords = load_or_create(options.data / "secrets")
    ports, receiver = Ports.from_base(options.port_base), alertmanager() if options.scenario else None
    system = LocalStack(
        options.data,
        ports,
        redis,
        passwords,
        settings.redis.shards,
        options.quality,
        bool(settings.otlp_exporter.endpoint),
        receiver,
        settings.store.uid,
        settings.gateway.tls_cert_file,
    )
    changes = over(
        settings_of(options.scenario, ports.alertmanager if receiver else None), directory_of(_shown(options.data))
    )
    write_derived(
        options.data / "secrets",
        passwords,
        ports=system.ports,
        redis_version=redis.version,
        spool=options.data / "spool",
        base=over(_own_settings(), changes),
    )
    write_redis_conf(system)
    return system


def _where(system: LocalStack, stopped: str | None = None) -> RenderableType:
    shown = _shown(system.data)
    console = "" if stopped else way_in_from_file(system.data)
    return where_to_look(
        shown, system.ports, _program(), _python(), stopped=stopped, gateway_cert=system.gateway_cert, console=console
    )


def _own_settings() -> dict[str, Any]:
    """Return the operator's settings file, which is validated by now; empty without one."""
    path, _ = settings_file()
    return tomllib.loads(path.read_text()) if path.exists() else {}


async def _supervise(options: Options, system: LocalStack, record: Any, console: Terminal, logs: ProcessLogs) -> Ending:
    admin = system.redis_client("admin")
    supervisor = Supervisor(
        system.services(os.environ, admin), on_line=logs.line, announce=logs.announce, on_change=record
    )
    stop = asyncio.Event()
    with _signals(stop, supervisor, logs):
        parent = asyncio.create_task(_watch_parent(stop))
        try:
            for reason in system.redis.passed_over:
                logs.announce(f"not used: {reason}")
            logs.announce(f"data in {system.data}; {system.redis} at {system.redis.path}")
            await _unless(stop, supervisor.start())
            ports = system.ports_used
            logs.announce(f"up: {', '.join(ports)} on ports {min(ports.values())} to {max(ports.values())}")
            await _unless(stop, keep_gateway_key(system, supervisor))
            if options.demo:
                ending = await _unless(stop, _demo(options, system, supervisor, admin, console, logs))
                if options.once:
                    return ending
            else:
                console.show(_where(system))
            await _unless(stop, _status(system, supervisor, admin, console))
        except _Stopped:
            return Ending.STOPPED
        finally:
            parent.cancel()
            logs.announce("stopping")
            await supervisor.stop()
            await admin.aclose()
    return Ending.STOPPED


async def _demo(
    options: Options,
    system: LocalStack,
    supervisor: Supervisor,
    admin: Redis,
    console: Terminal,
    logs: ProcessLogs,
) -> Ending:
    since_ms = time.time_ns() // 1_000_000
    arguments = ("--scenario", options.scenario.value) if options.scenario else ("--agent-log", str(system.agent_log))
    child, sent = await asyncio.gather(
        supervisor.run(system.demo(os.environ, *arguments)),
        asyncio.sleep(0, None) if options.scenario else run_instrumented(system, supervisor, os.environ),
    )
    report = Report.parse(child.answer)
    if report is None:
        raise OperationError(
            "unavailable", f"the demo producer ended without a report (exit code {child.exit_code}){child.last_lines()}"
        )
    if child.exit_code:
        logs.announce(f"the demo producer ended with exit code {child.exit_code}; its own counts: {dict(report.stats)}")
    imported, *_ = await asyncio.gather(
        import_log(system, supervisor, os.environ) if report.agent else asyncio.sleep(0, None),
        until_accounted(system, DEMO_SERVICE, report.total, since_ms, logs),
        until_accounted(system, sent.service, sent.total, since_ms, logs) if sent else asyncio.sleep(0),
    )
    await until_watermark(system, admin)
    store = system.store_queries("sre")
    run = await run_details(store, DEMO_SERVICE, since_ms)
    processes = {"assay up": os.getpid(), **supervisor.pids}
    console.show(
        summary(
            report,
            run,
            await lag(admin, system.shards),
            await stored_watermark(store),
            memory(processes, apart=os.getpid()),
        )
    )
    complete = reconciled(report, run)
    if report.agent and imported:
        complete &= imported.succeeded
        calls, found = await tool_calls(store, DEMO_SERVICE, since_ms), await sessions(store, report.agent.prefix)
        console.show(agent_summary(report.agent, calls, found, imported))
    if sent:
        over_otlp, grounded = (
            await run_details(store, sent.service, since_ms),
            await answers_with_contexts(store, sent.service, since_ms),
        )
        console.show(otlp_summary(sent, over_otlp, grounded))
        complete &= is_complete(sent, over_otlp, grounded)
    if system.runs("judge"):
        answers = run.stored.get("answer", 0)
        complete &= await _quality(system, report, since_ms, answers, console, logs)
    again = _again(system) if options.once else None
    console.show(_where(system, stopped=again))
    return Ending.COMPLETE if complete else Ending.INCOMPLETE


async def _quality(
    system: LocalStack, report: Report, since_ms: int, answers: int, console: Terminal, logs: ProcessLogs
) -> bool:
    """Show scores and alerts. Return False if a scenario degraded the service and no alert was raised."""
    store = system.store_queries("sre")

    async def judged() -> bool:
        return (await quality(store, DEMO_SERVICE, since_ms)).seen >= answers

    if not await until_met(judged, _JUDGE_WAIT_S):
        logs.announce(
            f"not every answer is judged after {_JUDGE_WAIT_S:.0f} s; see {_shown(system.data)}/logs/judge.log"
        )

    async def alerted() -> bool:
        found = await alerts_since(store, report.degraded_ms or since_ms)
        open_ones = {alert["alert_id"] for alert in found if alert["state"] == "critical"}
        if not open_ones or not system.alertmanager:
            return bool(open_ones)
        return open_ones <= (await alertmanager_has(system.ports.alertmanager) or set())

    if report.degraded_ms is not None:
        await until_met(alerted, _ALERT_WAIT_S)
    alerts = await alerts_since(store, since_ms)
    arrived = await alertmanager_has(system.ports.alertmanager) if system.alertmanager else None
    console.show(
        quality_summary(
            answers,
            await quality(store, DEMO_SERVICE, since_ms),
            alerts,
            degraded_ms=report.degraded_ms,
            arrived=arrived,
        )
    )
    return report.degraded_ms is None or bool(alerts)


async def _status(system: LocalStack, supervisor: Supervisor, admin: Redis, console: Terminal) -> None:
    """Show the status line: live on a terminal, else every 10 s."""
    status = Status(system, supervisor, admin)
    if not console.is_terminal:
        while True:
            console.show(await status.line())
            await asyncio.sleep(_STATUS_EVERY_S)
    with Live(Text(), console=console, auto_refresh=False, transient=True) as live:
        while True:
            with contextlib.suppress(OSError):  # the terminal may be gone
                live.update(Text(await status.line(), style="reverse"), refresh=True)
            await asyncio.sleep(_LIVE_EVERY_S)


@contextlib.contextmanager
def _signals(stop: asyncio.Event, supervisor: Supervisor, logs: ProcessLogs) -> Any:
    """Stop in order on the first signal; kill all processes on the second."""
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            logs.announce("second signal: killing all processes")
            supervisor.kill()
        stop.set()

    handled = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # `nohup assay up` outlives its terminal
        handled.append(signal.SIGHUP)
    for number in handled:
        loop.add_signal_handler(number, asked)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


async def _watch_parent(stop: asyncio.Event) -> None:
    """Stop when the parent process has ended, unless started with nohup or without a parent."""
    parent = os.getppid()
    if parent <= 1 or signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        return
    while os.getppid() == parent:  # noqa: ASYNC110  # there is no notification, so poll
        await asyncio.sleep(0.5)
    stop.set()


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, T] | Awaitable[T]) -> T:
    """Return the result of `work`; cancel it and raise `_Stopped` if `stop` is set first."""
    task = asyncio.ensure_future(work)
    waiter = asyncio.create_task(stop.wait())
    await asyncio.wait({task, waiter}, return_when=asyncio.FIRST_COMPLETED)
    waiter.cancel()
    if not task.done():
        while not task.done():  # a library can lose a cancellation that coincides with its timeout
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_AGAIN_S)
        await asyncio.gather(task, return_exceptions=True)
        raise _Stopped
    return task.result()


def _program() -> str:
    """Return how to call this command from the working directory: its name if it is on PATH, else its path."""
    return "assay" if shutil.which("assay") else str(_shown(Path(sys.executable).parent / "assay"))


def _python() -> str:
    """Return the path of the interpreter with the packages of Assay, as typed in the working directory."""
    return str(_shown(Path(sys.executable)))


def _again(system: LocalStack) -> str:
    by_make = Path("Makefile").exists() and Path(sys.executable).parent == Path(".venv/bin").absolute()
    return start_again(_shown(system.data), system.ports, _program(), by_make=by_make)


def _shown(path: Path) -> Path:
    """Return a path as typed in the working directory."""
    try:
        return path.relative_to(Path.cwd())
    except ValueError:
        return path
