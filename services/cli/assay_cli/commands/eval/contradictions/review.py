"""`assay eval contradictions review`: findings, and people's labels of pairs."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.options import AsJson, DataDirectory
from assay_cli.output.terminal import asked, can_ask, echo, emit
from assay_operations.actor import local_actor
from assay_operations.clients import DEFAULT_DATA
from assay_operations.evaluations.contradiction_reads import ToLabel, findings, label_pair, queue
from assay_operations.time_bounds import moment_ms

_LABELS = {"y": "confirm", "n": "refute", "s": "skip"}


def review(
    since: Annotated[str, typer.Option(help="Seen since: a duration ago or an ISO 8601 time.")] = "90d",
    project: Annotated[str, typer.Option(help="Project of the runs.")] = "default",
    every: Annotated[
        bool, typer.Option("--all", help="Also show findings that are resolved, gone or refuted.")
    ] = False,
    confirm: Annotated[
        str | None, typer.Option(metavar="PAIR", help="Label a pair: its texts contradict each other.")
    ] = None,
    refute: Annotated[
        str | None, typer.Option(metavar="PAIR", help="Label a pair: its texts do not contradict.")
    ] = None,
    skip: Annotated[
        str | None,
        typer.Option(metavar="PAIR", help="Leave a pair of --queue undecided: the next one takes its place."),
    ] = None,
    note: Annotated[str, typer.Option(help="Why, stored with the label, scrubbed.")] = "",
    in_queue: Annotated[
        int | None,
        typer.Option(
            "--queue",
            min=1,
            help="Label this many pairs of the newest run, a random sample by verdict that shows no verdict.",
        ),
    ] = None,
    as_json: AsJson = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """List findings from high to info with both claims and a next step, or label pairs.

    Labels of --queue correct the rate for the judge's errors, in `trend`. Other labels only remove a finding from a refuted pair.
    """
    given = {
        name: pair for name, pair in (("confirm", confirm), ("refute", refute), ("skip", skip)) if pair is not None
    }
    if len(given) > 1:
        raise CommandError("--confirm, --refute or --skip: one label at a time")
    if skip is not None and in_queue is None:
        raise CommandError("--skip needs --queue")
    for label, pair in given.items():
        label_pair(data, project, pair, label, local_actor(), in_queue=in_queue, note=note)
        echo(f"{'skipped' if label == 'skip' else 'labelled'} {pair}")
        return
    if note:
        raise CommandError("--note needs --confirm or --refute")
    if in_queue is not None:
        _label(data, project, in_queue, as_json)
        return
    from assay_evals.contradictions.report import finding_lines

    found = findings(data, project, moment_ms(since, int(time.time() * 1000), "--since"), every=every)
    if as_json:
        emit(json.dumps({"schema_version": 1, "since": since, "findings": found}, ensure_ascii=False))
        return
    if not found:
        echo(f"no finding since {since}", err=True)
    for each in found:
        echo("\n".join([*finding_lines(each), f"  last seen {each['last_seen']}", ""]))


def _label(data: Path, project: str, count: int, as_json: bool) -> None:
    actor = local_actor()
    left = queue(data, project, count, actor.name)
    if as_json:
        emit(json.dumps([vars(each) for each in left], ensure_ascii=False))
        return
    if not left:
        echo("every pair of the queue is labelled; a larger --queue has more")
        return
    if not can_ask():
        raise CommandError("labelling needs a terminal; --json lists the pairs, and --confirm or --refute label one")
    while left:  # a skipped pair is replaced by another
        for number, each in enumerate(left, start=1):
            echo(_shown(each, number, len(left)))
            answer = ""
            while answer not in (*_LABELS, "q"):
                answer = asked("do the texts contradict each other? [y]es, [n]o, [s]kip, [q]uit", default="s")[:1]
            if answer == "q":
                return
            label_pair(data, project, each.pair_id, _LABELS[answer], actor, in_queue=count)
        left = queue(data, project, count, actor.name)


def _shown(pair: ToLabel, number: int, count: int) -> str:
    from assay_evals.contradictions.report import one_line

    lines = [f"{number} of {count}: {pair.pair_id}", f"question: {one_line(pair.query)}"]
    for document, text in zip(pair.documents, pair.texts, strict=True):
        lines += ["", one_line(document), text]
    return "\n".join([*lines, ""])
