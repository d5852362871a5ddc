"""`assay judge label|agreement`: label judged answers, and compare two people's labels.

Labelling is blind: it shows the question, the passages and the answer, and no result of the judge. The sample depends on the seed alone,
so two people with the same seed label the same answers.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from assay_cli.errors import CommandError
from assay_cli.options import DataDirectory
from assay_cli.output.labels import people
from assay_cli.output.terminal import asked, can_ask, echo, emit, printable
from assay_operations.clients import DEFAULT_DATA, open_store, settings_for
from assay_operations.judging.labels import agreement_document, append, of_two, read_labels, sample
from assay_operations.time_bounds import moment_ms

#: Characters shown of a passage; the rest is counted. The answer is shown whole, because it is what is labelled.
PASSAGE_SHOWN = 2_000


def label(
    count: Annotated[int, typer.Option(min=1, help="Number of answers in the sample.")] = 100,
    project: Annotated[str, typer.Option("--project", help="Project of the answers.")] = "default",
    since: Annotated[str, typer.Option(help="Start of the period: a duration ago or an ISO 8601 time.")] = "30d",
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the sample; people with the same seed label the same answers.")
    ] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", help="NDJSON file of labels; answers that it contains are skipped.")
    ] = None,
    list_only: Annotated[
        bool, typer.Option("--list", help="Print the event_ids left to label, for another labelling tool.")
    ] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Label a random sample of judged answers in a terminal, without the results of the judge.

    Each label is written before the next answer is shown, so you can stop at any time. The file is for `assay judge calibrate`.
    """
    if output is None and not list_only:
        raise CommandError("no file for the labels: pass --output, for example --output alice.ndjson")
    done = read_labels(output) if output and output.exists() else {}
    if not list_only and not can_ask():
        raise CommandError("labelling needs a terminal; without one, --list prints the answers to label")
    with open_store(settings_for("sre", data).store) as store:
        since_ms = moment_ms(since, int(time.time() * 1000), "--since")
        rows = sample(store, project=project, since_ms=since_ms, seed=seed, count=count)
    if not rows:
        raise CommandError(
            f"no judged answer of project {project} since {since} is in the base stream; see assay judge status"
        )
    left = [row for row in rows if row["event_id"] not in done]
    if list_only:
        for row in left:
            emit(row["event_id"])
    if output is None or list_only:
        return
    labelled = 0
    for number, row in enumerate(left, start=len(rows) - len(left) + 1):
        echo(_as_text(row, number, len(rows)))
        answer = asked("[g]ood, [b]ad, [s]kip, [q]uit", default="s")[:1]
        if answer == "q":
            break
        if answer in ("g", "b"):
            append(output, row["event_id"], "good" if answer == "g" else "bad")
            labelled += 1
    echo(f"{labelled:,} labelled now, {len(done) + labelled:,} in {output}: assay judge calibrate --labels {output}")


def _as_text(row: Mapping[str, Any], number: int, of: int) -> str:
    lines = [f"\n{number} of {of}: {row['event_id']}", "asked:", f"  {_plain(row['query'])}", "passages:"]
    for position, context in enumerate(row["contexts"], start=1):
        name, text = (context["id"], context["text"]) if isinstance(context, Mapping) else (context[0], context[2])
        cut = f" [{len(text) - PASSAGE_SHOWN:,} more characters]" if len(text) > PASSAGE_SHOWN else ""
        lines.append(f"  {position} ({printable(name)}): {_plain(text[:PASSAGE_SHOWN])}{cut}")
    return "\n".join([*lines, "answer:", f"  {_plain(row['answer'])}", ""])


def _plain(text: str) -> str:
    return printable(" ".join(text.split()))


def agreement(
    first: Annotated[Path, typer.Argument(help="Labels of one person: NDJSON or CSV with event_id and label.")],
    second: Annotated[Path, typer.Argument(help="Labels of a second person for the same answers.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the answers they differ on.")] = False,
) -> None:
    """Measure how far two people agree, which limits how far any judge can agree with people."""
    one, other = read_labels(first), read_labels(second)
    table, document = of_two(one, other), agreement_document(one, other)
    differ = document["differ"]
    if as_json:
        emit(orjson.dumps(document).decode())
        return
    lines = [
        f"{table.n:,} answers that both labelled ({len(one):,} and {len(other):,} labels)",
        "",
        "                second: good   second: bad",
        f"first: good     {table.true_positives:12d}   {table.false_negatives:11d}",
        f"first: bad      {table.false_positives:12d}   {table.true_negatives:11d}",
        "",
        people(table),
        *(f"they differ on {name}" for name in differ[:20]),
        *([f"... and {len(differ) - 20:,} more"] if len(differ) > 20 else []),
    ]
    echo("\n".join(lines))
