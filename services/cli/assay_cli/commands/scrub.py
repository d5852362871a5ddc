"""`assay scrub`: stdin to stdout without personal data."""

import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING
from assay_cli.output.terminal import data_output, echo, ends_quietly
from assay_operations.scrub import policies

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber

#: Complaints shown one by one; the rest is counted.
_COMPLAINTS_SHOWN = 100


class Input(StrEnum):
    """What stdin is."""

    AUTO = "auto"
    TEXT = "text"
    NDJSON = "ndjson"


def scrub(
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Policy file; default: scrubber.policy_file, if it is set.")
    ] = None,
    project: Annotated[str, typer.Option(help="Scrub as this project's policy says.")] = "default",
    form: Annotated[
        Input, typer.Option("--format", help="What stdin is; auto: NDJSON if its first line is a JSON object or list.")
    ] = Input.AUTO,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Instead of the text, one JSON object for each finding: where, never what."),
    ] = False,
    ner: Annotated[
        bool, typer.Option("--ner", help="Also remove names of people and places, slowly; needs assay-scrubber\\[ner].")
    ] = False,
    vendor_keys: Annotated[
        bool,
        typer.Option(
            "--vendor-keys", help="Also look for keys of some 400 more vendors; needs assay-scrubber\\[kingfisher]."
        ),
    ] = False,
) -> None:
    """Remove personal data and secrets from stdin. Lines that cannot be scrubbed are left out, and counted: exit code 1."""
    from assay_scrubber import stream as scrub_stream

    with ends_quietly():
        scrubber = _scrubber(policy, project, ner=ner, vendor_keys=vendor_keys)
        complaints, out = _Complaints(), data_output()
        source, ndjson = _source(sys.stdin.buffer, form)
        lines = scrub_stream.numbered(source, complaints)
        if explain:
            from assay_scrubber.explain import Explaining

            explaining = scrub_stream.explain_ndjson if ndjson else scrub_stream.explain_text
            explained = explaining(Explaining(scrubber), lines, complaints)
            for row in explained:
                out.write(json.dumps(row).encode() + b"\n")
        else:
            for data in (scrub_stream.scrub_ndjson if ndjson else scrub_stream.scrub_text)(scrubber, lines, complaints):
                out.write(data)
        out.flush()
        if complaints.count:
            complaints.sum_up()
            raise typer.Exit(FINDING)


class _Complaints:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, line: int, problem: str) -> None:
        self.count += 1
        if self.count <= _COMPLAINTS_SHOWN:
            echo(f"assay: line {line}: {problem}", err=True)

    def sum_up(self) -> None:
        if self.count > _COMPLAINTS_SHOWN:
            echo(f"assay: and {self.count - _COMPLAINTS_SHOWN} more", err=True)


def _source(stdin: BinaryIO, form: Input) -> tuple[Iterator[bytes], bool]:
    """The lines of stdin, long ones in pieces, and whether they are NDJSON. Raises CommandError for what is no text."""
    from assay_scrubber.stream import LINE_MAX_BYTES, looks_like_ndjson

    lines = iter(lambda: stdin.readline(LINE_MAX_BYTES), b"")
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if b"\0" in line:
            raise CommandError("stdin holds NUL bytes: it is not UTF-8 text; convert it first, such as with iconv")
        if line.strip() or len(head) >= 1_000:
            break
    ndjson = form is Input.NDJSON or (form is Input.AUTO and bool(head) and looks_like_ndjson(head[-1]))
    return chain(head, lines), ndjson


def _scrubber(file: Path | None, project: str, *, ner: bool, vendor_keys: bool) -> "Scrubber":
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.names import NamesError, NamesScrubber
    from assay_scrubber.vendor_keys import VendorKeysError, catalogue

    found = policies(file)
    try:
        policy = (found.asking(catalogue()) if vendor_keys else found).of(project)
        return NamesScrubber(policy) if ner else Scrubber(policy)
    except (NamesError, VendorKeysError) as error:
        raise CommandError(str(error)) from None
