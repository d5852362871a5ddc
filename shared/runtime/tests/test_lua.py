"""Atomic steps in Lua files: each is whole, and each file is used."""

import re
from pathlib import Path

import pytest

from assay_assembler.open_traces import CLOSE, REFUSE, TAKE
from assay_drift.state import COMMIT
from assay_judge import scripts as judge_scripts
from assay_notifier.delivery_log import NOTE
from assay_notifier.removed_alerts import REMOVED
from assay_runtime import scripts
from assay_runtime.lua import CONSTANTS, fragment, script
from assay_runtime.reading import READ
from assay_runtime.same_redis import FETCH
from tests.support.redis import RedisServer

ROOT = Path(__file__).parents[3]
FILES = {
    (file.parents[1].name, file.stem): file
    for folder in ("shared", "services")
    for file in (ROOT / folder).glob("*/assay_*/lua/*.lua")
}


def loaded() -> set[str]:
    """Every script that a service gives to Redis."""
    every = [*vars(scripts).items(), *vars(judge_scripts).items()]
    return {READ, FETCH, COMMIT, NOTE, REMOVED, TAKE, CLOSE, REFUSE} | {
        text for name, text in every if name.isupper() and name[0] != "_"
    }


def test_every_file_is_a_step_or_a_part_of_one() -> None:
    steps = loaded()
    included = set(
        re.findall(r"^--@include (\w+)$", "".join(file.read_text() for file in FILES.values()), re.MULTILINE)
    )
    assert len(FILES) > 25
    for package, name in FILES:
        assert script(package, name) in steps or name in included, f"{package}/lua/{name}.lua"


@pytest.mark.parametrize(("package", "name"), sorted(FILES))
def test_a_file_describes_itself_and_leaves_no_include_behind(package: str, name: str) -> None:
    assert FILES[package, name].read_text().startswith("-- ")
    text = fragment(package, name)
    assert "--" not in text.replace(" -- ", " "), "only comments after code are left"
    assert text.endswith("\n")


@pytest.mark.parametrize(("package", "name"), sorted(FILES))
def test_every_name_of_a_constant_has_a_value(package: str, name: str) -> None:
    code = re.sub(r"'[^']*'|--.*", "", fragment(package, name))
    assert set(re.findall(r"\b[A-Z][A-Z_]+\b", code)) - {"KEYS", "ARGV"} <= CONSTANTS.keys()


def test_redis_compiles_every_step(redis_server: RedisServer) -> None:
    client = redis_server.client()
    for text in loaded():
        assert client.script_load(text)
