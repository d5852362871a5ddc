"""`assay sessions judge`: have the judge score a sample of the sessions."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import orjson
import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING
from assay_cli.options import AsJson, Comment, DataDirectory
from assay_cli.output.terminal import echo, emit, ends_quietly, printable
from assay_operations.actor import Actor, local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.errors import OperationError
from assay_operations.judging.explained import detail_in_words
from assay_operations.sessions.judge_sample import Plan
from assay_operations.sessions.judging import apply, plan_judging
from assay_schema.scores import Metric, Score, ScoreStatus

#: Seconds between rounds with --watch.
_WATCH_S = 60.0
#: Fields of a score in the JSON output.
_SHOWN = {"session_id", "status", "metrics", "demoted", "detail", "base", "cost_usd", "rubric"}


def judge(
    session: Annotated[
        list[str] | None,
        typer.Option("--session", metavar="ID", help="Judge this session, in the sample or not; repeatable."),
    ] = None,
    project: Annotated[str, typer.Option("--project", help="Project of the sessions.")] = "default",
    since: Annotated[str, typer.Option(help="Only sessions that changed since then: a duration or a time.")] = "7d",
    settled: Annotated[
        str, typer.Option(help="Leave out sessions that changed within this duration: they may go on.")
    ] = "10m",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sessions that are judged.")] = 100,
    again: Annotated[
        bool,
        typer.Option("--again", help="Judge errors again; with --session also what was scored. By the same rubric."),
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat this every minute, until Ctrl-C.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the sessions, and judge none.")] = False,
    comment: Comment = "",
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Score a sample of the sessions by rubric, with the judge's model and within its budget.

    A session has two calls: the model writes the items of a rubric from what was asked, then says which of them the session meets. The
    scores are stored like those of answers. Exit code 1 if a session ended in an error.
    """
    if watch and again:
        raise CommandError("--again with --watch would pay for the same sessions each minute; leave one of them out")
    actor, failed = local_actor(comment), False
    with ends_quietly():
        while True:
            try:
                plan = plan_judging(
                    data, project=project, since=since, settled=settled, session_ids=tuple(session or ()), again=again, limit=limit
                )  # fmt: skip
                failed = _round(plan, dry_run=dry_run, actor=actor, as_json=as_json, quiet=watch)
            except OperationError as error:
                if not watch or error.kind == "invalid":
                    raise
                echo(f"assay: {error}; trying again", err=True)
            if not watch or dry_run:
                break
            time.sleep(_WATCH_S)
    if failed:
        raise typer.Exit(FINDING)


def _round(plan: Plan, *, dry_run: bool, actor: Actor, as_json: bool, quiet: bool) -> bool:
    """Judge the sessions of a plan, and print what came of it. True if one ended in an error."""
    waiting = f"; {plan.unsettled:,} changed lately (--settled)" if plan.unsettled else ""
    if dry_run:
        counts = {
            "would_be_judged": len(plan.sampled),
            "not_sampled": len(plan.not_sampled),
            "done": plan.done,
            "unsettled": plan.unsettled,
        }
        if as_json:
            emit(orjson.dumps(counts).decode())
        else:
            echo(
                f"{len(plan.sampled):,} session(s) would be judged, {len(plan.not_sampled):,} are not in the sample, "
                f"{plan.done:,} are done{waiting}"
            )
        return False
    scores: list[Score] = []
    counts = apply(plan, actor, progress=scores.append)
    judged = [score for score in scores if score.status is not ScoreStatus.NOT_SAMPLED]
    if as_json:
        found = [score.model_dump(mode="json", include=_SHOWN) for score in judged]
        emit(orjson.dumps({"counts": counts, "done": plan.done, "sessions": found}).decode())
    elif scores or not quiet:
        for score in judged:
            echo(_line(score))
        echo(_summary(counts, judged, plan.done) + waiting)
    return counts[ScoreStatus.JUDGE_ERROR] > 0


def _line(score: Score) -> str:
    rate = score.metrics.get(Metric.RUBRIC_SCORE)
    said = score.status.value if rate is None else f"{rate:.2f}"
    detail = detail_in_words(score.status.value, score.detail)
    return f"{said:>14}  {printable(score.session_id or '')}" + (f"  {detail}" if detail else "")


def _summary(counts: Mapping[str, int], judged: Sequence[Score], done: int) -> str:
    text = ", ".join(f"{status} {count:,}" for status, count in sorted(counts.items()))
    cost = f", {sum(score.cost_usd for score in judged):.4f} USD" if judged else ""
    nothing = f"nothing to judge: {done:,} session(s) are done; --session ID --again judges one again; see assay sessions list"
    return f"{text}{cost}" if text else nothing
