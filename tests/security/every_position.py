"""Every function, table function and engine in every position, on an engine without roles and without a check of statements.

    python -m tests.security.every_position        # all of them, some ten minutes
    python -m tests.security.every_position --share 0.01 --seed 4

What counts is what happened outside of the engine: a file or directory beyond the store's own was opened, changed or made (inotify
tells, whatever the statement answers), a connection arrived, or a secret is in an answer. Exit code 1: behind the wall something did.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import re
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from assay_store import landlock
from tests.security.positions import BY_NAME, CALLS, TABLES

MARK = "planted-secret-7391"
BATCH = 100
BATCH_SECONDS = 20.0

#: Arguments that lead out, each of which some function understands. A function that does not understand them is tried all the same.
OF_FUNCTIONS = ("'{secret}'", "'{secret}', '{new}'", "'http://127.0.0.1:{port}/', 'x'")
OF_TABLES = (
    "'{secret}'", "'{secret}', LineAsString", "'{secret}', 'LineAsString', 'x String'", "'{new}', TSV, 'x String'", "'{up}/secrets/*'",
    "'{up}/redis/db.sqlite', 't'", "'{up}/redis/'", "'http://127.0.0.1:{port}/x', LineAsString, 'x String'",
    "'http://127.0.0.1:{port}/b/x', 'k', 's', 'TSV', 'x String'", "'http://127.0.0.1:{port}/', 'c', 'b', 'n', 'a2V5', 'TSV'",
    "'127.0.0.1:{port}', system.one", "'127.0.0.1:{port}', 'd', 't', 'u', 'p'", "'127.0.0.1:{port}', 'key', 'key String, x String'",
    "'127.0.0.1:{port}', 'd', 't', 'u', 'p', 'x String'", "'cat {secret}', TSV, 'x String'",
)  # fmt: skip
ENGINES = [
    "CREATE TABLE x (x String) ENGINE = NAME(ARGS)",
    "CREATE TEMPORARY TABLE x (x String) ENGINE = NAME(ARGS)",
    "CREATE TABLE x ENGINE = NAME(ARGS) AS SELECT 'planted' AS x",
]
DATABASES = ["CREATE DATABASE d ENGINE = NAME(ARGS)"]
OF_ENGINES = (
    *OF_TABLES,
    "TSV, '{secret}'",
    "LineAsString, '{new}'",
    "'http://127.0.0.1:{port}/x', TSV",
    "'{up}/redis/db.sqlite'",
)

#: What a statement may have left behind is looked at, and cleared away: stored rows, defaults, functions, tables, databases.
_SETTINGS = (
    "SET max_execution_time = 3, max_recursive_cte_evaluation_depth = 3, max_threads = 1, http_max_tries = 1, http_connection_timeout = 1,"
    " http_receive_timeout = 1, http_send_timeout = 1, s3_retry_attempts = 1, azure_sdk_max_retries = 0,"
    " connections_with_failover_max_tries = 1, connect_timeout_with_failover_ms = 500,"
    " mysql_datatypes_support_level = '', external_storage_connect_timeout_sec = 1, postgresql_connection_attempt_timeout = 1,"
    " postgresql_connection_pool_retries = 1, postgresql_connection_pool_wait_timeout = 500"
)
_CLEAR = [
    "DROP TEMPORARY TABLE IF EXISTS x",
    "DROP TABLE IF EXISTS x SYNC",
    "DROP FUNCTION IF EXISTS f",
    "DROP DATABASE IF EXISTS d SYNC",
    "CREATE OR REPLACE TABLE t (a String) ENGINE = MergeTree ORDER BY tuple()",
    "INSERT INTO t VALUES ('row')",
]
_LOOK = ["SELECT * FROM t", "SELECT * FROM x", "INSERT INTO x SELECT 'planted'", "SELECT f('x')", "SHOW TABLES FROM d"]
_KEEPS = re.compile(r"INSERT|CREATE|ALTER|UPDATE|DELETE|WITH .*INSERT")


#: They wait half a minute for a bridge on a port of its own, whatever their arguments are: not tried.
BRIDGES = ("jdbc", "odbc")
#: It tries again for six seconds whatever is set: one position, with all arguments.
SLOW = ("azureblobstorage",)


def filled(template: str, name: str, arguments: str) -> str:
    """A statement of a position."""
    return template.replace("NAME", name).replace("ARGS", arguments)


def _then(sql: str) -> list[str]:
    return _LOOK + _CLEAR if _KEEPS.match(sql) else []


class Beyond:
    """What the engine has no business with: files, directories, and a listener. Counts what happens to them."""

    def __init__(self, up: Path) -> None:
        self.up = up
        for name in ("store", "secrets", "redis", "new"):
            (up / name).mkdir(parents=True, exist_ok=True)
        for name in ("secrets/passwords.json", "redis/appendonly.aof"):
            (up / name).write_text(MARK)
        with contextlib.closing(sqlite3.connect(up / "redis/db.sqlite")) as database, database:
            database.execute("CREATE TABLE t (x TEXT)")
            database.execute("INSERT INTO t VALUES (?)", (MARK,))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.places = {
            "up": str(up),
            "secret": str(up / "secrets/passwords.json"),
            "new": str(up / "new/file"),
            "port": str(self._listener.getsockname()[1]),
        }
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._events < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for directory in ("secrets", "redis", "new"):
            # Whatever the kernel tells of a directory and what is in it. It tells nothing of a name that is only looked up (`stat`).
            if libc.inotify_add_watch(self._events, bytes(up / directory), ctypes.c_uint32(0xFFF)) < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def happened(self) -> Counter[str]:
        """What happened since the last call, by kind: `files` and `connections`. What was made is taken away."""
        found: Counter[str] = Counter()
        with contextlib.suppress(BlockingIOError):
            while events := os.read(self._events, 1 << 16):
                at = 0
                while at < len(events):
                    at += struct.calcsize("iIII") + struct.unpack_from("iIII", events, at)[3]
                    found["files"] += 1
        with contextlib.suppress(BlockingIOError):
            while True:
                self._listener.accept()[0].close()
                found["connections"] += 1
        if found["files"]:
            for made in list((self.up / "new").iterdir()):
                made.unlink()
            with contextlib.suppress(BlockingIOError):
                os.read(self._events, 1 << 20)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._events)
        self._listener.close()


@dataclass
class Outcome:
    """How many statements ran, were refused by the engine itself, or ended the process; and what happened outside, by statement."""

    tried: int = 0
    ran: int = 0
    deaths: list[str] = field(default_factory=list)
    outside: list[tuple[str, str]] = field(default_factory=list)

    def lines(self) -> str:
        kinds = Counter(kind for kind, _ in self.outside)
        return "\n".join(
            [
                f"{self.tried} statements, of which {self.ran} ran to their end; the engine died {len(self.deaths)} times",
                f"outside: {dict(kinds) or 'nothing'}",
                *(f"  {kind}: {sql}" for kind, sql in self.outside[:20]),
                *(f"  died: {sql}" for sql in self.deaths[:20]),
            ]
        )


class Unguarded:
    """The engine of `unguarded_engine`, started again when a statement ends it or does not end."""

    def __init__(self, beyond: Beyond, speaks: str) -> None:
        self._beyond, self._speaks = beyond, speaks
        self._process: subprocess.Popen[str] | None = None

    def names(self, table: str) -> list[str]:
        """The names in one of the engine's own tables, in a fixed order."""
        return self._ask([f"SELECT name FROM system.{table} ORDER BY name"])[0][1].split()

    def attempt(self, statements: Iterable[str]) -> Outcome:
        """Run them all and say what happened."""
        outcome, waiting = Outcome(), list(statements)
        while waiting:
            batch, waiting = waiting[:BATCH], waiting[BATCH:]
            outcome.tried += len(batch)
            found = self._try(batch, outcome)
            if found:
                # Which of them it was: again, one at a time.
                for sql in batch:
                    alone = self._try([sql], None)
                    outcome.outside += [(kind, sql) for kind in alone]
                if not any(sql in batch for _, sql in outcome.outside):
                    outcome.outside += [(kind, f"one of {batch}") for kind in found]
        return outcome

    def _try(self, batch: list[str], outcome: Outcome | None) -> Counter[str]:
        self._beyond.happened()
        try:
            said = self._ask(batch)
        except EOFError:
            self.close()
            if len(batch) == 1 and outcome is not None:
                outcome.deaths += batch
            found = self._beyond.happened()
            if len(batch) > 1:
                for sql in batch:
                    found += self._try([sql], outcome)
            return found
        if outcome is not None:
            outcome.ran += sum(well for well, _ in said)
        found = self._beyond.happened()
        if any(MARK in text for _, text in said):
            found["answers"] += 1
        return found

    def _ask(self, batch: list[str]) -> list[tuple[bool, str]]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.security.unguarded_engine", str(self._beyond.up / "store"), self._speaks],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            [(well, said)] = self._say([{"sql": _SETTINGS, "then": _CLEAR}])
            assert well, said
        for name, value in self._beyond.places.items():
            batch = [sql.replace("{" + name + "}", value) for sql in batch]
        return self._say([{"sql": sql, "then": _then(sql)} for sql in batch])

    def _say(self, question: list[dict[str, object]]) -> list[tuple[bool, str]]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        # A statement that does not end is taken for one that ends the process.
        timer = threading.Timer(BATCH_SECONDS, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            raise EOFError
        return [(bool(well), str(text)) for well, text in json.loads(line)]

    def close(self) -> None:
        """End the process. The next statement starts it again."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def positions(engine: Unguarded) -> Iterator[list[str]]:
    """Every statement, in one list for each name: those of functions, table functions, table and database engines."""
    for name in engine.names("functions"):
        yield [filled(template, name, OF_FUNCTIONS[0]) for template in CALLS + BY_NAME] + [
            filled(CALLS[0], name, arguments) for arguments in OF_FUNCTIONS[1:]
        ]
    for table, templates, shapes in (
        ("table_functions", TABLES, OF_TABLES),
        ("table_engines", ENGINES, OF_ENGINES),
        ("database_engines", DATABASES, OF_ENGINES),
    ):
        for name in engine.names(table):
            if name.lower() not in BRIDGES:
                some = templates[:1] if name.lower() in SLOW else templates
                yield [filled(template, name, arguments) for template in some for arguments in shapes]


def sampled(of_names: Iterable[Sequence[str]], share: float, seed: int) -> list[str]:
    """So large a share of the statements of each name, one at least."""
    chance = random.Random(seed)
    return [sql for statements in of_names for sql in chance.sample(statements, max(1, round(len(statements) * share)))]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--share", type=float, default=1, help="of the positions of each name (%(default)s)")
    parser.add_argument("--part", default="1/1", help="of the names: 3/50 is the third fiftieth (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the choice (%(default)s)")
    parser.add_argument("--without-the-wall", action="store_true", help="show that the positions lead out")
    wanted = parser.parse_args(arguments)
    part, parts = map(int, wanted.part.split("/"))
    speaks = "none" if wanted.without_the_wall else str(landlock.version())
    with (
        tempfile.TemporaryDirectory(prefix="assay-positions-") as directory,
        Beyond(Path(directory)) as beyond,
        Unguarded(beyond, speaks) as engine,
    ):
        of_names = list(positions(engine))[part - 1 :: parts]
        outcome = engine.attempt(sampled(of_names, wanted.share, wanted.seed))
    sys.stdout.write(outcome.lines() + "\n")
    return 1 if outcome.outside else 0


if __name__ == "__main__":
    sys.exit(main())
