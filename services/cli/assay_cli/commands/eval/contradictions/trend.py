"""`assay eval contradictions trend`: the rate over time."""

import json
import time
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import AsJson, DataDirectory
from assay_cli.output.terminal import echo, emit
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations.contradiction_reads import trends
from assay_operations.time_bounds import moment_ms


def trend(
    since: Annotated[str, typer.Option(help="Start of the period: a duration ago or an ISO 8601 time.")] = "90d",
    project: Annotated[str, typer.Option(help="Project of the runs.")] = "default",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Show the rate of contradictions over time, one series for each prompt, model, sampling and scope."""
    from assay_evals.contradictions.trend import trend_document, trend_text

    found = trends(data, project, moment_ms(since, int(time.time() * 1000), "--since"))
    if as_json:
        emit(json.dumps(trend_document(found, since), ensure_ascii=False))
        return
    if not found:
        raise CommandError(f"no run of project {project} since {since}; start one: assay eval contradictions run")
    echo(trend_text(found))
