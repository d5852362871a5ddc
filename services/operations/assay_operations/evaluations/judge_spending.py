"""Cost of judging a run over all its processes: a file in the run's folder, written before each call."""

import asyncio
import contextlib
from pathlib import Path
from typing import IO

import orjson

from assay_operations.errors import OperationError

SPENDING_FILE = "judge.ndjson"


class NoMoneyError(Exception):
    """The budget does not suffice for a call, which was not made."""


class Spending:
    """Nano-dollars spent and reserved, and the cases that were skipped, with the budget at that time.

    The reservation of a killed process counts as spent, since its call may have been billed. Without a file, only this
    process knows the cost.
    """

    def __init__(self) -> None:
        self.spent = 0
        self.skipped: dict[str, int] = {}
        self._file: IO[bytes] | None = None
        #: Reserved by calls of this process that are in flight.
        self._held = 0
        self._settled = asyncio.Event()

    def keep_in(self, path: Path) -> None:
        """Continue from a file, and record further costs in it. Raises `OperationError`."""
        try:
            known = path.read_bytes() if path.exists() else b""
            whole = known[: known.rfind(b"\n") + 1]  # a call with an incomplete line was not made
            for line in whole.splitlines():
                entry = orjson.loads(line)
                self.spent += int(entry.get("nano", 0))
                if "skipped" in entry:
                    self.skipped[str(entry["skipped"])] = int(entry["cap"])
            self._file = path.open("r+b" if path.exists() else "wb")
            self._file.truncate(len(whole))
            self._file.seek(len(whole))
        except OSError as error:
            raise OperationError("unavailable", f"{path}: {error.strerror or type(error).__name__}") from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise OperationError(
                "invalid", f"{path} is damaged, so the cost of the run is unknown: start another run"
            ) from None

    async def reserve(self, nano: int, cap: int) -> None:
        """Reserve the maximum cost of a call, which is recorded when this returns; `settle` ends it.

        Where calls in flight hold what is left of the budget, this waits until they are settled. Raises `NoMoneyError`.
        """
        while self.spent + nano > cap:
            if not self._held:
                raise NoMoneyError
            self._settled.clear()
            await self._settled.wait()
        self._held += nano
        self._add(nano)

    def settle(self, reserved: int, cost: int) -> None:
        """Replace a reservation by the cost."""
        self._held -= reserved
        if cost != reserved:
            self._add(cost - reserved)
        self._settled.set()

    def _add(self, nano: int) -> None:
        self.spent += nano
        self._write({"nano": nano})

    def skip(self, case_id: str, cap: int) -> None:
        """Record that the budget did not suffice for a case."""
        self.skipped[case_id] = cap
        self._write({"skipped": case_id, "cap": cap})

    def _write(self, entry: dict[str, object]) -> None:
        if self._file is not None:
            self._file.write(orjson.dumps(entry) + b"\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
