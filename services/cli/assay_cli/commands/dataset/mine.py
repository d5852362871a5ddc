"""`assay dataset mine`: golden cases from production, to be reviewed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo, ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.mine import mine as mine_cases
from assay_operations.evaluations.mine import miner_of_files, miner_of_store
from assay_operations.numbers import a_number


def mine(
    files: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Read rows of `assay export` of any kind instead of the store; repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of cases.")] = 50,
    since: Annotated[str, typer.Option(help="From the store: period that ends now, for example 30d.")] = "30d",
    project: Annotated[str, typer.Option(help="Only this project; default: all.")] = "",
    known: Annotated[
        Path | None, typer.Option("--known", help="Existing dataset; questions that it contains are left out.")
    ] = None,
    negative: Annotated[bool, typer.Option("--negative", help="Only questions with negative feedback.")] = False,
    alike: Annotated[
        str, typer.Option("--alike", help="Minimum cosine at which two questions count as one.", metavar="NUMBER")
    ] = "0.95",
    include_scrubbed: Annotated[
        bool, typer.Option("--include-scrubbed", help="Also take questions from which personal data was removed.")
    ] = False,
    rows: Annotated[int, typer.Option(help="From the store: maximum rows of each kind, the newest.")] = 200_000,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Make cases from production queries, and print them as NDJSON for review. Judged queries come first."""
    from assay_evals.dataset.file_format import write_dataset
    from assay_evals.dataset.model import Dataset

    if limit < 1 or rows < 1:
        raise CommandError("--limit and --rows must be 1 or more")
    cosine = a_number(alike, "--alike")
    if cosine is None or not 0 < cosine <= 1:
        raise CommandError("--alike must be above 0 and at most 1")
    with ends_quietly():
        miner = (
            miner_of_files(files, project, include_scrubbed=include_scrubbed)
            if files
            else miner_of_store(data, since, project, rows, include_scrubbed=include_scrubbed)
        )
        mined, name = mine_cases(
            miner, limit, known=load(known, "--known") if known else None, alike=cosine, negative_only=negative
        )
        echo("\n".join(mined.in_words(name)), err=True)
        if not mined.cases:
            raise CommandError("nothing to mine: capture retrievals first, or widen --since, --project and --from")
        today = datetime.now(UTC).date().isoformat()
        dataset = Dataset(name="mined", version=today, created_at=today, cases=mined.cases)
        for line in write_dataset(dataset):
            echo(line)
