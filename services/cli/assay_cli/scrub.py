"""`assay scrub`: stdin to stdout without personal data. `assay pii`: what is looked for, and whether a policy file is right."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from assay_cli.errors import FINDING, CommandError
from assay_cli.terminal import data_output, echo, ends_quietly
from assay_operations.errors import OperationError
from assay_operations.scrub import policies, scrubber_of

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
        scrubber = scrubber_of(policy, project, ner=ner, vendor_keys=vendor_keys)
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


pii = typer.Typer(no_args_is_help=True, help="What is looked for, and whether a policy file is right.")
policy_commands = typer.Typer(no_args_is_help=True, help="Policy files.")
pii.add_typer(policy_commands, name="policy")


@pii.command("families")
def families(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    file: Annotated[Path | None, typer.Option("--policy", metavar="FILE", help="With this policy's actions.")] = None,
    project: Annotated[str, typer.Option(help="As for this project.")] = "default",
) -> None:
    """List the families of personal data: name, category, what happens to it, what it is."""
    from assay_scrubber.registry import SCRUB_KEY

    policy = policies(file).of(project)
    rows = [
        {
            "family": family.name,
            "category": str(family.category),
            "action": str(policy.action(family.name)),
            "description": family.description,
        }
        for family in (*policy.members(), *((SCRUB_KEY,) if policy.scrub_keys else ()))
    ]
    with ends_quietly():
        if as_json:
            _each(rows, lambda row: json.dumps(row, ensure_ascii=False))
            return
        widths = {key: max(len(key), *(len(row[key]) for row in rows)) for key in ("family", "category", "action")}
        heads = {key: key for key in rows[0]}
        _each([heads, *rows], lambda row: "  ".join(row[key].ljust(widths.get(key, 0)) for key in row).rstrip())


def _each(rows: list[dict[str, str]], line: Callable[[dict[str, str]], str]) -> None:
    for row in rows:
        echo(line(row))


@policy_commands.command("check")
def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="The policy file.")]) -> None:
    """Read a policy file as the scrubber would: exit code 0 and what it says, or 1 and what is wrong."""
    try:
        found = policies(file)
    except OperationError as error:
        echo(f"assay: {error}", err=True)
        raise typer.Exit(FINDING) from None
    with contextlib.suppress(BrokenPipeError):
        for name, policy in (("every other project", found.default), *sorted(found.projects.items())):
            said = ", ".join(f"{family} {action}" for family, action in sorted(policy.actions.items()))
            slugs = "; slugs too" if policy.scrub_slugs else ""
            keys = f"; keys: {', '.join(sorted(policy.scrub_keys))}" if policy.scrub_keys else ""
            echo(f"{policy.fingerprint}  {name}: {said or 'all redact'}{slugs}{keys}")
