"""What judging a run has cost, over all processes that worked on it: a file in the run's folder, written before each call."""

import contextlib
from pathlib import Path
from typing import IO

import orjson

from assay_operations.errors import OperationError

SPENDING_FILE = "judge.ndjson"


class Spending:
    """Nano-dollars spent and set aside, and the cases that the budget left unjudged, with the cap that they met.

    What a killed process had set aside stays spent: its call may have been billed. Without a file it is known to this process alone.
    """

    def __init__(self) -> None:
        self.spent = 0
        self.skipped: dict[str, int] = {}
        self._file: IO[bytes] | None = None

    def keep_in(self, path: Path) -> None:
        """Go on with what a file says, and write down there what follows. Raises `OperationError`."""
        try:
            known = path.read_bytes() if path.exists() else b""
            whole = known[: known.rfind(b"\n") + 1]  # a call whose line is cut short was not made
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
                "invalid", f"{path} is damaged, so what the run has cost is not known: start another run"
            ) from None

    def add(self, nano: int) -> None:
        """Set money aside, or (below 0) give back what was not needed. It is written down when this returns."""
        self.spent += nano
        self._write({"nano": nano})

    def skip(self, case_id: str, cap: int) -> None:
        """The budget did not reach for a case."""
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
