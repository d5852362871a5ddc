"""Real coding agents against a model on loopback: readers find exactly the sessions that they made.

Runs where they are installed: `npm install --global` the packages of `tests/programs.py`.
"""

import json
import signal
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.programs import needed_agent
from tests.support.agent_home import Home, scenes, told
from tests.support.agent_model import AgentModel, Reply
from tests.support.ports import free_port
from tests.support.wait import until

Json = dict[str, Any]
pytestmark = [pytest.mark.slow, pytest.mark.server]
WORKED = ["user: SCENE work", "model: I look.\n\nDone.", "user: SCENE thanks"]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def shell(name: str, argument: str, **more: str) -> Callable[[str], tuple[str, Json]]:
    return lambda command: (name, {argument: command} | more)


def test_claude_code(home: Home) -> None:
    program = needed_agent("claude")
    asked = [program, "-p", "--allowedTools", "Bash", "Read", "Agent", "Task", "--"]
    again = [program, "-p", "--continue"]
    played = scenes(
        home.work, ("Read", {"file_path": str(home.work / "a.txt")}), shell("Bash", "command", description="d")
    )
    sub_agent = {"description": "count", "prompt": "SUBJOB count", "subagent_type": "general-purpose"}
    played["SCENE delegate"] = [Reply("I delegate.", [("Agent", sub_agent)]), Reply("Counted.")]
    with AgentModel(played) as model:
        home.environment |= {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        home.run(*asked, "SCENE work")
        home.run(*again, "SCENE thanks")
        home.run(*asked, "SCENE fail")
        home.interrupt(*asked, "SCENE story", when=model.stalled.is_set)
        home.interrupt(*asked, "SCENE sleep", when=(home.work / "asleep").exists)
        home.run(*asked, "SCENE delegate")
        home.run(*again, "/compact")
        home.run(*again, "SCENE thanks")
    found = home.sessions("claude-code")
    calls = ["2 Read success", "2 Bash success", "2 Bash error exit_code 3", "2 no_such_tool error unknown_name"]
    delegated = ["user: SCENE delegate", "model: I delegate.\n\nCounted.", "user: SCENE thanks"]
    sessions = told(found)
    # A command that the user stops as it begins has the text of one that the user refused.
    contents, answer, stopped, status = sessions.pop("SCENE sleep")
    assert (contents, answer, status) == (["user: SCENE sleep"], "Wait.", "aborted")
    assert stopped in (["2 Bash refused user_refused"], ["2 Bash error interrupted"])
    assert sessions == {
        "SCENE work": (WORKED, "Welcome.", calls, "answered"),
        "SCENE fail": (["user: SCENE fail"], None, [], "unanswered"),
        # The log has neither a part of the answer nor that it was interrupted.
        "SCENE story": (["user: SCENE story"], None, [], "unanswered"),
        "SCENE delegate": (delegated, "Welcome.", ["2 Agent success"], "answered"),
        "SUBJOB count": (["user: SUBJOB count"], "One file.", ["2 Bash success"], "answered"),
    }
    [child] = [each for each in found if each.parent_session_id]
    [parent] = [each for each in found if each.session_id == child.parent_session_id]
    linked = [call.child_session_id for message in parent.messages for call in message.calls]
    assert (parent.messages[0].text, linked) == ("SCENE delegate", [child.session_id])
    [work] = [each for each in found if each.messages[0].text == "SCENE work"]
    assert dict(work.tokens) == {"input": 5 * 100, "output": 5 * 7, "cache_read": 5 * 3}


def test_codex(home: Home) -> None:
    asked = [needed_agent("codex"), "exec", "--skip-git-repo-check"]
    played = scenes(home.work, ("exec_command", {"cmd": "cat a.txt"}), shell("exec_command", "cmd"))
    with AgentModel(played) as model:
        settings: Json = {"model": "m-1", "model_provider": "loopback", "approval_policy": "never"}
        provider: Json = {"name": "loopback", "base_url": f"{model.url}/v1", "wire_api": "responses", "env_key": "KEY"}
        provider |= {"request_max_retries": 0, "stream_max_retries": 0}
        lines = [
            f"{key} = {json.dumps(each)}" for key, each in (settings | {"sandbox_mode": "danger-full-access"}).items()
        ]
        lines += ["[model_providers.loopback]", *(f"{key} = {json.dumps(each)}" for key, each in provider.items())]
        home.write(".codex/config.toml", "\n".join(lines))
        home.environment["KEY"] = "none"
        home.run(*asked, "SCENE work")
        home.run(*asked, "resume", "--last", "SCENE thanks")
        home.run(*asked, "SCENE fail")
        home.interrupt(*asked, "SCENE story", when=model.stalled.is_set)
        home.interrupt(*asked, "SCENE sleep", when=(home.work / "asleep").exists)
    found = home.sessions("codex")
    calls = ["2 exec_command success 0"] * 2
    calls += ["2 exec_command error exit_code 3", "2 no_such_tool error unknown_name"]
    assert told(found) == {
        "SCENE work": (WORKED, "Welcome.", calls, "answered"),
        "SCENE fail": (["user: SCENE fail"], None, [], "unanswered"),
        "SCENE story": (["user: SCENE story"], None, [], "aborted"),
        "SCENE sleep": (["user: SCENE sleep"], "Wait.", ["2 exec_command error interrupted"], "aborted"),
    }


def test_gemini_cli(home: Home) -> None:
    asked = [needed_agent("gemini"), "--model", "gemini-2.5-flash", "--yolo"]
    played = scenes(
        home.work, ("read_file", {"file_path": "a.txt"}), shell("run_shell_command", "command", description="d")
    )
    settings = {
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"disableAutoUpdate": True},
    }
    home.write(".gemini/settings.json", json.dumps(settings))
    with AgentModel(played) as model:
        home.environment |= {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
        home.run(*asked, "--prompt", "SCENE work")
        home.run(*asked, "--resume", "latest", "--prompt", "SCENE thanks")
        home.interrupt(*asked, "--prompt", "SCENE story", when=model.stalled.is_set)
        home.interrupt(*asked, "--prompt", "SCENE sleep", when=(home.work / "asleep").exists)
    calls = ["2 read_file success", "2 run_shell_command success", "2 run_shell_command error exit_code 3"]
    assert told(home.sessions("gemini")) == {
        "SCENE work": (WORKED, "Welcome.", [*calls, "2 no_such_tool error unknown_name"], "answered"),
        "SCENE story": (["user: SCENE story"], None, [], "unanswered"),
        # It writes a call when the call has ended: the log of a session that is killed before has none.
        "SCENE sleep": (["user: SCENE sleep"], "Wait.", [], "answered"),
    }


class OpenCode:
    """The server of OpenCode, and a session for each scene."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.model = {"providerID": "loopback", "modelID": "m-1"}
        self._answered = Event()

    def ask(self, path: str, body: Json | None = None, timeout: float = 120) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.read() or b"null")

    def is_up(self) -> bool:
        """Ask, and return True if a question was answered. One that comes while OpenCode starts never is: others go beside it."""
        Thread(target=self._ask_first, daemon=True).start()
        return self._answered.wait(3)

    def _ask_first(self) -> None:
        with suppress(OSError, HTTPException):
            self.ask("/session")
            self._answered.set()

    def session(self, *prompts: str) -> str:
        """Make a session with these prompts, each answered before the next."""
        name: str = self.ask("/session", {"title": prompts[0]})["id"]
        for prompt in prompts:
            self.say(name, prompt)
        return name

    def say(self, session: str, prompt: str, how: str = "message") -> None:
        self.ask(f"/session/{session}/{how}", {"parts": [{"type": "text", "text": prompt}], "model": self.model})

    def writes(self, session: str) -> bool:
        """Return True if a text of the model has arrived. It is stored when it ends, and its part when it begins."""
        replies = [each for each in self.ask(f"/session/{session}/message") if each["info"]["role"] == "assistant"]
        return any(part["type"] == "text" for each in replies for part in each["parts"])

    def abort(self, prompt: str, when: Callable[[str], bool]) -> None:
        """Make a session that is aborted at a moment."""
        session: str = self.ask("/session", {"title": prompt})["id"]
        self.say(session, prompt, "prompt_async")
        until(lambda: when(session), "the agent did not get there", 120)
        self.ask(f"/session/{session}/abort", {})
        until(lambda: session not in self.ask("/session/status"), "the session is still busy", 120)


@contextmanager
def opencode(home: Home, model: AgentModel) -> Iterator[OpenCode]:
    options = {"baseURL": f"{model.url}/v1", "apiKey": "none"}
    models = {"m-1": {"name": "m", "limit": {"context": 200_000, "output": 8_000}, "tool_call": True}}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "loopback", "options": options, "models": models}
    settings: Json = {"model": "loopback/m-1", "small_model": "loopback/m-1", "autoupdate": False, "share": "disabled"}
    home.environment["OPENCODE_CONFIG_CONTENT"] = json.dumps(settings | {"provider": {"loopback": provider}})
    for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"):
        home.environment[f"OPENCODE_DISABLE_{name}"] = "1"
    port = free_port()
    process = home.start(needed_agent("opencode"), "serve", "--hostname", "127.0.0.1", "--port", str(port))
    try:
        server = OpenCode(f"http://127.0.0.1:{port}")
        until(server.is_up, "OpenCode did not start", 120)
        yield server
    finally:
        home.end(process, signal.SIGTERM)


def test_opencode(home: Home) -> None:
    needed_agent("opencode")
    bash = shell("bash", "command", description="d")
    played = scenes(home.work, ("read", {"filePath": str(home.work / "a.txt")}), bash)
    sub_agent = {"description": "count", "prompt": "SUBJOB count", "subagent_type": "general"}
    played["SCENE delegate"] = [Reply("I delegate.", [("task", sub_agent)]), Reply("Counted.")]
    played["SCENE missing"] = [Reply("", [("read", {"filePath": str(home.work / "none.txt")})]), Reply("Gone.")]
    played["SCENE hello"] = [Reply("Hi.")]
    with AgentModel(played) as model, opencode(home, model) as server:
        server.session("SCENE work", "SCENE thanks")
        server.session("SCENE fail")
        server.abort("SCENE story", server.writes)
        server.abort("SCENE sleep", lambda _: (home.work / "asleep").exists())
        server.session("SCENE delegate")
        server.session("SCENE missing")
        compacted = server.session("SCENE hello")
        server.ask(f"/session/{compacted}/summarize", server.model)
        server.say(compacted, "SCENE thanks")
        messages = server.ask(f"/session/{compacted}/message")
        assert [each["info"].get("finish") for each in messages if each["info"].get("summary") is True] == ["stop"]
        while_running = told(home.sessions("opencode"))
    found = home.sessions("opencode")
    calls = ["2 read success", "2 bash success 0", "2 bash error exit_code 3", "2 no_such_tool error unknown_name"]
    assert told(found) == {
        "SCENE work": (WORKED, "Welcome.", calls, "answered"),
        "SCENE fail": (["user: SCENE fail"], None, [], "unanswered"),
        "SCENE story": (["user: SCENE story"], "Once upon", [], "aborted"),
        "SCENE sleep": (["user: SCENE sleep"], "Wait.", ["2 bash error interrupted"], "aborted"),
        "SCENE delegate": (["user: SCENE delegate"], "I delegate.\n\nCounted.", ["2 task success"], "answered"),
        "SUBJOB count": (["user: SUBJOB count"], "One file.", ["2 bash success 0"], "answered"),
        "SCENE missing": (["user: SCENE missing"], "Gone.", ["2 read error tool_error"], "answered"),
        "SCENE hello": (["user: SCENE hello", "model: Hi.", "user: SCENE thanks"], "Welcome.", [], "answered"),
    }
    assert while_running == told(found)
    [child] = [each for each in found if each.parent_session_id]
    [parent] = [each for each in found if each.session_id == child.parent_session_id]
    linked = [call.child_session_id for message in parent.messages for call in message.calls]
    assert (parent.messages[0].text, linked) == ("SCENE delegate", [child.session_id])
