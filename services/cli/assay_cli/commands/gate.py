"""`assay gate`: merge gate for a retrieval system."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.commands.eval.compare import Undecided
from assay_cli.exit_codes import FINDING, INCONCLUSIVE, OPERATIONAL
from assay_cli.option_groups import grouped
from assay_cli.options import Rules, Scorers
from assay_cli.output.judging import tell
from assay_cli.output.progress import Progress
from assay_cli.output.terminal import echo, emit, ends_quietly, own_stdout
from assay_cli.target_options import TargetOptions
from assay_cli.threshold_options import Jaccard, LatencyMultiplier, Top1, least
from assay_operations.evaluations.gate import GateRequest, prepare_gate


@dataclass(frozen=True)
class GateOptions:
    """References and thresholds of a gate."""

    baseline: Annotated[Path | None, typer.Option(help="Published baseline to compare the results with.")] = None
    qrels: Annotated[
        Path | None, typer.Option(help="Queries with known correct results (qrels); fails if they are not returned.")
    ] = None
    k: Annotated[int, typer.Option("-k", help="Number of results per query of --qrels that count.")] = 10
    threshold_jaccard: Jaccard = None
    threshold_top1: Top1 = None
    threshold_latency_multiplier: LatencyMultiplier = None
    threshold_recall: Annotated[str | None, least("Minimum mean recall@k on --qrels, 0 to 1; default 0.70.")] = None
    threshold_first_relevant: Annotated[
        str | None, least("Minimum share of queries whose first result is relevant, 0 to 1; default 0.60.")
    ] = None
    threshold_expected_top1: Annotated[
        str | None, least("Minimum share of queries whose first result is the expected one, 0 to 1; default 0.50.")
    ] = None
    rules: Rules = None
    scorers: Scorers = None
    judge: Annotated[
        str | None, typer.Option(metavar="anthropic|openai", help="API that judges rubrics; default: none.")
    ] = None
    judge_budget: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Budget for judging rubrics, in USD; default 1.", show_default=False),
    ] = None


@grouped
def gate(
    options: GateOptions,
    target: TargetOptions,
    inconclusive: Annotated[
        Undecided, typer.Option(help="How to count thresholds with too few rows for a verdict.")
    ] = Undecided.INCONCLUSIVE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Compare a system with a baseline, with qrels, or both.

    Exit code 0 if all pass, 1 on a breach, 2 if the system answers no question, 3 if there are too few rows for a verdict.
    """
    from assay_evals.compare.verdicts import Verdict
    from assay_evals.report.gate_text import gate_text

    system, errors = target.config()
    with own_stdout():
        prepared = prepare_gate(GateRequest(system=system, **vars(options)))
    stopped = ends_quietly(stopped=lambda: "nothing was kept; run the gate again")
    with stopped, own_stdout(), Progress(target.progress) as counter:
        verdict = prepared.run(counter, Verdict(inconclusive.value))
    if prepared.answers:
        tell(prepared.answers.judge)
    if as_json:
        emit(json.dumps(verdict, ensure_ascii=False, indent=2))
    else:
        echo(gate_text(verdict))
    if verdict["regression_gate"].get("latency_skipped"):
        echo("latency check skipped: the baseline has no latency", err=True)
    errors.say_how()
    codes = {Verdict.PASS: 0, Verdict.FAIL: FINDING, Verdict.INCONCLUSIVE: INCONCLUSIVE}
    if code := OPERATIONAL if "error" in verdict else codes[Verdict(verdict["verdict"])]:
        raise typer.Exit(code)
