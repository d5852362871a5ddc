"""`assay sessions import`: read the logs of agents, and store what is new."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.exit_codes import FINDING, OPERATIONAL
from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo, ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.errors import OperationError
from assay_operations.sessions.importing import Imported, import_sessions, sources
from assay_operations.sessions.watching import Watch
from assay_operations.time_bounds import moment_ms
from assay_sessions.readers import READERS, other_reader
from assay_sessions.readers.explained import fixes, in_words
from assay_ui.formats import counted

#: Seconds between looks with --watch, and how far each goes back before the last one.
_WATCH_S = 2.0
_OVERLAP = timedelta(minutes=2)


def import_logs(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Files or folders, with --from; default: the usual places."),
    ] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="AGENT", help="Only opencode, claude-code, codex, gemini, otel or jsonl; repeatable."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only sessions that changed since then: a duration (7d) or an ISO 8601 time; default: all."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep importing what changes or appears, until Ctrl-C.")
    ] = False,
    project: Annotated[str | None, typer.Option(help="Project of the sessions; default: capture.project.")] = None,
    service: Annotated[str | None, typer.Option(help="Service of the sessions; default: the agent.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Import sessions from the logs of coding agents.

    Repeat it at will: what is stored is not sent again.

    It only reads the logs, also while the agent runs. Text is scrubbed before it is stored, like everything that is captured. Exit code
    1: not all are stored, 2: a path that was named has no session.
    """
    with ends_quietly():
        start = None if since is None else _moment(since)
        watching = Watch() if watch else None
        done = _once(data, agents or (), paths or (), start, project, service, watching, quiet=quiet)
        looked = datetime.now(UTC)
        while watching:
            time.sleep(_WATCH_S)
            # What is known is not sent again, so the overlap costs little. Clocks of logs may be behind.
            since_then, looked = looked - _OVERLAP, datetime.now(UTC)
            found = Imported(known=done.known)
            try:
                stores = watching.look(sources(agents or (), paths or ()))
                import_sessions(
                    data, stores, since=since_then, fresh_since=start, project=project, service=service, done=found
                )
                if not found.not_stored:
                    watching.settle()
            except OperationError as error:
                looked = since_then + _OVERLAP
                echo(f"assay: {error}; trying again", err=True)
            if found.sent:
                echo(_summary(found))
        if done.not_stored:
            raise typer.Exit(FINDING)
        if paths and not done.found:  # a script has to see that a log it named gave nothing
            raise typer.Exit(OPERATIONAL)


def _once(
    data: Path,
    agents: Sequence[str],
    paths: Sequence[Path],
    since: datetime | None,
    project: str | None,
    service: str | None,
    watching: Watch | None,
    *,
    quiet: bool,
) -> Imported:
    stores = sources(agents, paths)
    if not stores:
        _nothing(agents, paths)
    if watching:
        watching.look(stores)
    done = Imported()
    shown = time.monotonic()

    def progress(done: Imported) -> None:
        nonlocal shown
        if not quiet and time.monotonic() - shown > 1:
            shown = time.monotonic()
            echo(f"{counted(done.found.total(), 'session')} read, {done.sent.total():,} new", err=True)

    looked_for = () if paths else agents  # a folder that was named says nothing about the usual places
    import_sessions(
        data, stores, since=since, project=project, service=service, agents=looked_for, progress=progress, done=done
    )
    if watching and not done.not_stored:
        watching.settle()
    echo(_summary(done))
    _not_read(done)
    if done.not_stored:
        echo(
            f"{counted(done.not_stored, 'session')} not stored after a minute; see assay doctor and assay query failures",
            err=True,
        )
    return done


def _not_read(done: Imported) -> None:
    """Name what was not read, and the fix of each kind."""
    problems = [replace(problem, count=count) for (_, problem), count in sorted(done.problems.items())]
    for problem in problems:
        echo(f"not read: {in_words(problem)}", err=True)
    for fix in fixes(problem.kind for problem in problems):
        echo(f"  {fix}", err=True)


def _nothing(agents: Sequence[str], paths: Sequence[Path]) -> None:
    where = ", ".join(map(str, paths)) or f"the usual places of {', '.join(agents) or 'any agent'}"
    for path, agent in product(paths, agents):
        if other := other_reader(path, READERS[agent]):
            echo(f"no sessions of {agent} in {path}, but of {other}: import it with --from {other}", err=True)
            return
    echo(f"no sessions in {where}; name a file or folder: assay sessions import --from AGENT PATH", err=True)


def _summary(done: Imported) -> str:
    agents = ", ".join(f"{count:,} {agent}" for agent, count in sorted(done.found.items()))
    text = f"{counted(done.found.total(), 'session')} found{f' ({agents})' if agents else ''}: "
    text += f"{done.sent.total():,} new or changed, {done.unchanged.total():,} already stored"
    return text + (f"; {counted(done.parts, 'part')}, {done.size / 1024 / 1024:.1f} MiB" if done.parts else "")


def _moment(since: str) -> datetime:
    return datetime.fromtimestamp(moment_ms(since, time.time_ns() // 1_000_000, "--since") / 1000, UTC)
