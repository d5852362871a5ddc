"""Closing notes on the judging of a run."""

from assay_cli.output.terminal import echo
from assay_operations.evaluations.run_judge import RunJudge


def tell(judge: RunJudge | None) -> bool:
    """Print notes on the judging to stderr. Return True if the judge gave no verdict at all."""
    if judge is None:
        return False
    if note := judge.close_note():
        echo(note, err=True)
    for count, why in judge.why_failed():
        echo(f"  {count:,} without a verdict: {why}", err=True)
    if judge.failed:
        echo(f"the judge gave no verdict for any of {judge.errors:,} answers, so their quality is unknown", err=True)
    return judge.failed
