"""Progress of a long command on stderr: rows, rows a second, elapsed time."""

import json
import sys
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from types import TracebackType
from typing import Self, TextIO

#: Seconds between progress lines: on a terminal, and in a log.
EVERY_TERMINAL_S = 1.0
EVERY_LOG_S = 10.0


class Mode(StrEnum):
    """Format of progress on stderr."""

    AUTO = "auto"
    JSON = "json"
    NONE = "none"


def for_people(rows: int, total: int | None, elapsed_s: float) -> str:
    """Return a progress line for people."""
    share = f" of {total:,}" if total else ""
    return f"{rows:,}{share} rows, {_rate(rows, elapsed_s):,.0f} rows/s, {elapsed_s:.0f} s"


def for_machines(rows: int, total: int | None, elapsed_s: float) -> str:
    """Return a progress line as a JSON object. `total_rows` is null until it is known."""
    return json.dumps(
        {
            "event": "progress",
            "rows": rows,
            "total_rows": total,
            "rows_per_s": round(_rate(rows, elapsed_s), 1),
            "elapsed_s": round(elapsed_s, 3),
        }
    )


def _rate(rows: int, elapsed_s: float) -> float:
    return rows / elapsed_s if elapsed_s > 0 else 0.0


class Progress:
    """Counts rows and prints them from its own thread, so that it shows while the store computes."""

    def __init__(self, mode: Mode, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._mode = mode
        self._clock = clock
        self._terminal = mode is Mode.AUTO and self._stream.isatty()
        self._done = threading.Event()
        self._drawn = False
        self._start = clock()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self.rows = 0
        self.total: int | None = None

    def __enter__(self) -> Self:
        if self._mode is not Mode.NONE:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._mode is Mode.NONE:
            return
        self._thread.join()
        if self._terminal and self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        elif self._mode is Mode.JSON and kind is None:
            self.say()

    def say(self) -> None:
        """Write the current progress."""
        text = (for_machines if self._mode is Mode.JSON else for_people)(
            self.rows, self.total, self._clock() - self._start
        )
        self._stream.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        self._stream.flush()
        self._drawn = True

    def _beat(self) -> None:
        while not self._done.wait(EVERY_TERMINAL_S if self._terminal else EVERY_LOG_S):
            self.say()
