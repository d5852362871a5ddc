"""What every command that asks a system under test has in common: its options, and driving it with progress."""

import asyncio
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from assay_cli.errors import CommandError
from assay_cli.errors_of_targets import ERRORS_SHOWN, ErrorsOfTarget

if TYPE_CHECKING:
    from assay_evals.captured import Captured
    from assay_evals.runner import Asked, Asking
    from assay_evals.targets import Question, Target

Item = TypeVar("Item")

TargetName = Annotated[
    str,
    typer.Option(
        "--target",
        help="What is asked: http://host/path, module:function, or 'command: program --flag'.",
        show_default=False,
    ),
]
#: A number as JSON and most people write it; Python itself would also take `1_0` and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
Workspace = Annotated[str | None, typer.Option(help="Sent to an HTTP target as X-Workspace-ID.")]
Concurrency = Annotated[int, typer.Option(help="Questions asked at a time.")]
Deadline = Annotated[float, typer.Option("--deadline", help="Seconds that one question may take, with all its tries.")]
Retries = Annotated[int, typer.Option(help="Tries beyond the first where the target may fare better.")]
ShowErrors = Annotated[
    bool,
    typer.Option(
        "--show-errors",
        help=f"Print the first {ERRORS_SHOWN} errors in full on stderr. They may hold what was asked, and are in no file.",
    ),
]


@dataclass(frozen=True)
class System:
    """A system under test and how it is asked, as named on the command line."""

    target: str
    workspace: str | None = None
    concurrency: int = 5
    deadline_s: float = 30.0
    retries: int = 2
    errors: ErrorsOfTarget = field(default_factory=lambda: ErrorsOfTarget(in_full=False))

    def open(self) -> "tuple[Target, Asking]":
        """The target and how it is asked. Raises `CommandError` for what cannot be."""
        from assay_evals.errors import TargetUsageError
        from assay_evals.runner import Asking
        from assay_evals.targets import open_target

        say_no_tries()
        try:
            how = Asking(self.concurrency, self.deadline_s, self.retries, told=self.errors)
        except ValueError as error:
            raise CommandError(f"--{error}") from None
        try:
            target = open_target(
                self.target,
                workspace=self.workspace,
                timeout_s=self.deadline_s,
                connections=self.concurrency,
                keep_said=self.errors.in_full,
            )
            return target, how
        except TargetUsageError as error:
            raise CommandError(f"--target: {error}") from None

    def ask(
        self,
        items: Iterable[Item],
        question: "Callable[[Item], Question | None]",
        take: "Callable[[Asked[Item]], None]",
    ) -> None:
        """Ask about every item and hand on each answer, in the order of the items."""
        from assay_evals.runner import ask_each

        target, how = self.open()
        asyncio.run(ask_each(target, items, question, how, take))


def say_no_tries() -> None:
    """Each try that failed would be a line in the log; a result counts its tries, and says what the last one ended in."""
    from stamina.instrumentation import set_on_retry_hooks

    set_on_retry_hooks([])


def lines_of(path: Path, option: str) -> Iterator[str]:
    """The lines of a text file, one at a time. Raises `CommandError` naming the option."""
    from assay_evals import files
    from assay_evals.errors import EvalsError

    try:
        yield from files.lines_of(path)
    except EvalsError as error:
        raise CommandError(f"{option}: {error}") from None


def captured_of(path: Path, option: str) -> "Iterator[Captured]":
    """The captured rows of a file, one at a time. Raises `CommandError` naming the option and the file."""
    from assay_evals.captured import CapturedError, read_captured

    try:
        yield from read_captured(lines_of(path, option))
    except CapturedError as error:
        raise CommandError(f"{option}: {path}: {error}") from None


def rows_of(files: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of NDJSON files after `--from`, each with where it stands. Raises `CommandError` that says where."""
    from assay_evals.captured import CapturedError, parse_line

    for path in files:
        for number, line in enumerate(lines_of(path, "--from"), start=1):
            if line.strip():
                try:
                    yield f"--from: {path}: line {number}", parse_line(number, line)
                except CapturedError as error:
                    raise CommandError(f"--from: {path}: {error}") from None


def a_number(text: str | None, option: str) -> float | None:
    """A finite number, or `CommandError`: one that is none must never switch a check off."""
    if text is None:
        return None
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise CommandError(f"{option}: {text!r} is not a number")
    return value


#: Longest tag of a run, in characters.
TAG_MAX_CHARS = 64


def tags_of(given: list[str] | None) -> tuple[str, ...]:
    """A run's tags, each once, sorted. Raises `CommandError` for what would not be one word or line in a list."""
    for tag in given or ():
        if not tag.strip() or len(tag) > TAG_MAX_CHARS or not tag.isprintable():
            raise CommandError(f"--tag: a tag has 1 to {TAG_MAX_CHARS} characters and no line end")
    return tuple(sorted({*(given or ())}))
