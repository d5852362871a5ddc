"""`assay sessions list` and `show`: a list that fits the terminal, ids that are typed in part, and commands of the user."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from assay_runtime.store import connect, insert_json_rows
from tests.support.cli import Cli
from tests.support.sample_rows import Json, imported_call, lines, session_part
from tests.support.store import StoreServer
from tests.support.terminal import on_a_terminal

FIRST, SECOND, THIRD = "0b7c41d2-aaaa-4c52-9d0e", "0b7c41d2-bbbb-4f0e-8aa1", "7fe0c9d1-cccc-4f0e-8aa1"
PROMPT = "Why does the nightly import\n\n  of the catalogue fail since the weekend?"


def request(*contents: tuple[str, str]) -> str:
    return json.dumps({"contents": [{"role": role, "parts": [{"text": text}]} for role, text in contents]})


def parts() -> list[Json]:
    ran = imported_call("bash", {"command": "git status"}, turn=1, executed_by="user")
    said = {"title": None, "project": "listed", "turns": 2, "metadata": '{"source": "claude-code"}'}
    return [
        session_part(1, **said, session_id=FIRST, revision=1, digest="a", request=request(("user", "An older prompt."))),
        session_part(2, **said, session_id=FIRST, revision=2, digest="b", request=request(("model", "Hi."), ("user", PROMPT))),
        session_part(3, **said, session_id=SECOND, intermediate_events=json.dumps([ran, imported_call("read")])),
        session_part(4, **{**said, "title": "Mend the import"}, session_id=THIRD),
        session_part(5, **{**said, "project": "elsewhere"}, session_id="0b7c41d2-aaaa-other"),
        session_part(6, **{**said, "project": "elsewhere"}, session_id=THIRD),
        session_part(7, **said, session_id="0b7c41d2"),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def cli(migrated: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> Cli:
    with connect(migrated.settings().store) as owner:
        owner.command("TRUNCATE TABLE assay_base.session_parts")
        rows = parts()
        insert_json_rows(owner, "assay_base.session_parts", lines(rows), len(rows))
    return Cli(tmp_path_factory.mktemp("cli"), store_url=migrated.url)


def show(cli: Cli, *arguments: str, code: int = 0) -> str:
    done = cli.call("sessions", "show", *arguments, role="sre")
    assert done.returncode == code, done
    return (done.stderr if code else done.stdout).decode()


@pytest.mark.parametrize("columns", [80, 110])
def test_the_list_fits_the_terminal_and_shows_titles_or_first_prompts(cli: Cli, columns: int) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment |= {"ASSAY_CONFIG": str(cli.settings_file("sre")), "COLUMNS": str(columns)}
    program = str(Path(sys.executable).parent / "assay")
    written = on_a_terminal(
        [program, "sessions", "list", "--project", "listed"], cli.directory, environment, exit_codes={0}
    )
    written = re.sub(r"\x1b\[[0-9;]*m", "", written)
    assert max(map(len, written.splitlines())) <= columns
    rows = [line for line in written.splitlines() if line.startswith(("0b7c41d2-a", "0b7c41d2-b", "7fe0c9d1-c"))]
    assert len(rows) == 3, written
    assert any("Why does the nightly" in row for row in rows)
    assert any("Mend the import" in row for row in rows)


def test_json_has_the_first_prompt_of_the_newest_revision_on_one_line(cli: Cli) -> None:
    done = cli.call("sessions", "list", "--project", "listed", "--json", role="sre")
    rows = {row["session_id"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows[FIRST]["first_prompt"] == "Why does the nightly import of the catalogue fail since the weekend?"
    assert (rows[THIRD]["title"], rows[THIRD]["first_prompt"]) == ("Mend the import", "Which test is flaky?")


def test_a_session_is_shown_by_the_beginning_of_its_id(cli: Cli) -> None:
    assert "Why does the nightly import" in show(cli, "0b7c41d2-aaaa", "--project", "listed")
    assert show(cli, SECOND[:11]) == show(cli, SECOND)
    assert show(cli, "0b7c41d2").startswith("0b7c41d2 ("), "a whole id is never ambiguous"


def test_an_ambiguous_beginning_names_the_candidates(cli: Cli) -> None:
    said = show(cli, "0b7c41d2-", code=2)
    assert "several sessions begin with '0b7c41d2-'" in said
    assert all(name in said for name in (FIRST, SECOND, "0b7c41d2-aaaa-other"))
    assert THIRD not in said
    assert "in several projects; choose one with --project" in show(cli, THIRD[:5], code=2)
    assert "no session 'no-such' was imported" in show(cli, "no-such", code=2)


def test_a_command_of_the_user_is_marked_as_one(cli: Cli) -> None:
    shown = show(cli, SECOND)
    assert "\nuser ran: git status: success\n" in shown
    assert "\ntool: read(): success\n" in shown
