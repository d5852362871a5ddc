"""`assay dataset generate`: synthetic golden cases by the judge's API, on a budget."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.output.terminal import echo, ends_quietly
from assay_cli.target_options import TargetName
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.files import rows_of
from assay_operations.evaluations.generate import Model, round_trip
from assay_operations.evaluations.generate import generate as write_cases
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
    from assay_drift.embedding import embedder
    from assay_evals.dataset import Dataset, write_dataset
    from assay_evals.generating import documents, drawn, unlike

    cap = a_number(budget, "--budget")
    if cap is None or cap < 0 or count < 1:
        raise CommandError("--budget: 0 or more; --count: 1 or more")
    model = Model(cap)
    chosen = drawn(documents(row for _, row in rows_of(files)), count, seed)
    if not chosen:
        raise CommandError(
            '--from: no passages: lines are {"id", "text"}, or answers as `assay export --kind answer` writes them'
        )
    # Whatever cannot be is found out before money is spent.
    questions = [case.query for case in load(known, "--known").cases] if known else []
    system = TargetConfig(target).open()
    embed = embedder()[1]
    with ends_quietly():
        cases, dropped = asyncio.run(write_cases(model, chosen))
        cases, lost = round_trip(cases, *system)
        kept = unlike(cases, questions, embed)
        dropped += lost + kept.dropped
        why = ", ".join(f"{number} {reason}" for reason, number in dropped.most_common()) or "none"
        echo(f"{len(chosen)} passages: {len(kept.cases)} cases kept, dropped: {why}; ${model.spent_usd:.4f}", err=True)
        if not kept.cases:
            raise CommandError("no case was kept")
        today = datetime.now(UTC).date().isoformat()
        for line in write_dataset(Dataset(name="synthetic", version=today, created_at=today, cases=kept.cases)):
            echo(line)
