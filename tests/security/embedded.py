"""The embedded engine and the policy before it, in a process of their own, without HTTP: for as many statements as a test likes.

Run as a program it answers JSON lines.
"""

import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from assay_store.engine import Engine, quote
from assay_store.errors import StoreError
from assay_store.parser import EngineParser
from assay_store.roles import Role, limits
from assay_store.sql_policy import SqlPolicy, Token
from assay_store.syntax import Tree

Attempt = tuple[str, str, dict[str, str], str]
"""A role (or `external` for what makes an external table), a statement, its parameters, and the file of an INSERT's rows or ""."""


class Embedded:
    """A child process. `judge` gives the code with which each attempt is refused, or 0."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="assay-security-")
        self._log = (Path(self._directory.name) / "log").open("w+")
        self._child = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, self._directory.name],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def judge(self, attempts: Iterable[Attempt]) -> list[int]:
        """What the policy says of each attempt."""
        codes = self._call({"attempts": list(attempts)})
        assert isinstance(codes, list)
        return codes

    def parse(self, texts: Iterable[str]) -> None:
        """Have texts that are alike parsed at once, to be judged afterwards: that is what takes long, one by one."""
        self._call({"texts": list(texts)})

    def ask(self, sql: str) -> str:
        """The result of a statement as the owner of the engine."""
        return str(self._call({"ask": sql}))

    def _call(self, question: object) -> list[int] | str | None:
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(json.dumps(question) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        if not line:
            self._log.seek(0)
            raise AssertionError(f"the engine ended: {self._log.read()[-2000:]}")
        answer: list[int] | str | None = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate(timeout=60)
        self._log.close()
        self._directory.cleanup()


class _Remembering(EngineParser):
    """One text is tried as every role: the engine is asked about it once."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.ask_parser, functools.cache(engine.classify))
        self._known: dict[str, Tree | StoreError] = {}
        self._lexed: dict[str, list[Token]] = {}

    def tree(self, sql: str) -> Tree:
        if sql not in self._known:
            try:
                self._known[sql] = super().tree(sql)
            except StoreError as failure:
                self._known[sql] = failure
        found = self._known[sql]
        if isinstance(found, StoreError):
            raise found
        return found

    def tokens(self, sql: str) -> Iterator[Token]:
        if sql not in self._lexed:
            self._lexed[sql] = list(super().tokens(sql))
        return iter(self._lexed[sql])

    def parse(self, texts: list[str]) -> None:
        listed = ", ".join(f"({quote(text)})" for text in texts)
        try:
            found = self._ask(f"SELECT parseQueryToJSON(q) FROM values('q String', {listed})")
        except StoreError:
            return  # one of them is not to be parsed: they are asked one by one
        self._known |= dict(zip(texts, map(json.loads, found.splitlines()), strict=True))


def _code(policy: SqlPolicy, role: str, sql: str, params: dict[str, str], rows_from: str) -> int:
    try:
        if role == "external":
            policy.check_table(sql)
        else:
            policy.check(Role(role), sql, params, rows_from)
    except StoreError as failure:
        return failure.code
    return 0


def _answer(directory: Path) -> None:
    engine = Engine(directory / "data", 2_000_000_000, 0, limits(2_000_000_000, 30))
    engine.open()
    parser, ask = _Remembering(engine), engine.ask_parser
    policy = SqlPolicy(
        parser,
        ask("SELECT name FROM system.table_functions").split(),
        ask("SELECT name FROM system.functions WHERE higher_order = 1").split(),
    )
    for line in sys.stdin:
        question = json.loads(line)
        answer: object = None
        if "texts" in question:
            parser.parse(question["texts"])
        elif "attempts" in question:
            answer = [_code(policy, *attempt) for attempt in question["attempts"]]
        else:
            answer = ask(question["ask"])
        print(json.dumps(answer), flush=True)
    engine.close()


if __name__ == "__main__":
    _answer(Path(sys.argv[1]))
