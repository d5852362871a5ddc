"""`assay judge rejudge`: judge stored answers again."""

from typing import Annotated

import typer

from assay_cli.options import Comment, DataDirectory
from assay_cli.output.terminal import echo
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.judging.rejudge import apply, plan_rejudge, statuses_of

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
    comment: Comment = "",
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Judge stored answers again, or for the first time, within the judge's budget.

    The scores replace earlier ones.
    """
    wanted, actor = statuses_of(only), local_actor(comment)
    plan = plan_rejudge(
        data, project=project, only=wanted, since=since, limit=limit, negative_feedback=negative_feedback
    )
    if dry_run:
        echo(f"{len(plan.answers)} answer(s) would be judged")
        return
    counts = apply(plan, actor)
    echo(", ".join(f"{state} {count}" for state, count in sorted(counts.items())) or "no matching answer")
