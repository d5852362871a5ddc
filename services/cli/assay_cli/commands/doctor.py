"""`assay doctor`: health checks, with a fix for each problem."""

import dataclasses
import json
from typing import Annotated

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import DataDirectory
from assay_cli.output.terminal import emit, ends_quietly, printable
from assay_operations.clients import DEFAULT_DATA
from assay_operations.doctor.examine import examine
from assay_operations.doctor.finding import Finding, Status
from assay_ui.formats import counted


def doctor(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON list of check, status, summary and hint.")
    ] = False,
    data: DataDirectory = DEFAULT_DATA,
) -> None:
    """Check configuration, Redis, the store and this host.

    Exit code 1 if a check fails; warnings do not fail.
    """
    with ends_quietly():
        findings = examine(data)
        if as_json:
            emit(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=1))
        else:
            _print(findings)
        if any(finding.status is Status.FAIL for finding in findings):
            raise typer.Exit(FINDING)


_COLOURS = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    from assay_local.console import Console

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for overflow in ("ellipsis", "ellipsis", "fold"):  # the names in a hint are there to be copied
        table.add_column(overflow=overflow)
    for finding in findings:
        table.add_row(Text(finding.status, _COLOURS[finding.status]), finding.check, Text(printable(finding.summary)))
        if finding.hint:
            table.add_row("", "", Text(f"→ {printable(finding.hint)}", "dim"))
    console = Console()
    console.print(table)
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    console.print(f"{counts[Status.OK]} ok, {counted(counts[Status.WARN], 'warning')}, {counts[Status.FAIL]} failed")
