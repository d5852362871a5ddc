"""`assay sessions check`: check sessions by rules."""

import time
from pathlib import Path
from typing import Annotated

import orjson
import typer

from assay_cli.options import DataDirectory
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.terminal import echo, emit, ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.sessions.checking import Checked, check_file, check_stored, prepare_checks
from assay_operations.time_bounds import bound
from assay_sessions.checks import report as show
from assay_sessions.checks.tally import CheckVerdict, exit_code


def check(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="File of assay sessions export; default: the store.")
    ] = None,
    rules: Annotated[Path | None, typer.Option(help="Rules file; default: all rules without settings.")] = None,
    references: Annotated[
        Path | None, typer.Option(help="File of reference trajectories (JSONL); default: none.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only stored sessions that arrived after this: a duration ago, or a time; default: all."),
    ] = None,
    project: Annotated[str | None, typer.Option(help="Only this project; default: all.")] = None,
    source: Annotated[str | None, typer.Option(help="Only this agent; default: all.")] = None,
    session: Annotated[
        list[str] | None, typer.Option("--session", metavar="ID", help="Only this session; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    each: Annotated[
        bool, typer.Option("--each", help="Print each session's findings, one JSON object a line.")
    ] = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML to this file.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write Markdown to this file.")] = None,
    inconclusive: Annotated[
        str, typer.Option(metavar="pass|fail|inconclusive", help="How an inconclusive verdict counts.")
    ] = "inconclusive",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Check sessions by rules, without a model: answers, loops, forbidden tools, limits and others.

    Exit code 0: all required rules pass, 1: one fails, 3: one is inconclusive.
    """
    counts = _verdict(inconclusive)
    with ends_quietly():
        chosen, expected = prepare_checks(rules, references)
        with Progress(Mode.NONE if quiet else Mode.AUTO) as counter:

            def progress(number: int) -> None:
                counter.rows = number

            if file:
                if since:
                    raise typer.BadParameter("a file does not say when its sessions arrived", param_hint="--since")
                done = check_file(
                    file, chosen, expected, project=project, source=source, session_ids=tuple(session or ()),
                    keep=each, progress=progress,
                )  # fmt: skip
            else:
                after = bound(since, time.time_ns() // 1_000_000, "--since").place if since else -1
                done = check_stored(
                    data, chosen, expected, after=after, project=project, source=source,
                    session_ids=tuple(session or ()), keep=each, progress=progress,
                )  # fmt: skip
        _print(done, as_json=as_json, each=each)
        if markdown:
            markdown.write_text(show.markdown(done.report), encoding="utf-8")
        if junit:
            junit.write_text(show.junit(done.report, inconclusive=counts), encoding="utf-8")
    raise typer.Exit(exit_code(done.report, inconclusive=counts))


def _print(done: Checked, *, as_json: bool, each: bool) -> None:
    for checked in done.sessions:
        emit(orjson.dumps(show.session_json(checked)).decode())
    if as_json:
        emit(orjson.dumps(show.as_json(done.report), option=orjson.OPT_INDENT_2).decode())
    elif not each:
        echo(show.text(done.report))
    if done.incomplete:
        echo(f"left out: {done.incomplete:,} session(s) whose parts have not all arrived", err=True)
    if done.malformed:
        echo(
            f"left out: {done.malformed:,} session(s) that have not the form of one (assay sessions show names it)",
            err=True,
        )


def _verdict(text: str) -> CheckVerdict:
    choices: dict[str, CheckVerdict] = {"pass": "pass", "fail": "fail", "inconclusive": "inconclusive"}
    if text not in choices:
        raise typer.BadParameter("choose pass, fail or inconclusive", param_hint="--inconclusive")
    return choices[text]
