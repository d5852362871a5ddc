"""The engine without roles and without a check of statements, behind the second wall or not. Run as a process.

    python -m tests.security.unguarded_engine DATA LANDLOCK < attempts > outcomes

One attempt a line, as JSON: a statement (and others to run after it if it went well), or Python that assigns to `said`; or a list of
attempts. One outcome a line: `[went well, what came back]`, or a list of them.
"""

from __future__ import annotations

import contextlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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
        asked = json.loads(line)
        found = [_attempt(connection, one) for one in asked] if isinstance(asked, list) else _attempt(connection, asked)
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


def _attempt(connection: Any, attempt: dict[str, Any]) -> list[Any]:
    if "python" in attempt:
        return _python(attempt["python"])
    well, said = _statement(connection, attempt["sql"])
    for sql in attempt.get("then", ()) if well else ():
        said += "\n" + _statement(connection, sql)[1]
    return [well, said]


def _statement(connection: Any, sql: str) -> list[Any]:
    try:
        return [True, bytes(connection.query(sql, "TSVRaw").bytes()).decode("utf-8", "replace")]
    except Exception as failure:  # noqa: BLE001  # whatever keeps it from it
        return [False, str(failure)]


def _python(program: str) -> list[Any]:
    names: dict[str, object] = {}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            exec(program, names)  # noqa: S102  # our own text
    except Exception as failure:  # noqa: BLE001  # whatever keeps it from it
        return [False, str(failure)]
    return [True, str(names.get("said", ""))]


if __name__ == "__main__":
    main()
