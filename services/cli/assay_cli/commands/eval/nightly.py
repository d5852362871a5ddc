"""`assay eval nightly`: run the configured evaluation once a day."""

import signal
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.exit_codes import FINDING, INCONCLUSIVE, OPERATIONAL
from assay_cli.options import DataDirectory, Rules, Scorers
from assay_cli.output.terminal import echo
from assay_operations.clients import DEFAULT_DATA, settings_and_source
from assay_operations.evaluations.nightly import Nightly

if TYPE_CHECKING:
    from assay_evals.nightly import Attempt


def nightly(
    once: Annotated[
        bool, typer.Option("--once", help="Make one attempt now, unless today's is done, and exit.")
    ] = False,
    rules: Rules = None,
    scorer: Scorers = None,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Run the evaluation of \\[evals] once a day.

    With --once, exit code 0 pass (or not due), 1 fail, 2 no result, 3 inconclusive.
    """
    settings, source = settings_and_source("evaluator", data)
    worker = Nightly(settings, lambda: datetime.now(UTC), rules=rules, scorers=scorer, source=source)
    if once:
        attempt = worker.attempt()
        echo(f"{attempt.outcome}: {attempt.detail}")
        if code := exit_code(attempt):
            raise typer.Exit(code)
        return
    stop = threading.Event()
    for stopping in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stopping, lambda *_: stop.set())
    echo(f"evaluating every night from {worker.settings.evals.hour:02}:00 UTC on", err=True)
    worker.serve(stop, lambda text: echo(text, err=True))


def exit_code(attempt: "Attempt") -> int:
    """Return the exit code of a process that made this attempt."""
    codes = {"pass": 0, "rate_limited": 0, "fail": FINDING, "inconclusive": INCONCLUSIVE}
    return codes.get(attempt.outcome.value, OPERATIONAL)
