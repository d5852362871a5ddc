"""Groups of options: a dataclass in a command's signature is its fields on the command line."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from assay_cli.option_groups import grouped


@dataclass(frozen=True)
class Place:
    """A group with a required option, an option with another name, and a default."""

    city: Annotated[str, typer.Option(help="City.")]
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Tag.")] = None
    floor: Annotated[int, typer.Option(min=0, help="Floor.")] = 3


def called(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()

    @app.command()
    @grouped
    def command(
        name: Annotated[str, typer.Argument(help="Name.")],
        place: Place,
        loud: Annotated[bool, typer.Option("--loud", help="Loud.")] = False,
    ) -> None:
        """Print what was given."""
        typer.echo(f"{name} {place} {loud}")

    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_the_fields_of_a_group_are_options_of_the_command() -> None:
    given = ("ana", "--city", "Berlin", "--tag", "a", "--tag", "b", "--floor", "0", "--loud")
    assert called(*given) == (0, "ana Place(city='Berlin', tags=['a', 'b'], floor=0) True\n")


def test_a_field_without_a_default_is_required_and_others_keep_their_default() -> None:
    assert called("ana", "--city", "Berlin") == (0, "ana Place(city='Berlin', tags=None, floor=3) False\n")
    code, output = called("ana")
    assert code == 2
    assert "--city" in output


def test_the_limits_of_a_field_are_those_of_the_option() -> None:
    assert called("ana", "--city", "Berlin", "--floor", "-1")[0] == 2
