"""A home directory in which coding agents run against a model on loopback, and what a reader finds there."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from assay_sessions.readers import READERS, Problem
from assay_sessions.record import Transcript
from tests.support.agent_logs import shown
from tests.support.agent_model import Reply
from tests.support.wait import until

Json = dict[str, Any]
#: Proxies where nothing listens: an agent reaches nothing but the model.
_OFFLINE = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}
_TIMEOUT_S = 120


class Home:
    """A home with a folder of work that has one file, `a.txt`."""

    def __init__(self, path: Path) -> None:
        self.path, self.work = path, path / "work"
        self.work.mkdir(parents=True)
        (self.work / "a.txt").write_text("hello\n")
        self.environment = {"HOME": str(path), "PATH": os.environ["PATH"], "TERM": "dumb", "CI": "1"} | _OFFLINE

    def write(self, name: str, text: str) -> None:
        """Write a file of settings."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        """Start an agent in the folder of work."""
        with (self.path / "output.txt").open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=self.work,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def run(self, *command: str) -> None:
        """Run an agent to its end, whatever it says."""
        process = self.start(*command)
        try:
            process.wait(_TIMEOUT_S)
        finally:
            self.end(process, signal.SIGKILL)

    def interrupt(self, *command: str, when: Callable[[], bool]) -> None:
        """Run an agent and press Ctrl-C at a moment. One that stays is killed."""
        process = self.start(*command)
        try:
            until(when, "the agent did not get there", _TIMEOUT_S)
        finally:
            self.end(process, signal.SIGINT)

    def end(self, process: "subprocess.Popen[bytes]", how: signal.Signals) -> None:
        """End an agent and what it started."""
        for number in (how, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(60)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

    def output(self) -> str:
        """Return the end of what the agents printed."""
        return (self.path / "output.txt").read_text(errors="replace")[-4000:]

    def sessions(self, agent: str) -> list[Transcript]:
        """Return the sessions in the agent's usual places. Nothing there may be unknown to its reader."""
        reader = READERS[agent]
        found = [
            each for store in reader.discover(reader.locations(self.path, {})) for each in reader.read(store, None)
        ]
        problems = [each for each in found if isinstance(each, Problem)]
        assert problems == [], f"{problems}\n{self.output()}"
        return [each for each in found if isinstance(each, Transcript)]


def told(found: list[Transcript]) -> dict[str, tuple[list[str], str | None, list[str], str]]:
    """Return what `shown` tells of each session, by its first words of the user."""
    by_words = {each.messages[0].text.strip('"') if each.messages else "": shown(each) for each in found}
    assert len(by_words) == len(found), "two sessions begin alike"
    return by_words


def scenes(work: Path, read: tuple[str, Json], shell: Callable[[str], tuple[str, Json]]) -> dict[str, list[Reply]]:
    """Return the scenes that every agent plays, with its own tools."""
    return {
        "SCENE work": [
            Reply("I look.", [read, shell("echo one")]),
            Reply("", [shell("ls /nope; exit 3")]),
            Reply("", [("no_such_tool", {"x": 1})]),
            Reply("Done."),
        ],
        "SCENE thanks": [Reply("Welcome.")],
        "SCENE fail": [Reply(status=400)],
        "SCENE story": [Reply("Once upon", stall=True)],
        "SCENE sleep": [Reply("Wait.", [shell(f"touch {work}/asleep; sleep 60")]), Reply("x")],
        "SUBJOB count": [Reply("", [shell("ls | wc -l")]), Reply("One file.")],
    }
