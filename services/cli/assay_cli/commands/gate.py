"""`assay gate`: merge gate for a retrieval system."""

import json
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.commands.eval.compare import Undecided
from assay_cli.exit_codes import FINDING, INCONCLUSIVE
from assay_cli.options import Rules, Scorers
from assay_cli.output.gate import in_words
from assay_cli.output.judging import tell
from assay_cli.output.progress import Mode, Progress
from assay_cli.output.target_errors import ErrorsOfTarget
from assay_cli.output.terminal import echo, emit, ends_quietly
from assay_cli.target_options import Concurrency, Deadline, Retries, ShowErrors, TargetName, Workspace
from assay_cli.threshold_options import Jaccard, LatencyMultiplier, Top1, least
from assay_operations.evaluations.gate import plan_gate
from assay_operations.evaluations.target import TargetConfig

Recall = Annotated[str | None, least("Minimum mean recall@k on --qrels, 0 to 1; default 0.70.")]
FirstRelevant = Annotated[
    str | None, least("Minimum share of queries whose first result is relevant, 0 to 1; default 0.60.")
]
ExpectedTop1 = Annotated[
    str | None, least("Minimum share of queries whose first result is the expected one, 0 to 1; default 0.50.")
]


def gate(
    target: TargetName,
    baseline: Annotated[Path | None, typer.Option(help="Published baseline to compare the results with.")] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Queries with known correct results (qrels); fails if they are not returned.")
    ] = None,
    k: Annotated[int, typer.Option("-k", help="Number of results per query of --qrels that count.")] = 10,
    threshold_jaccard: Jaccard = None,
    threshold_top1: Top1 = None,
    threshold_latency_multiplier: LatencyMultiplier = None,
    threshold_recall: Recall = None,
    threshold_first_relevant: FirstRelevant = None,
    threshold_expected_top1: ExpectedTop1 = None,
    rules: Rules = None,
    scorer: Scorers = None,
    judge: Annotated[
        str | None, typer.Option(metavar="anthropic|openai", help="API that judges rubrics; default: none.")
    ] = None,
    judge_budget: Annotated[
        str | None,
        typer.Option(metavar="USD", help="Budget for judging rubrics, in USD; default 1.", show_default=False),
    ] = None,
    inconclusive: Annotated[
        Undecided, typer.Option(help="How to count thresholds with too few rows for a verdict.")
    ] = Undecided.INCONCLUSIVE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
    workspace: Workspace = None,
    concurrency: Concurrency = 5,
    deadline: Deadline = 30.0,
    retries: Retries = 2,
    show_errors: ShowErrors = False,
    progress: Annotated[Mode, typer.Option(help="Format of progress on stderr.")] = Mode.AUTO,
) -> None:
    """Compare a system with a baseline, with qrels, or both.

    Exit code 0 if all pass, 1 on a breach, 2 if the system cannot be queried, 3 if there are too few rows for a verdict.
    """
    from assay_evals.compare.verdicts import Verdict

    errors = ErrorsOfTarget(show_errors)
    plan = plan_gate(
        TargetConfig(target, workspace, concurrency, deadline, retries, on_error=errors, keep_message=show_errors),
        baseline=baseline, qrels=qrels, k=k, rules=rules, scorers=scorer, judge=judge, judge_budget=judge_budget,
        of_baseline=(threshold_jaccard, threshold_top1, threshold_latency_multiplier),
        of_known=(threshold_recall, threshold_first_relevant, threshold_expected_top1),
    )  # fmt: skip
    with ends_quietly(stopped=lambda: "nothing was kept; run the gate again"), Progress(progress) as counter:
        verdict = plan.run(counter, Verdict(inconclusive.value))
    if plan.answers:
        tell(plan.answers.judge)
    if as_json:
        emit(json.dumps(verdict, ensure_ascii=False, indent=2))
    else:
        echo(in_words(verdict))
    if verdict["regression_gate"].get("latency_skipped"):
        echo("latency check skipped: the baseline has no latency", err=True)
    errors.say_how()
    if (outcome := Verdict(verdict["verdict"])) is not Verdict.PASS:
        raise typer.Exit(INCONCLUSIVE if outcome is Verdict.INCONCLUSIVE else FINDING)
