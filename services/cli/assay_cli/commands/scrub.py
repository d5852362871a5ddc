"""`assay scrub`: copy stdin to stdout without personal data."""

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
from assay_cli.output.terminal import closed_stream, data_output, echo, ends_quietly
from assay_operations.scrub import policies

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber

#: Complaints that are printed; the rest is counted.
_COMPLAINTS_SHOWN = 100


class Input(StrEnum):
    """Format of stdin."""

    AUTO = "auto"
    TEXT = "text"
    NDJSON = "ndjson"


def scrub(
    files: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="< FILE", show_default=False)] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Policy file; default: scrubber.policy_file, if set.")
    ] = None,
    project: Annotated[str, typer.Option(help="Project whose policy applies.")] = "default",
    form: Annotated[
        Input,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="Format of stdin; auto: NDJSON with lines of text between if the first line is a JSON object or list, else text.",
        ),
    ] = Input.AUTO,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Print one JSON object per finding instead of the text: its position, never its content."
        ),
    ] = False,
    ner: Annotated[
        bool, typer.Option("--ner", help="Also remove names of people and places; slow, needs assay-scrubber\\[ner].")
    ] = False,
    vendor_keys: Annotated[
        bool,
        typer.Option(
            "--vendor-keys", help="Also detect keys of some 400 more vendors; needs assay-scrubber\\[kingfisher]."
        ),
    ] = False,
) -> None:
    """Remove personal data and secrets from stdin.

    Lines that cannot be scrubbed are omitted and counted; exit code 1 if there are any.
    """
    from assay_scrubber import stream as scrub_stream

    if files:
        raise CommandError("assay scrub reads stdin and takes no file names: assay scrub < FILE")
    if closed := closed_stream():
        raise CommandError(f"{closed} is closed; usage: assay scrub < FILE > CLEAN")
    with ends_quietly():
        scrubber = _scrubber(policy, project, ner=ner, vendor_keys=vendor_keys)
        complaints, out = _Complaints(), data_output()
        source, detected = _source(sys.stdin.buffer, form)
        lines = scrub_stream.without_utf16(scrub_stream.numbered(source, complaints), complaints)
        if explain:
            from assay_scrubber.explain import Explaining

            explaining = {
                Input.TEXT: scrub_stream.explain_text,
                Input.NDJSON: scrub_stream.explain_ndjson,
                Input.AUTO: scrub_stream.explain_mixed,
            }[detected]
            for row in explaining(Explaining(scrubber), lines, complaints):
                out.write(json.dumps(row).encode() + b"\n")
        else:
            for data in _scrubbed(scrubber, detected, lines, complaints):
                out.write(data)
        out.flush()
        if complaints.count:
            complaints.sum_up()
            raise typer.Exit(FINDING)


def _scrubbed(
    scrubber: "Scrubber", form: Input, lines: Iterator[tuple[int, bytes]], complaints: "_Complaints"
) -> Iterator[bytes]:
    from assay_scrubber import stream as scrub_stream

    if form is Input.NDJSON:
        return scrub_stream.scrub_ndjson(scrubber, lines, complaints)
    scrubbing = scrub_stream.scrub_text if form is Input.TEXT else scrub_stream.scrub_mixed
    return scrubbing(scrubber, lines, complaints, complaints.warn)


class _Complaints:
    def __init__(self) -> None:
        self.count = 0
        self._hinted = False
        self._warned = False

    def __call__(self, line: int, problem: str) -> None:
        self.count += 1
        if self.count <= _COMPLAINTS_SHOWN:
            echo(f"assay: line {line}: {problem}", err=True)
        if problem.startswith("not JSON") and not self._hinted:
            self._hinted = True
            echo("assay: to scrub such lines as text: --format text", err=True)

    def warn(self, line: int, what: str) -> None:
        """Print a warning, but only the first; the exit code stays 0."""
        if not self._warned:
            self._warned = True
            echo(f"assay: warning: line {line} {what}", err=True)

    def sum_up(self) -> None:
        if self.count > _COMPLAINTS_SHOWN:
            echo(f"assay: and {self.count - _COMPLAINTS_SHOWN} more", err=True)


def _source(stdin: BinaryIO, form: Input) -> tuple[Iterator[bytes], Input]:
    """Return the lines of stdin, long ones in pieces, and their format: AUTO for NDJSON with text between.

    Raises `CommandError` for UTF-16.
    """
    from assay_scrubber.stream import LINE_MAX_BYTES, is_utf16, looks_like_ndjson

    lines = iter(lambda: stdin.readline(LINE_MAX_BYTES), b"")
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if is_utf16(line):
            raise CommandError("stdin is UTF-16 or UTF-32, not UTF-8 text; convert it first, for example with iconv")
        if line.strip() or len(head) >= 1_000:
            break
    if form is Input.AUTO and not (head and looks_like_ndjson(head[-1])):
        form = Input.TEXT
    return chain(head, lines), form


def _scrubber(file: Path | None, project: str, *, ner: bool, vendor_keys: bool) -> "Scrubber":
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.ner import NamesError, NamesScrubber
    from assay_scrubber.vendor_keys import VendorKeysError, catalogue

    chosen = policies(file)
    if project not in ("default", *chosen.projects):
        others = f"; its projects: {', '.join(sorted(chosen.projects))}" if chosen.projects else ""
        echo(
            f"assay: warning: the policy has no section for project {project!r}, so the default rules apply{others}",
            err=True,
        )
    try:
        policy = (chosen.asking(catalogue()) if vendor_keys else chosen).of(project)
        return NamesScrubber(policy) if ner else Scrubber(policy)
    except (NamesError, VendorKeysError) as error:
        raise CommandError(str(error)) from None
