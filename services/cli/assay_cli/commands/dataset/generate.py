"""`assay dataset generate`: synthetic golden cases, written by the judge's API within a budget."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.output.terminal import echo, ends_quietly, own_stdout
from assay_cli.target_options import TargetName
from assay_operations.evaluations.generate import prepare_generation
from assay_operations.evaluations.target import TargetConfig
from assay_operations.numbers import a_number


def generate(
    files: Annotated[
        list[Path],
        typer.Option("--from", help='Passages: NDJSON of {"id", "text"}, or exported answers; repeatable.'),
    ],
    target: TargetName,
    count: Annotated[int, typer.Option(help="Number of passages to write a question for.")] = 20,
    known: Annotated[
        Path | None, typer.Option("--known", help="Existing dataset; generated cases similar to it are dropped.")
    ] = None,
    budget: Annotated[str, typer.Option("--budget", metavar="USD", help="Maximum cost in USD.")] = "1",
    seed: Annotated[int, typer.Option(help="Random seed for sampling passages.")] = 0,
) -> None:
    """Generate cases with a model, and print them as NDJSON for review.

    A second call checks each question, and the target must find it.
    """
    from assay_evals.dataset.file_format import write_dataset
    from assay_evals.dataset.model import Dataset

    cap = a_number(budget, "--budget")
    if cap is None or cap < 0 or count < 1:
        raise CommandError("--budget: 0 or more; --count: 1 or more")
    with ends_quietly():
        with own_stdout():
            made = prepare_generation(files, TargetConfig(target), count, cap, known, seed).run()
        why = ", ".join(f"{number} {reason}" for reason, number in made.dropped.most_common()) or "none"
        echo(f"{made.passages} passages: {len(made.cases)} cases kept, dropped: {why}; ${made.spent_usd:.4f}", err=True)
        if not made.cases:
            raise CommandError("no case was kept: see the reasons above")
        today = datetime.now(UTC).date().isoformat()
        for line in write_dataset(Dataset(name="synthetic", version=today, created_at=today, cases=made.cases)):
            echo(line)
