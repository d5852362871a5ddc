"""`assay dataset mine`: golden cases from production, to be reviewed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import DataDirectory
from assay_cli.output.terminal import echo, ends_quietly
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.mine import mine as mine_cases
from assay_operations.evaluations.mine import miner_of_files, miner_of_store
from assay_operations.numbers import a_number

if TYPE_CHECKING:
    from assay_evals.dataset.model import Case


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
        miner = miner_of_files(files, project) if files else miner_of_store(data, since, project, rows)
        mined, name = mine_cases(
            miner, limit, known=load(known, "--known") if known else None, alike=cosine, negative_only=negative
        )
        echo(
            f"{mined.rows:,} rows, {mined.questions:,} questions, {mined.alike:,} similar to others ({name}), "
            f"{mined.known:,} already known: {len(mined.cases):,} of {mined.pool:,} chosen",
            err=True,
        )
        if not mined.cases:
            raise CommandError("nothing to mine: capture retrievals first, or widen --since, --project and --from")
        echo(_to_review(mined.cases), err=True)
        today = datetime.now(UTC).date().isoformat()
        dataset = Dataset(name="mined", version=today, created_at=today, cases=mined.cases)
        for line in write_dataset(dataset):
            echo(line)


def _to_review(cases: "list[Case]") -> str:
    """Return the note for the reviewer. A null case asserts that nothing is relevant, which nothing has confirmed for these."""
    empty = sum(case.query_type == "null" for case in cases)
    also = f"; {empty:,} became null cases, since nothing was retrieved for them: remove those that should have results"
    return f"all of them are unreviewed{also if empty else ''}"
