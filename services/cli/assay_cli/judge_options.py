"""The judge that a command's options name, and what a person is told of its work in the end."""

from pathlib import Path
from typing import TYPE_CHECKING

from assay_cli.errors import CommandError
from assay_cli.judge_spending import SPENDING_FILE
from assay_cli.judged import REPEATS_MOST, RunJudge
from assay_cli.terminal import echo

if TYPE_CHECKING:
    from assay_evals.runs import RunFolder


def tell(judge: RunJudge | None) -> bool:
    """Say on stderr what a person should know of the judging, and return whether it failed as a whole."""
    if judge is None:
        return False
    from assay_judge.reasons import reasons

    if note := judge.close_note():
        echo(note, err=True)
    for count, why in reasons(judge.failures):
        echo(f"  {count:,} without a verdict: {why}", err=True)
    if judge.failed:
        echo(f"the judge gave no verdict for any of {judge.errors:,} answers, so nothing is known of them", err=True)
    return judge.failed


def judge_named(
    name: str | None,
    budget: str | None,
    *,
    cached_in: Path | None = None,
    repeats: int | None = None,
    reference: bool = False,
) -> RunJudge | None:
    """The judge of a command's options; None without one."""
    from assay_cli.asking import a_number

    if repeats is not None and not 2 <= repeats <= REPEATS_MOST:
        raise CommandError(f"--repeats: from 2 to {REPEATS_MOST}")
    if name is None:
        if repeats is not None:
            raise CommandError("--repeats is how often each answer is judged: it needs --judge")
        if reference:
            raise CommandError("--reference is decided by a model: name one with --judge anthropic or openai")
        return None
    cap = a_number(budget, "--judge-budget")
    if cap is not None and cap < 0:
        raise CommandError("--judge-budget: below 0")
    budget_usd = 1.0 if cap is None else cap
    return RunJudge(name, budget_usd, cached_in=cached_in, repeats=repeats or 1, reference=reference)


def with_spending(judge: RunJudge | None, folder: "RunFolder", spending: Path | None = None) -> "RunFolder":
    """A run's folder, with what judging it has cost so far: kept in that folder, or in another. Raises `CommandError`."""
    if judge is not None:
        try:
            judge.go_on((spending or folder.folder) / SPENDING_FILE, folder)
            folder.judge_cache = judge.cache_use
        except CommandError:
            folder.close()
            raise
    return folder
