"""`assay judge label|agreement`: label judged answers or sessions, and compare two people's labels.

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
from assay_operations.judging.labels import (
    agreement_document,
    append,
    of_two,
    read_labels,
    sample,
    sample_sessions,
    session_of,
)
from assay_operations.sessions.listing import lines
from assay_operations.time_bounds import moment_ms

#: Characters shown of a passage, or of a result of a tool call; the rest is counted. Answers and turns are shown whole: they are labelled.
PASSAGE_SHOWN = 2_000


def label(
    count: Annotated[int, typer.Option(min=1, help="Number of answers or sessions in the sample.")] = 100,
    project: Annotated[str, typer.Option("--project", help="Project of the answers or sessions.")] = "default",
    since: Annotated[str, typer.Option(help="Start of the period: a duration ago or an ISO 8601 time.")] = "30d",
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the sample; people with the same seed label the same ones.")
    ] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", help="NDJSON file of labels; those that it contains are skipped.")
    ] = None,
    list_only: Annotated[
        bool,
        typer.Option(
            "--list", help="Print the event_ids left to label, for another labelling tool; for sessions also their ids."
        ),
    ] = False,
    of_sessions: Annotated[bool, typer.Option("--sessions", help="Label judged sessions instead of answers.")] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Label a random sample of judged answers or sessions in a terminal.

    The results of the judge are not shown. Each label is written before the next one is shown, so you can stop at any time. The file is
    for `assay judge calibrate`.
    """
    if output is None and not list_only:
        raise CommandError("no file for the labels: pass --output, for example --output alice.ndjson")
    done = read_labels(output) if output and output.exists() else {}
    if not list_only and not can_ask():
        raise CommandError("labelling needs a terminal; without one, --list prints what to label")
    settings = settings_for("sre", data).store
    with open_store(settings) as store:
        since_ms = moment_ms(since, int(time.time() * 1000), "--since")
        rows = (sample_sessions if of_sessions else sample)(
            store, project=project, since_ms=since_ms, seed=seed, count=count
        )
    if not rows:
        thing = "session" if of_sessions else "answer"
        raise CommandError(
            f"no judged {thing} of project {project} since {since} is in the base stream; see assay judge status"
        )
    left = [row for row in rows if row["event_id"] not in done]
    if list_only:
        for row in left:
            emit(row["event_id"] + (f"\t{row['session_id']}" if of_sessions else ""))
    if output is None or list_only:
        return
    labelled = 0
    for number, row in enumerate(left, start=len(rows) - len(left) + 1):
        echo(f"\n{number} of {len(rows)}: {row['event_id']}")
        echo(_session_text(session_of(settings, row)) if of_sessions else _answer_text(row))
        answer = asked("[g]ood, [b]ad, [s]kip, [q]uit", default="s")[:1]
        if answer == "q":
            break
        if answer in ("g", "b"):
            append(output, row["event_id"], "good" if answer == "g" else "bad")
            labelled += 1
    about = " --metric rubric_score" if of_sessions else ""
    echo(
        f"{labelled:,} labelled now, {len(done) + labelled:,} in {output}: assay judge calibrate --labels {output}{about}"
    )


def _session_text(document: dict[str, Any]) -> str:
    shown: list[str] = []
    for line in lines(document):
        shown.append(f"{line.who}: {_plain(line.text)}")
        if line.detail:
            shown.append(f"  {_start(line.detail)}")
    return "\n".join([*shown, ""])


def _start(text: str) -> str:
    cut = f" [{len(text) - PASSAGE_SHOWN:,} more characters]" if len(text) > PASSAGE_SHOWN else ""
    return _plain(text[:PASSAGE_SHOWN]) + cut


def _answer_text(row: Mapping[str, Any]) -> str:
    shown = ["asked:", f"  {_plain(row['query'])}", "passages:"]
    for position, context in enumerate(row["contexts"], start=1):
        name, text = (context["id"], context["text"]) if isinstance(context, Mapping) else (context[0], context[2])
        shown.append(f"  {position} ({printable(name)}): {_start(text)}")
    return "\n".join([*shown, "answer:", f"  {_plain(row['answer'])}", ""])


def _plain(text: str) -> str:
    return printable(" ".join(text.split()))


def agreement(
    first: Annotated[Path, typer.Argument(help="Labels of one person: NDJSON or CSV with event_id and label.")],
    second: Annotated[Path, typer.Argument(help="Labels of a second person for the same sample.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with those they differ on.")] = False,
) -> None:
    """Measure how far two people agree, which limits how far any judge can agree with people."""
    one, other = read_labels(first), read_labels(second)
    table, document = of_two(one, other), agreement_document(one, other)
    differ = document["differ"]
    if as_json:
        emit(orjson.dumps(document).decode())
        return
    lines = [
        f"{table.n:,} answers or sessions that both labelled ({len(one):,} and {len(other):,} labels)",
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
