"""`assay scrub`: stdin to stdout without personal data. `assay pii`: what is looked for, and whether a policy file is right."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from assay_cli.errors import FINDING, CommandError
from assay_cli.terminal import closed_stream, data_output, echo, ends_quietly

if TYPE_CHECKING:
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.policy_file import PolicySet

#: Complaints shown one by one; the rest is counted.
_COMPLAINTS_SHOWN = 100


class Input(StrEnum):
    """What stdin is."""

    AUTO = "auto"
    TEXT = "text"
    NDJSON = "ndjson"


def scrub(
    files: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="< FILE", show_default=False)] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Policy file; default: scrubber.policy_file, if it is set.")
    ] = None,
    project: Annotated[str, typer.Option(help="Scrub as this project's policy says.")] = "default",
    form: Annotated[
        Input,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="What stdin is; auto: if its first line is a JSON object or list, NDJSON with lines of text between.",
        ),
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
    from assay_cli import scrub_stream

    if files:
        raise CommandError("assay scrub reads stdin and takes no file names: assay scrub < FILE")
    if closed := closed_stream():
        raise CommandError(f"{closed} is closed: run assay scrub < FILE > CLEAN")
    with ends_quietly():
        scrubber = _scrubber(policy, project, ner=ner, vendor_keys=vendor_keys)
        complaints, out = _Complaints(), data_output()
        source, found = _source(sys.stdin.buffer, form)
        lines = scrub_stream.without_utf16(scrub_stream.numbered(source, complaints), complaints)
        if explain:
            from assay_scrubber.explain import Explaining

            explaining = {
                Input.TEXT: scrub_stream.explain_text,
                Input.NDJSON: scrub_stream.explain_ndjson,
                Input.AUTO: scrub_stream.explain_mixed,
            }[found]
            for row in explaining(Explaining(scrubber), lines, complaints):
                out.write(json.dumps(row).encode() + b"\n")
        else:
            for data in _scrubbed(scrubber, found, lines, complaints):
                out.write(data)
        out.flush()
        if complaints.count:
            complaints.sum_up()
            raise typer.Exit(FINDING)


def _scrubbed(
    scrubber: "Scrubber", form: Input, lines: Iterator[tuple[int, bytes]], complaints: "_Complaints"
) -> Iterator[bytes]:
    from assay_cli import scrub_stream

    if form is Input.NDJSON:
        return scrub_stream.scrub_ndjson(scrubber, lines, complaints)
    scrubbing = scrub_stream.scrub_text if form is Input.TEXT else scrub_stream.scrub_mixed
    return scrubbing(scrubber, lines, complaints, complaints.warn)


class _Complaints:
    def __init__(self) -> None:
        self.count = 0
        self._hinted, self._warned = False, False

    def __call__(self, line: int, problem: str) -> None:
        self.count += 1
        if self.count <= _COMPLAINTS_SHOWN:
            echo(f"assay: line {line}: {problem}", err=True)
        if problem.startswith("not JSON") and not self._hinted:
            self._hinted = True
            echo("assay: to scrub such lines as text: --format text", err=True)

    def warn(self, line: int, what: str) -> None:
        """Once, and the exit code stays 0."""
        if not self._warned:
            self._warned = True
            echo(f"assay: warning: line {line} {what}", err=True)

    def sum_up(self) -> None:
        if self.count > _COMPLAINTS_SHOWN:
            echo(f"assay: and {self.count - _COMPLAINTS_SHOWN} more", err=True)


def _source(stdin: BinaryIO, form: Input) -> tuple[Iterator[bytes], Input]:
    """The lines of stdin, long ones in pieces, and what they are: AUTO for NDJSON with text between. Raises CommandError for UTF-16."""
    from assay_cli.scrub_stream import LINE_MAX_BYTES, is_utf16, looks_like_ndjson

    lines = iter(lambda: stdin.readline(LINE_MAX_BYTES), b"")
    head: list[bytes] = []
    for line in lines:
        head.append(line)
        if is_utf16(line):
            raise CommandError("stdin is UTF-16 or UTF-32, not UTF-8 text; convert it first, such as with iconv")
        if line.strip() or len(head) >= 1_000:
            break
    if form is Input.AUTO and not (head and looks_like_ndjson(head[-1])):
        form = Input.TEXT
    return chain(head, lines), form


def _scrubber(file: Path | None, project: str, *, ner: bool, vendor_keys: bool) -> "Scrubber":
    from assay_scrubber.engine import Scrubber
    from assay_scrubber.names import NamesError, NamesScrubber
    from assay_scrubber.vendor_keys import VendorKeysError, catalogue

    found = policies(file)
    if project not in ("default", *found.projects):
        others = f"; it does of: {', '.join(sorted(found.projects))}" if found.projects else ""
        echo(
            f"assay: warning: the policy says nothing of project {project!r}, so the rules for all count{others}",
            err=True,
        )
    try:
        policy = (found.asking(catalogue()) if vendor_keys else found).of(project)
        return NamesScrubber(policy) if ner else Scrubber(policy)
    except (NamesError, VendorKeysError) as error:
        raise CommandError(str(error)) from None


def policies(file: Path | None) -> "PolicySet":
    """The policies of `file`, or of the settings' own. Raises CommandError."""
    from assay_runtime.config import load_settings
    from assay_scrubber.policies import read_policies
    from assay_scrubber.policy import PolicyError

    settings = load_settings().scrubber
    if file is not None:
        settings = settings.model_copy(update={"policy_file": file})
    try:
        return read_policies(settings)
    except FileNotFoundError:
        raise CommandError(f"{settings.policy_file}: there is no such file") from None
    except OSError as error:
        raise CommandError(f"{settings.policy_file}: cannot be read ({error.strerror})") from None
    except PolicyError as error:
        raise CommandError(f"{settings.policy_file or 'scrubber'}: {error}") from None


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
    except CommandError as error:
        echo(f"assay: {error}", err=True)
        raise typer.Exit(FINDING) from None
    with contextlib.suppress(BrokenPipeError):
        for name, policy in (("every other project", found.default), *sorted(found.projects.items())):
            said = ", ".join(f"{family} {action}" for family, action in sorted(policy.actions.items()))
            slugs = "; slugs too" if policy.scrub_slugs else ""
            keys = f"; keys: {', '.join(sorted(policy.scrub_keys))}" if policy.scrub_keys else ""
            echo(f"{policy.fingerprint}  {name}: {said or 'all redact'}{slugs}{keys}")
