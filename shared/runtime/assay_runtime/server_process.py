"""Run the process of a server: its settings, logs, warnings and memory, then serve until it ends.

Services that consume streams have `assay_runtime.service.main` instead.
"""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn

from assay_runtime import memory
from assay_runtime.config import load_settings
from assay_runtime.logs import configure_logs
from assay_runtime.transport import passwords_in_clear
from assay_schema.settings import Settings, SettingsError

log = logging.getLogger(__name__)


def main(
    name: str,
    serve: Callable[[Settings], Awaitable[int]],
    bound_bytes: Callable[[Settings], int],
    *,
    check: Callable[[Settings], None] = lambda _: None,
    warnings: Callable[[Settings], list[str]] = lambda _: [],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> NoReturn:
    """Run a server's process and exit: 0 if it ended well, 1 if not, 2 if it could not start.

    `check` raises `SettingsError` for settings that do not go together. `warnings` are logged after those about passwords that would
    cross a network unencrypted. `bound_bytes`: resident memory that the process stays below.
    """
    memory.share_one_heap()
    try:
        settings = load_settings()
        check(settings)
    except SettingsError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    configure_logs(name, settings.telemetry)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # every malformed request of a stranger would be a line
    for problem in (*passwords_in_clear(settings), *warnings(settings)):
        log.warning("%s", problem)
    memory.publish(bound_bytes(settings))

    async def run() -> int:
        return await serve(settings)

    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            code = runner.run(run())
    except (SettingsError, OSError, ValueError) as error:
        log.critical("cannot start: %s", error)
        raise SystemExit(2) from None
    raise SystemExit(code)
