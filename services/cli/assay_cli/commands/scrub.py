"""`assay scrub`: stdin to stdout without personal data."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.output.terminal import data_output, echo, ends_quietly
from assay_operations.scrub import Input, scrubbed, scrubber_of

#: Complaints shown one by one; the rest is counted.
_COMPLAINTS_SHOWN = 100


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
    with ends_quietly():
        scrubber = scrubber_of(policy, project, ner=ner, vendor_keys=vendor_keys)
        complaints, out = _Complaints(), data_output()
        for data in scrubbed(sys.stdin.buffer, scrubber, form, complaints, explain=explain):
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
