"""`assay eval cross-modal`: have a panel of judges of different families score the answers of a file."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING, OPERATIONAL
from assay_cli.options import RunsFolder
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.terminal import echo, emit, ends_quietly, own_stdout
from assay_operations.evaluations.panel import PanelRequest, outcomes, prepare_panel
from assay_operations.evaluations.runs import DEFAULT_RUNS
from assay_operations.numbers import a_number


def cross_modal(
    batch: Annotated[
        Path, typer.Option("--batch", help="Answers, one JSON object per line: question_id, question, hypothesis.")
    ],
    panel: Annotated[Path, typer.Option("--panel", help="TOML file with two to five judges of different families.")],
    limit: Annotated[int, typer.Option(help="Number of answers, a random sample.")] = 10,
    cycles: Annotated[int, typer.Option(help="Times that each judge scores each answer, 1 to 3; the means count.")] = 1,
    concurrent: Annotated[int, typer.Option(help="Answers that are judged at the same time.")] = 3,
    max_usd: Annotated[str, typer.Option("--max-usd", metavar="USD", help="Maximum cost, never exceeded.")] = "5",
    yes: Annotated[bool, typer.Option("--yes", help="Start even if the usual cost is above the maximum.")] = False,
    answers_by: Annotated[
        str | None,
        typer.Option(metavar="FAMILY", help="Family of the model that answered, if the lines do not name it."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the sample and of the orders.")] = 0,
    runs: RunsFolder = DEFAULT_RUNS,
    no_judge_cache: Annotated[bool, typer.Option("--no-judge-cache", help="Do not reuse replies of earlier runs.")] = (
        False
    ),
    output: Annotated[Path | None, typer.Option(help="Also write the summary to this file, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    progress: Annotated[Mode, typer.Option(help="Progress on stderr.")] = Mode.AUTO,
) -> None:
    """Score answers with a panel of judges that do not see who answered, nor each other's scores.

    Exit code 0 if every answer passed, 1 if one failed, 2 for an error or no verdict (too few judges or too little budget).
    The forms of both files, and how the verdict is made: docs/panel.md.
    """
    cap = a_number(max_usd, "--max-usd")
    assert cap is not None
    cached_in = None if no_judge_cache else runs
    prepared = prepare_panel(
        PanelRequest(
            batch,
            panel,
            limit=limit,
            cycles=cycles,
            concurrent=concurrent,
            max_usd=cap,
            output=output,
            seed=seed,
            family=answers_by,
            cached_in=cached_in,
        )
    )
    if prepared.estimated_usd > cap and not yes:
        raise CommandError(
            f"judging usually costs ${prepared.estimated_usd:.2f} here, and --max-usd is ${cap:.2f}: raise it, lower --limit, or pass "
            "--yes: judging then stops at the maximum, after a random part of the answers"
        )
    with ends_quietly(stopped=lambda: _kept(cached_in)), own_stdout(), Progress(progress) as counter:
        summary = asyncio.run(prepared.run(counter))
    text = json.dumps(summary, ensure_ascii=False)
    if as_json:
        emit(text)
    else:
        for line in lines_of(summary):
            echo(line)
    prepared.keep(summary)
    if code := {"pass": 0, "fail": FINDING}.get(summary["verdict"], OPERATIONAL):
        raise typer.Exit(code)


def _kept(cached_in: Path | None) -> str:
    if cached_in is None:
        return "the replies so far are lost; without --no-judge-cache they are kept"
    return "replies of judges with a key are cached; run the same command again to go on"


def lines_of(summary: dict[str, Any]) -> list[str]:
    """Return the summary for people."""
    said = [f"{summary['verdict']}: {', '.join(f'{count} {name}' for name, count in outcomes(summary))}"]
    if rate := summary["pass_rate"]:
        said.append(
            f"pass rate {rate['value']:.1%} of {summary['pass_rate_of']} (95 % interval {rate['low']:.1%} to {rate['high']:.1%})"
        )
    for name, found in summary["agreement"].items():
        if found["alpha"] is None:
            said.append(f"agreement on {name}: not known from {found['questions']} answer(s)")
            continue
        spread = "" if found["low"] is None else f" ({found['low']:.2f} to {found['high']:.2f})"
        said.append(
            f"agreement on {name}: Krippendorff's alpha {found['alpha']:.2f}{spread}, {found['questions']} answer(s)"
        )
    said += [
        f"{family} scores its own family's answers {found['preference']:+.2f} points higher than others do"
        for family, found in summary["self_preference"].items()
        if found["preference"] is not None
    ]
    if unknown := [name for name in summary["answers_by_family"] if name not in summary["self_preference"]]:
        said.append(
            f"no judge is of the family of some answers, so nothing is known of a preference: {', '.join(unknown)}"
        )
    by_family = ", ".join(f"{family} ${usd:.4f}" for family, usd in summary["cost_usd_by_family"].items())
    said.append(f"cost ${summary['cost_usd']:.4f} of at most ${summary['max_usd']:.2f}: {by_family}")
    for each in summary["per_question"]:
        if each["verdict"] != "pass":
            said.append(f"{each['question_id']}: {each['verdict']}{_why(each)}")
    said += [f"line {each['line']}: {each['reason']}" for each in summary["malformed_lines"]]
    return said


def _why(question: dict[str, Any]) -> str:
    means = ", ".join(f"{name} {mean:.2f}" for name, mean in question.get("final_aggregate", {}).items())
    errors = ", ".join(f"{judge}: {kind}" for judge, kind in question.get("errors", {}).items())
    return "".join(f"; {part}" for part in (means, errors) if part)
