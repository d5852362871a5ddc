"""Full errors of a system under test, on request: on stderr, never in a file, a run or a report."""

import traceback

from assay_cli.output.terminal import echo, printable

#: Maximum number of errors that are shown.
ERRORS_SHOWN = 3
#: Maximum lines of one error; the last lines are kept, because they say most.
_LINES = 40


class ErrorsOfTarget:
    """Counts a target's errors.

    `in_full` prints the first ones: tracebacks, responses, and stderr of commands.
    """

    def __init__(self, in_full: bool) -> None:
        self.in_full = in_full
        self._count = 0

    def __call__(self, error: Exception) -> None:
        """Count an error, and print it if it is one of the first."""
        self._count += 1
        if self.in_full and self._count <= ERRORS_SHOWN:
            echo("\n".join([f"error {self._count}:", *_lines(error)]), err=True)

    def say_how(self) -> None:
        """Print how to see the errors, if there were any and none was shown."""
        if self._count and not self.in_full:
            echo("to print these errors on stderr (they are never written to a file): --show-errors", err=True)


def _lines(error: Exception) -> list[str]:
    said = getattr(error, "target_message", None)
    if said is None and error.__cause__ is not None:
        said = "".join(traceback.format_exception(error.__cause__))
    lines = [str(error) or type(error).__name__, *(said or "").splitlines()[-_LINES:]]
    return [f"  {printable(line)}" for line in lines]
