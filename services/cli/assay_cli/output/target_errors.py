"""Errors of a system under test in full, for the developer who asked to see them: on stderr, never in a file, a run or a report."""

import traceback

from assay_cli.output.terminal import echo, printable

#: Errors that are shown where there are more.
ERRORS_SHOWN = 3
#: Lines of one error: the last ones, which say most.
_LINES = 40


class ErrorsOfTarget:
    """Counts a system's errors; `in_full` prints the first of them as they come: tracebacks, responses, and stderr of commands."""

    def __init__(self, in_full: bool) -> None:
        self.in_full, self._count = in_full, 0

    def __call__(self, error: Exception) -> None:
        """The next one."""
        self._count += 1
        if self.in_full and self._count <= ERRORS_SHOWN:
            echo("\n".join([f"error {self._count}:", *_lines(error)]), err=True)

    def say_how(self) -> None:
        """How to see them, if there were any and nobody did."""
        if self._count and not self.in_full:
            echo("see what was raised, here and in no file: --show-errors", err=True)


def _lines(error: Exception) -> list[str]:
    said = getattr(error, "said", None)
    if said is None and error.__cause__ is not None:
        said = "".join(traceback.format_exception(error.__cause__))
    lines = [str(error) or type(error).__name__, *(said or "").splitlines()[-_LINES:]]
    return [f"  {printable(line)}" for line in lines]
