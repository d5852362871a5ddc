"""`assay dataset import|review|release`: cases that come from elsewhere, who looked at them, and what each version changed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import DatasetFile
from assay_cli.output.terminal import asked, can_ask, echo, emit, printable
from assay_operations.evaluations.datasets import load
from assay_operations.evaluations.import_dataset import Form, imported

if TYPE_CHECKING:
    from assay_evals.dataset import Case


def import_dataset(
    form: Annotated[
        Form,
        typer.Argument(
            help="trec: a file of judgements. beir: a folder with queries.jsonl and qrels/. csv: a table. qrels: a gate's questions."
        ),
    ],
    source: Annotated[Path, typer.Argument(help="The file, or for beir the folder.")],
    queries: Annotated[
        Path | None, typer.Option(help='trec: the questions, as qid<TAB>question or {"_id", "text"} lines.')
    ] = None,
    split: Annotated[str, typer.Option(help="beir: which judgements, qrels/SPLIT.tsv.")] = "test",
    name: Annotated[str | None, typer.Option(help="The dataset's name; default: the file's.")] = None,
) -> None:
    """Make a dataset of what other programs write, and print it as NDJSON. What is left out is told on stderr."""
    from assay_evals.dataset import write_dataset

    if (queries is None) == (form is Form.TREC):
        raise CommandError(
            "--queries: trec needs the file with the questions" if queries is None else "--queries: is for trec"
        )
    made = imported(form, source, queries, split, name or source.resolve().stem, tell=lambda text: echo(text, err=True))
    for line in write_dataset(made):
        emit(line)
    echo(f"{len(made.cases):,} cases", err=True)


def review(
    file: DatasetFile,
    keep: Annotated[list[str] | None, typer.Option(metavar="ID", help="A case that is right as it stands.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="ID", help="A case to take away.")] = None,
    share: Annotated[
        float, typer.Option(help="Ask about this share of them, drawn at random.", min=0.0, max=1.0)
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the draw.", min=0)] = 0,
) -> None:
    """Look at cases that were mined or written by a model: in a terminal one after the other, else with --keep and --drop.

    Prints the dataset afterwards as NDJSON; the file stays as it is. Without an answer, which cases are unreviewed is told on stderr.
    """
    from assay_evals.dataset import DatasetError, write_dataset
    from assay_evals.reviewing import reviewed, unreviewed

    before = load(file)
    kept, dropped = list(keep or ()), list(drop or ())
    left = unreviewed(before, share=share, seed=seed)
    if not kept and not dropped:
        if not can_ask():
            for case in left:
                echo(f"unreviewed: {case.id}", err=True)
            echo(
                f"{len(left):,} of {len(before.cases):,} cases; say --keep ID or --drop ID, or answer in a terminal",
                err=True,
            )
        else:
            kept, dropped = _ask(left)
    try:
        after = reviewed(before, kept=kept, dropped=dropped)
    except DatasetError as error:
        raise CommandError(f"{file}: {error.problems[0]}") from None
    for line in write_dataset(after):
        emit(line)
    echo(f"{len(kept):,} kept, {len(dropped):,} dropped, {len(unreviewed(after)):,} unreviewed", err=True)


def _ask(cases: "list[Case]") -> tuple[list[str], list[str]]:
    kept: list[str] = []
    dropped: list[str] = []
    for number, case in enumerate(cases, start=1):
        echo(f"\n{number} of {len(cases)}: {case.id} ({case.query_type})\n  asked:    {case.query}", err=True)
        echo(f"  expected: {', '.join(case.relevance) or 'nothing'}", err=True)
        if case.expected_answer:
            echo(f"  answer:   {case.expected_answer}", err=True)
        if case.notes:
            echo(f"  notes:    {case.notes}", err=True)
        said = asked("[k]eep, [d]rop, [l]ater, [q]uit", default="l")[:1]
        if said == "q":
            break
        if said in ("k", "d"):
            (kept if said == "k" else dropped).append(case.id)
    return kept, dropped


def release(
    old: DatasetFile,
    new: DatasetFile,
    version: Annotated[str, typer.Option(help="The new version, such as 1.1.0.")],
    note: Annotated[str, typer.Option(help="Why, in a sentence; it stands in the changelog.")],
) -> None:
    """Print NEW as a version of its own, whose changelog names the cases that came, went or changed since OLD."""
    from assay_evals.dataset import DatasetError, write_dataset
    from assay_evals.reviewing import released

    at = datetime.now(UTC).strftime("%Y-%m-%d")
    try:
        made = released(load(old), load(new), version=version, note=note, at=at)
    except DatasetError as error:
        raise CommandError(error.problems[0]) from None
    for line in write_dataset(made):
        emit(line)
    change = made.changelog[0]
    counts = f"{len(change.added)} added, {len(change.removed)} removed, {len(change.changed)} changed"
    echo(printable(f"version {version}: {counts}"), err=True)
