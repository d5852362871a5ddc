"""`assay dataset import|review|release`: import cases, review them, release a version."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import DatasetFile
from assay_cli.output.terminal import asked, can_ask, echo, emit_dataset, printable
from assay_operations.evaluations.datasets import load, refused_as_an_operation
from assay_operations.evaluations.import_dataset import Form, imported

if TYPE_CHECKING:
    from assay_evals.dataset.model import Case


def import_dataset(
    form: Annotated[
        Form,
        typer.Argument(
            help="trec: a judgement file. beir: a folder with queries.jsonl and qrels/. csv: a table. qrels: the queries of a gate."
        ),
    ],
    source: Annotated[Path, typer.Argument(help="File, or for beir the folder.")],
    queries: Annotated[
        Path | None, typer.Option(help='trec: file of queries, as qid<TAB>query or {"_id", "text"} lines.')
    ] = None,
    split: Annotated[str, typer.Option(help="beir: split of the judgements, qrels/SPLIT.tsv.")] = "test",
    name: Annotated[str | None, typer.Option(help="Name of the dataset; default: the name of the file.")] = None,
) -> None:
    """Import a dataset from another format, and print it as NDJSON. Omitted cases are reported on stderr."""
    if (queries is None) == (form is Form.TREC):
        raise CommandError(
            "trec needs the file of queries: pass --queries" if queries is None else "--queries is only for trec"
        )
    made = imported(form, source, queries, split, name or source.resolve().stem, tell=lambda text: echo(text, err=True))
    emit_dataset(made)
    echo(f"{len(made.cases):,} cases", err=True)


def review(
    file: DatasetFile,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Case to keep, now reviewed; repeatable.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="ID", help="Case to remove; repeatable.")] = None,
    share: Annotated[
        float,
        typer.Option(help="Share of the unreviewed cases to review, sampled at random, 0 to 1.", min=0.0, max=1.0),
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.", min=0)] = 0,
) -> None:
    """Review mined and generated cases: one by one in a terminal, else with --keep and --drop.

    Prints the reviewed dataset as NDJSON; the file is not changed. Without a decision, unreviewed cases are listed on stderr.
    """
    from assay_evals.dataset.review import reviewed, unreviewed

    before = load(file)
    kept, dropped = list(keep or ()), list(drop or ())
    left = unreviewed(before, share=share, seed=seed)
    if not kept and not dropped:
        if not can_ask():
            for case in left:
                echo(f"unreviewed: {case.id}", err=True)
            echo(
                f"{len(left):,} of {len(before.cases):,} cases; pass --keep ID or --drop ID, or run it in a terminal",
                err=True,
            )
        else:
            kept, dropped = _ask(left)
    with refused_as_an_operation(f"{file}: "):
        after = reviewed(before, kept=kept, dropped=dropped)
    emit_dataset(after)
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
        decision = asked("[k]eep, [d]rop, [l]ater, [q]uit", default="l")[:1]
        if decision == "q":
            break
        if decision in ("k", "d"):
            (kept if decision == "k" else dropped).append(case.id)
    return kept, dropped


def release(
    old: DatasetFile,
    new: DatasetFile,
    version: Annotated[str, typer.Option(help="New version, for example 1.1.0.")],
    note: Annotated[str, typer.Option(help="Reason for the change, in one sentence, for the changelog.")],
) -> None:
    """Release NEW under a version, with a changelog of the cases added, removed or changed since OLD.

    Prints NDJSON.
    """
    from assay_evals.dataset.review import released

    at = datetime.now(UTC).strftime("%Y-%m-%d")
    with refused_as_an_operation():
        made = released(load(old), load(new), version=version, note=note, at=at)
    emit_dataset(made)
    change = made.changelog[0]
    counts = f"{len(change.added)} added, {len(change.removed)} removed, {len(change.changed)} changed"
    echo(printable(f"version {version}: {counts}"), err=True)
