"""The problems of the last import of each agent on this host, which `assay doctor` shows."""

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from assay_sessions.readers import READERS, Problem
from assay_sessions.readers.explained import EXPLANATIONS
from assay_sessions.readers.reader import ProblemKind

#: Problems of the command or of no consequence: they do not last.
_PASSING: Final[frozenset[ProblemKind]] = frozenset({"other_format", "empty_file"})


def remember(data: Path, agents: Iterable[str], problems: Mapping[tuple[str, Problem], int], *, partial: bool) -> None:
    """Write the problems of an import into the data directory, if there is one.

    Each of the `agents` that it read has a file, which holds no captured text. A `partial` import, of what changed lately, keeps the
    problems that are known.
    """
    for agent in agents if data.is_dir() else ():
        own = {problem: count for (name, problem), count in problems.items() if name == agent}
        found = {problem: count for problem, count in own.items() if problem.kind not in _PASSING}
        if own and not found:  # such as a file of another agent: that says nothing about the logs of this one
            continue
        if partial:
            found = _merged(_read(data, agent), found)
        rows = [[problem.kind, problem.path, problem.detail, count] for problem, count in sorted(found.items())]
        with contextlib.suppress(OSError):  # another user's directory: doctor says less
            _write(_file(data, agent), json.dumps(rows))


def not_read(data: Path) -> dict[str, list[Problem]]:
    """Return what the last import of each agent on this host did not read, the most frequent first."""
    found = {agent: _read(data, agent) for agent in READERS}
    return {
        agent: [Problem(each.kind, each.path, count, each.detail) for each, count in _by_count(problems)]
        for agent, problems in found.items()
        if problems
    }


def _by_count(problems: Mapping[Problem, int]) -> list[tuple[Problem, int]]:
    return sorted(problems.items(), key=lambda item: (-item[1], item[0]))


def _merged(known: Mapping[Problem, int], found: Mapping[Problem, int]) -> dict[Problem, int]:
    """Return the known problems with those that were found. The lines of a damaged file are those found last."""
    damaged = {problem.path for problem in found if problem.kind == "damaged"}
    kept = {each: count for each, count in known.items() if each.kind != "damaged" or each.path not in damaged}
    return {each: max(kept.get(each, 0), found.get(each, 0)) for each in {**kept, **found}}


def _read(data: Path, agent: str) -> dict[Problem, int]:
    """Return the problems in the file of an agent. A file that is not as `remember` writes it has none, nor has an unknown kind."""
    try:
        rows = json.loads(_file(data, agent).read_text(encoding="utf-8"))
        return {
            Problem(kind, str(path), 1, str(detail)): int(count)
            for kind, path, detail, count in rows
            if kind in EXPLANATIONS
        }
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return {}


def _write(file: Path, content: str) -> None:
    """Replace the file at once: an import that is killed leaves the one before."""
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        new.write_text(content, encoding="utf-8")
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _file(data: Path, agent: str) -> Path:
    return data / f"last-import-{agent}.json"
