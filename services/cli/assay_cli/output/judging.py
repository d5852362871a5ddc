"""What a person is told of judging in the end."""

from assay_cli.output.terminal import echo
from assay_operations.evaluations.run_judge import RunJudge


def tell(judge: RunJudge | None) -> bool:
    """Say on stderr what a person should know of the judging, and return whether it failed as a whole."""
    if judge is None:
        return False
    if note := judge.close_note():
        echo(note, err=True)
    for count, why in judge.why_failed():
        echo(f"  {count:,} without a verdict: {why}", err=True)
    if judge.failed:
        echo(f"the judge gave no verdict for any of {judge.errors:,} answers, so nothing is known of them", err=True)
    return judge.failed
