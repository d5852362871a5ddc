"""The engine without roles and without a check of statements, behind the second wall or not. Run as a process.

    python -m tests.security.unguarded_engine DATA LANDLOCK < attempts > outcomes

One attempt a line, as JSON: a statement, or Python that assigns to `said`. One outcome a line: `[went well, what came back]`.
"""

from __future__ import annotations

import contextlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from assay_store.wall import raise_wall


def main() -> None:
    """The command line. LANDLOCK is the version to go by, or `none` for no wall at all."""
    data, speaks = Path(sys.argv[1]), sys.argv[2]
    if speaks != "none":
        raise_wall(data, int(speaks))
    # As in the store: the main thread's stack is looked up in /proc, the other threads' is not.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_answer, data).result()


def _answer(data: Path) -> None:
    import chdb

    connection = chdb.connect(str(data / "engine"))
    for line in sys.stdin:
        attempt: dict[str, str] = json.loads(line)
        found: list[object]
        try:
            if "sql" in attempt:
                found = [True, bytes(connection.query(attempt["sql"], "TSVRaw").bytes()).decode("utf-8", "replace")]
            else:
                names: dict[str, object] = {}
                with contextlib.redirect_stdout(sys.stderr):
                    exec(attempt["python"], names)  # noqa: S102  # our own text
                found = [True, str(names.get("said", ""))]
        except Exception as failure:  # noqa: BLE001  # whatever keeps it from it
            found = [False, str(failure)]
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
