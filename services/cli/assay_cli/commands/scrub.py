"""`assay scrub`: copy stdin to stdout without personal data."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.errors import CommandError
from assay_cli.exit_codes import FINDING
from assay_cli.output.terminal import closed_stream, data_output, echo, ends_quietly
from assay_operations.scrub_stream import Input, ScrubRequest, explained, scrubbed, scrubber_of

#: Complaints that are printed; the rest is counted.
_COMPLAINTS_SHOWN = 100


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
    if files:
        raise CommandError("assay scrub reads stdin and takes no file names: assay scrub < FILE")
    if closed := closed_stream():
        raise CommandError(f"{closed} is closed; usage: assay scrub < FILE > CLEAN")
    with ends_quietly():
        request = ScrubRequest(policy, project, form, ner=ner, vendor_keys=vendor_keys)
        scrubber, complaints, out = scrubber_of(request, _warn), _Complaints(), data_output()
        if explain:
            pieces = explained(sys.stdin.buffer, scrubber, form, complaints)
        else:
            pieces = scrubbed(sys.stdin.buffer, scrubber, form, complaints, complaints.warn)
        for data in pieces:
            out.write(data)
        out.flush()
        if complaints.count:
            complaints.sum_up()
            raise typer.Exit(FINDING)


def _warn(text: str) -> None:
    echo(f"assay: warning: {text}", err=True)


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
