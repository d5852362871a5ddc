"""Commands are loaded when they are named."""

import os
import subprocess
import sys

import pytest
import typer

from assay_cli.lazy import LazyGroup
from assay_cli.main import app

_LOADED = """
import sys
from assay_cli.main import app
try:
    app({arguments})
except SystemExit:
    pass
print("loaded", *sys.modules, file=sys.stderr)
"""


def loaded_by(*arguments: str, **environment: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED.format(arguments=list(arguments))],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **environment},
    )
    return set(done.stderr.splitlines()[-1].split()[1:])


def test_the_version_loads_no_command_and_no_library_of_one() -> None:
    loaded = loaded_by("--version")
    assert not {"pydantic", "redis", "clickhouse_connect", "numpy", "rich"} & loaded
    assert not {name for name in loaded if name.startswith(("assay_cli.commands", "assay_operations", "assay_evals"))}


def test_a_command_does_not_load_the_others() -> None:
    loaded = {name for name in loaded_by("dataset", "stats", "missing") if name.startswith("assay_cli.commands.")}
    assert loaded == {"assay_cli.commands.dataset", "assay_cli.commands.dataset.check"}


@pytest.mark.parametrize(
    ("arguments", "needed", "unneeded"),
    [
        (("query", "--list"), set(), {"redis", "clickhouse_connect"}),
        (("migrate", "--dry-run"), {"clickhouse_connect"}, {"redis"}),
        (("keys", "list"), {"redis"}, {"clickhouse_connect"}),
    ],
)
def test_a_command_loads_only_the_client_of_the_server_that_it_asks(
    arguments: tuple[str, ...], needed: set[str], unneeded: set[str]
) -> None:
    nowhere = {"ASSAY_STORE_URL": "http://127.0.0.1:1", "ASSAY_REDIS_URL": "redis://127.0.0.1:1/0"}
    loaded = loaded_by(*arguments, **nowhere)
    assert needed <= loaded
    unneeded |= {"assay_schema.events", "numpy", "rich", "faststream", "starlette", "opentelemetry.exporter", "httpx"}
    assert not unneeded & loaded


def test_a_name_that_is_none_is_refused_and_every_other_is_found() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, LazyGroup)
    assert group.get_command(None, "evla") is None
    assert list(group.commands) == group.list_commands(None)


@pytest.mark.parametrize("name", ["eval", "dataset", "judge"])
def test_a_groups_commands_are_called_what_the_group_calls_them(name: str) -> None:
    group = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    assert {each: command.name for each, command in group.commands.items()} == {each: each for each in group.commands}


def test_the_help_lists_every_command_in_the_panel_of_its_purpose() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, LazyGroup)
    assert set(group.panels) == set(group.members)
    found = {name: group.get_command(None, name).rich_help_panel for name in ("scrub", "eval", "up")}
    assert found == {"scrub": "Capture and scrub", "eval": "Evaluate changes", "up": "Run it"}
