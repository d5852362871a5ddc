"""`assay judge rejudge`: judge stored answers again."""

import asyncio
from typing import Annotated

import typer

from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.judging.rejudge import answers_to_judge, statuses_of
from assay_operations.judging.rejudge import rejudge as rejudge_answers

Project = Annotated[str, typer.Option("--project", help="Project of the answers.")]


def rejudge(
    project: Project = "default",
    only: Annotated[
        list[str] | None,
        typer.Option("--status", help="Only answers with this status: skipped_budget, judge_error, ...; repeatable."),
    ] = None,
    negative_feedback: Annotated[
        bool, typer.Option("--negative-feedback", help="Only answers with negative feedback.")
    ] = False,
    since: Annotated[str, typer.Option(help="Start of the period: a duration ago or an ISO 8601 time.")] = "1d",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of answers.")] = 100,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the answers, and judge none.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Judge stored answers again, or for the first time, within the judge's budget.

    The scores replace earlier ones.
    """
    wanted = statuses_of(only)
    reader, writer = settings_for("sre", data), settings_for("judge", data)
    with open_store(reader.store) as store:
        answers = answers_to_judge(store, project, wanted, since, limit, negative_feedback=negative_feedback)
    if dry_run:
        echo(f"{len(answers)} answer(s) would be judged")
        return
    counts = asyncio.run(rejudge_answers(writer, answers))
    echo(", ".join(f"{state} {count}" for state, count in sorted(counts.items())) or "no matching answer")
