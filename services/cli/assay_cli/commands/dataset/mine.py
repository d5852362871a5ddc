"""`assay dataset mine`: golden cases out of production, for a person to review."""

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
    from assay_evals.dataset import Case


def mine(
    files: Annotated[
        list[Path] | None,
        typer.Option("--from", help="Rows of `assay export` of any kind, rather than the store; may be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Most cases.")] = 50,
    since: Annotated[str, typer.Option(help="From the store: only rows of this long back.")] = "30d",
    project: Annotated[str, typer.Option(help="Only this project's; empty for all.")] = "",
    known: Annotated[Path | None, typer.Option("--known", help="A dataset: what it holds already is left out.")] = None,
    negative: Annotated[
        bool, typer.Option("--negative", help="Only questions whose answers people found bad.")
    ] = False,
    alike: Annotated[
        str, typer.Option("--alike", help="Cosine from which on two questions count as one.", metavar="NUMBER")
    ] = "0.95",
    rows: Annotated[int, typer.Option(help="From the store: most rows of each kind, the newest.")] = 200_000,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Make cases of what was asked in production, and print them as NDJSON to review. Judged questions come first."""
    from assay_evals.dataset import Dataset, write_dataset

    if limit < 1 or rows < 1:
        raise CommandError("--limit and --rows are 1 or more")
    cosine = a_number(alike, "--alike")
    if cosine is None or not 0 < cosine <= 1:
        raise CommandError("--alike: above 0, at most 1")
    with ends_quietly():
        miner = miner_of_files(files, project) if files else miner_of_store(data, since, project, rows)
        mined, name = mine_cases(
            miner, limit, known=load(known, "--known") if known else None, alike=cosine, negative_only=negative
        )
        echo(
            f"{mined.rows:,} rows, {mined.questions:,} questions, {mined.alike:,} alike to others ({name}), "
            f"{mined.known:,} known already: {len(mined.cases):,} of {mined.pool:,} chosen",
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
    """What a person has to do with them; a null case holds that nothing should come back, which nobody said of these."""
    empty = sum(case.query_type == "null" for case in cases)
    also = f"; {empty:,} became null cases, since nothing was retrieved for them: take out what should find something"
    return f"all of them are unreviewed{also if empty else ''}"
