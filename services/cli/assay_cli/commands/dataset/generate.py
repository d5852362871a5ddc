"""`assay dataset generate`: synthetic golden cases by the judge's API, on a budget."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.output.terminal import echo, ends_quietly
from assay_cli.target_options import TargetName
from assay_operations.evaluations.generate import plan_generation
from assay_operations.evaluations.target import TargetConfig
from assay_operations.numbers import a_number


def generate(
    files: Annotated[
        list[Path],
        typer.Option("--from", help='Passages: NDJSON of {"id", "text"}, or exported answers; may be repeated.'),
    ],
    target: TargetName,
    count: Annotated[int, typer.Option(help="Passages for which a question is written.")] = 20,
    known: Annotated[
        Path | None, typer.Option("--known", help="A dataset: nothing alike to its cases is kept.")
    ] = None,
    budget: Annotated[str, typer.Option("--budget", metavar="USD", help="Most that it may cost.")] = "1",
    seed: Annotated[int, typer.Option(help="Of the draw of passages.")] = 0,
) -> None:
    """Have a model write questions, another call check them, and the target find them; print what holds as NDJSON to review."""
    from assay_evals.dataset import Dataset, write_dataset

    cap = a_number(budget, "--budget")
    if cap is None or cap < 0 or count < 1:
        raise CommandError("--budget: 0 or more; --count: 1 or more")
    plan = plan_generation(files, TargetConfig(target), count, cap, known, seed)
    with ends_quietly():
        made = plan.run()
        why = ", ".join(f"{number} {reason}" for reason, number in made.dropped.most_common()) or "none"
        echo(f"{made.passages} passages: {len(made.cases)} cases kept, dropped: {why}; ${made.spent_usd:.4f}", err=True)
        if not made.cases:
            raise CommandError("no case was kept")
        today = datetime.now(UTC).date().isoformat()
        for line in write_dataset(Dataset(name="synthetic", version=today, created_at=today, cases=made.cases)):
            echo(line)
