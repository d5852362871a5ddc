"""`assay eval nightly`: run the configured evaluations once a day."""

import signal
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.exit_codes import FINDING, INCONCLUSIVE, OPERATIONAL
from assay_cli.options import DataDirectory, Rules, Scorers
from assay_cli.output.terminal import echo
from assay_operations.clients import DEFAULT_DATA, settings_and_source
from assay_operations.evaluations.nightly import nightly_evaluations, serve

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
    """Run the evaluations of \\[evals] and of the \\[nightly_...] sections once a day.

    With --once, exit code 0 if all passed (or none is due), 1 if one failed, 2 without a result, 3 inconclusive.
    """
    settings, source = settings_and_source("evaluator", data)
    evaluations = nightly_evaluations(
        settings, lambda: datetime.now(UTC), rules=rules, scorers=scorer, source=source, data=data
    )
    if once:
        codes = []
        for each in evaluations:
            attempt = each.attempt()
            echo(f"{each.evaluation}: {attempt.outcome}: {attempt.detail}")
            codes.append(exit_code(attempt))
        if code := next((code for code in (FINDING, OPERATIONAL, INCONCLUSIVE) if code in codes), 0):
            raise typer.Exit(code)
        return
    stop = threading.Event()
    for stopping in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stopping, lambda *_: stop.set())
    echo(f"evaluating every night from {settings.evals.hour:02}:00 UTC on", err=True)
    serve(evaluations, stop, lambda text: echo(text, err=True))


def exit_code(attempt: "Attempt") -> int:
    """Return the exit code of a process that made this attempt."""
    codes = {"pass": 0, "rate_limited": 0, "fail": FINDING, "inconclusive": INCONCLUSIVE}
    return codes.get(attempt.outcome.value, OPERATIONAL)
