"""`assay pii`: families of personal data, and a check of policy files."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from assay_cli.exit_codes import FINDING
from assay_cli.options import AsJsonLines
from assay_cli.output.rows import show_rows
from assay_cli.output.terminal import echo, ends_quietly
from assay_operations.classify import classify, columns_of, read_overrides, unknown_columns
from assay_operations.errors import OperationError
from assay_operations.scrub import families_of, policies, undetected_categories

pii = typer.Typer(
    no_args_is_help=True, help="List the families of personal data, classify columns, and check policy files."
)
policy_commands = typer.Typer(no_args_is_help=True, help="Check policy files.")
pii.add_typer(policy_commands, name="policy")


@pii.command("families")
def families(
    as_json: AsJsonLines = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="Policy file whose actions are shown; default: scrubber.policy_file, if set.",
        ),
    ] = None,
    project: Annotated[str, typer.Option(help="Project whose actions are shown.")] = "default",
) -> None:
    """List the families of personal data: name, category, action, description."""
    with ends_quietly():
        show_rows(families_of(policies(file).of(project)), as_json, "no families")


@pii.command("classify")
def classify_columns(
    source: Annotated[
        str,
        typer.Argument(
            help="sqlite:///file.db, http://user@host:8123/database (ClickHouse), or a file of rows (NDJSON)."
        ),
    ],
    overrides: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file of columns whose classification you decide.")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="Number of rows to sample from each table.")] = 200,
    as_json: AsJsonLines = False,
) -> None:
    """Classify the columns of a database by sensitivity and category, from names, types and a sample.

    Values are only looked at: none is printed or kept. Exit code 1: an override names a column that does not exist.
    """
    with ends_quietly():
        given = read_overrides(overrides) if overrides else {}
        found = list(classify(columns_of(source, rows), given))
        shown = [each.row() for each in found]
        if not as_json:
            shown = [row | {"categories": ", ".join(row["categories"])} for row in shown]
        show_rows(shown, as_json, "no columns")
    if unknown := unknown_columns(given, found):
        echo(f"assay: {overrides}: no such column: {', '.join(unknown)}; name it as TABLE.COLUMN of the list", err=True)
        raise typer.Exit(FINDING)


@policy_commands.command("check")
def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="Policy file.")]) -> None:
    """Validate a policy file as the scrubber would. Exit code 0 and the policies, or 1 and the error."""
    try:
        checked = policies(file)
    except OperationError as error:
        echo(f"assay: {error}", err=True)
        raise typer.Exit(FINDING) from None
    if unused := undetected_categories(file, checked):
        echo(
            f"assay: no family detects {', '.join(unused)}: only your own [patterns] in the category have its action",
            err=True,
        )
    with contextlib.suppress(BrokenPipeError):
        for name, policy in (("every other project", checked.default), *sorted(checked.projects.items())):
            actions = ", ".join(f"{family} {action}" for family, action in sorted(policy.actions.items()))
            slugs = "; slugs too" if policy.scrub_slugs else ""
            keys = f"; keys: {', '.join(sorted(policy.scrub_keys))}" if policy.scrub_keys else ""
            echo(f"{policy.fingerprint}  {name}: {actions or 'all redact'}{slugs}{keys}")
