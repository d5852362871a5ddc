"""The workflow that users copy: valid YAML whose every `assay` command exists, with options that exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from assay_cli.main import app

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "deploy/ci/assay-gate.yml"
DOCUMENT: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())
STEPS = DOCUMENT["jobs"]["gate"]["steps"]
COMMANDS = [
    line.split()[1:]
    for step in STEPS
    for line in step.get("run", "").splitlines()
    if line.strip().startswith("$ASSAY ")
]


def test_it_runs_on_pull_requests_with_least_rights_and_an_end() -> None:
    assert "pull_request" in DOCUMENT[True], "YAML reads `on` as true"
    assert DOCUMENT["permissions"] == {"contents": "read"}
    assert DOCUMENT["jobs"]["gate"]["timeout-minutes"] <= 30


def test_it_uses_the_commands_of_an_evaluation() -> None:
    assert {" ".join(command[:2]) for command in COMMANDS} >= {"dataset validate", "eval run", "eval compare"}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_and_option_exists(command: list[str]) -> None:
    found: Any = typer.main.get_command(app)
    words = [word for word in command if not word.startswith("-")]
    while hasattr(found, "commands"):
        found = found.commands[words.pop(0)]
    known = {option for parameter in found.params for option in parameter.opts}
    assert {word for word in command if word.startswith("--")} <= known


def test_it_installs_every_package_that_the_command_needs_from_the_checkout() -> None:
    """A name that is missing would be looked for on the index, where anybody may register it."""
    (install,) = (line for step in STEPS for line in step.get("run", "").splitlines() if line.startswith("pip install"))
    installed = {
        f"{room}/{name}"
        for room, names in re.findall(r"assay/(\w+)/\{([\w,]+)\}", install)
        for name in names.split(",")
    }
    projects = {
        found["name"]: (str(file.parent.relative_to(ROOT)), found.get("dependencies", []))
        for file in (*ROOT.glob("shared/*/pyproject.toml"), *ROOT.glob("services/*/pyproject.toml"))
        for found in (tomllib.loads(file.read_text())["project"],)
    }
    needed, todo = set[str](), ["assay-cli"]
    while todo:
        folder, dependencies = projects[todo.pop()]
        if folder not in needed:
            needed.add(folder)
            todo += [found[0] for each in dependencies if (found := re.match(r"assay-[a-z-]+", each))]
    assert needed <= installed, needed - installed
    assert installed <= {folder for folder, _ in projects.values()}


def test_every_value_that_is_named_is_set() -> None:
    used = set(re.findall(r"\$([A-Z]+)\b", " ".join(step.get("run", "") for step in STEPS)))
    assert used - {"GITHUB_HEAD_REF", "GITHUB_STEP_SUMMARY"} <= DOCUMENT["env"].keys()
