"""What people do with OpenCode's sessions: fork, revert, go on, run commands and export."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_sessions.readers import READERS
from assay_sessions.record import Transcript
from tests.agents.test_real_agents import OpenCode, opencode
from tests.programs import needed_agent
from tests.support.agent_home import Home
from tests.support.agent_logs import shown
from tests.support.agent_model import AgentModel, Reply

pytestmark = [pytest.mark.slow, pytest.mark.server]
THANKS = (["user: Thank you"], "Welcome.", [], "answered")
TWICE = ["user: Thank you", "model: Welcome.", "user: Thank you"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("opencode") / "home")


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[OpenCode]:
    needed_agent("opencode")
    listing = ("bash", {"command": "ls; exit 3", "description": "Lists files"})
    played = {"Thank you": [Reply("Welcome.")], "List": [Reply("I look.", [listing]), Reply("Done.")]}
    with AgentModel(played) as model, opencode(home, model) as running:
        yield running


def stored(home: Home) -> dict[str, Transcript]:
    return {each.session_id: each for each in home.sessions("opencode")}


def test_a_session_that_grew_has_changed_and_is_read_again(server: OpenCode, home: Home) -> None:
    grown = server.session("Thank you")
    before = stored(home)
    server.say(grown, "Thank you")
    after = stored(home)
    assert after[grown].updated > before[grown].updated
    assert {name for name, each in after.items() if each.messages != before[name].messages} == {grown}
    [store] = READERS["opencode"].discover(READERS["opencode"].locations(home.path, {}))
    since = [each for each in READERS["opencode"].read(store, after[grown].updated) if isinstance(each, Transcript)]
    assert grown in {each.session_id for each in since}


def test_a_fork_is_linked_to_its_origin(server: OpenCode, home: Home) -> None:
    origin = server.session("Thank you")
    fork = server.ask(f"/session/{origin}/fork", {})["id"]
    server.say(fork, "Thank you")
    found = stored(home)
    assert (found[fork].forked_from, found[fork].extra["copied_messages"]) == (origin, 2)
    assert found[origin].forked_from is None
    assert shown(found[fork])[0] == TWICE


def test_turns_after_a_revert_are_left_out(server: OpenCode, home: Home) -> None:
    session = server.session("Thank you", "List")
    messages = server.ask(f"/session/{session}/message")
    prompts = [message["info"]["id"] for message in messages if message["info"]["role"] == "user"]
    server.ask(f"/session/{session}/revert", {"messageID": prompts[1]})
    assert shown(stored(home)[session]) == THANKS


def test_a_command_of_the_user_is_not_the_agents(server: OpenCode, home: Home) -> None:
    session = server.ask("/session", {"title": "command"})["id"]
    server.ask(f"/session/{session}/shell", {"agent": "build", "command": "ls"})
    server.say(session, "Thank you")
    [call] = [call for message in stored(home)[session].messages for call in message.calls]
    assert (call.name, call.args, call.executed_by) == ("bash", {"command": "ls"}, "user")
    assert shown(stored(home)[session])[:2] == THANKS[:2]


@pytest.mark.parametrize("options", [[], ["--sanitize"]])
def test_an_export_has_what_the_database_has(server: OpenCode, home: Home, tmp_path: Path, options: list[str]) -> None:
    session = server.session("List")
    command = [needed_agent("opencode"), "export", session, *options]
    done = subprocess.run(command, cwd=home.work, env=home.environment, capture_output=True, timeout=280, check=True)
    (tmp_path / "session.json").write_bytes(done.stdout)
    [exported] = READERS["opencode"].read(tmp_path / "session.json", None)
    assert isinstance(exported, Transcript)
    assert exported.extra.get("sanitized", False) == bool(options)
    if options:
        assert json.dumps(shown(exported)).count("[redacted:text:") == 3
    else:
        assert shown(exported) == shown(stored(home)[session])
