"""The auditor service: writes the audit log, reports its health.

Delivery: every stored tool call, server event, lost event and recorded operation has exactly one leaf, once the closed watermark has
passed it. The service needs the store only. While it is away nothing else waits for it.
"""

import asyncio
import logging
import signal
import sys
import threading

from assay_auditor.anchors.anchoring import Anchoring
from assay_auditor.anchors.configured import anchors_of
from assay_auditor.auditor import Auditor
from assay_auditor.keys import KeyFileError
from assay_auditor.last_verification import watch
from assay_runtime import memory
from assay_runtime.config import load_settings
from assay_runtime.health import application, health_server, listen
from assay_runtime.logs import configure_logs
from assay_schema.settings import Settings, SettingsError

log = logging.getLogger(__name__)

NAME = "auditor"
#: Seconds between passes that found nothing to do.
PAUSE_S = 1.0
#: Longest pause between passes while a problem lasts.
PROBLEM_PAUSE_S = 60.0


async def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT, then sign what was appended. Returns the exit code."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    auditor = Auditor(settings)
    anchoring = Anchoring(settings.auditor.origin, settings.store, anchors_of(settings.auditor))
    inner = listen(settings.telemetry.host, settings.auditor.port, "ASSAY_AUDITOR_PORT")
    started = False
    pause_s = PAUSE_S

    def unready() -> list[str]:
        return ["starting"] if not started else [auditor.problem] if auditor.problem else []

    health = health_server(application(list, unready, lambda: anchoring.problems))
    served = asyncio.create_task(health.serve(sockets=[inner]))
    log.info("writing the log %s", settings.auditor.origin)
    ended = threading.Event()
    # A daemon: an anchor that hangs does not hold up the end of this process either.
    threading.Thread(target=_anchor, args=(auditor, anchoring, ended), daemon=True).start()
    threading.Thread(target=watch, args=(settings.store, settings.auditor.origin, ended), daemon=True).start()
    try:
        while not stop.is_set():
            more = await asyncio.to_thread(auditor.step)
            started = True
            pause_s = next_pause_s(pause_s, auditor.problem)
            if not more:
                await _pause(stop, pause_s)
    finally:
        ended.set()
        await asyncio.to_thread(auditor.close)
        health.should_exit = True
        await served
    log.info("stopped")
    return 0


def _anchor(auditor: Auditor, anchoring: Anchoring, ended: threading.Event) -> None:
    """Submit the newest checkpoint to the anchors until the service ends."""
    while not ended.wait(PAUSE_S):
        anchoring.step(auditor.newest)
    anchoring.close()


def next_pause_s(last_s: float, problem: str) -> float:
    """Return the next pause: twice the last one while a problem lasts.

    Each pass after a problem reads the end of the log again.
    """
    return min(2 * last_s, PROBLEM_PAUSE_S) if problem else PAUSE_S


async def _pause(stop: asyncio.Event, pause_s: float) -> None:
    try:
        async with asyncio.timeout(pause_s):
            await stop.wait()
    except TimeoutError:
        return


def run() -> None:
    """Entry point of `python -m assay_auditor`."""
    memory.share_one_heap()
    try:
        settings = load_settings()
    except SettingsError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    configure_logs(NAME, settings.telemetry)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)  # its messages quote statements
    try:
        code = asyncio.run(serve(settings))
    except (SettingsError, KeyFileError, OSError) as error:
        log.critical("cannot start: %s", error)
        raise SystemExit(2) from None
    raise SystemExit(code)
