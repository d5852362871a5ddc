"""The scripted sessions of the agent, read from `scenes.toml`."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

#: `open` is a session that only its captured events show: the agent did not write it down.
Ending = Literal["answered", "unanswered", "aborted", "open"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a scene. Exactly one of `user`, `say`, `call`, `ask`, `rate` and `delegate` is set."""

    user: str | None = None
    say: str | None = None
    #: Name of a tool.
    call: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    times: int = 1
    #: Status that a call has, by the script.
    gives: str = "success"
    gives_up: bool = False
    interrupt: bool = False
    #: A question to the search service of the demo.
    ask: str | None = None
    #: Feedback on its last answer.
    rate: Literal["positive", "negative"] | None = None
    text: str | None = None
    #: Name of the scene that a sub-agent plays.
    delegate: str | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """A kind of session, and the questions that it is played with."""

    name: str
    steps: tuple[Step, ...]
    asks: tuple[str, ...] = ()
    ends: Ending = "answered"
    #: Scene that starts this one as a sub-agent.
    started_by: str | None = None

    @property
    def title(self) -> str:
        """Return the title of its sessions: the first words of the user."""
        return next(step.user for step in self.steps if step.user)


@dataclass(slots=True)
class Counts:
    """Events by kind, tool calls by status, and sessions by their end."""

    captured: Counter[str] = field(default_factory=Counter)
    tool_calls: Counter[str] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)


def read_scenes() -> dict[str, Scene]:
    """Return all scenes by name, in the order of the file."""
    text = (resources.files("assay_demo.agent") / "scenes.toml").read_text(encoding="utf-8")
    scenes = [
        Scene(
            **{key: value for key, value in row.items() if key not in ("steps", "asks")},
            steps=tuple(Step(**step) for step in row["steps"]),
            asks=tuple(row.get("asks", ())),
        )
        for row in tomllib.loads(text)["scene"]
    ]
    return {scene.name: scene for scene in scenes}


def scripted(scenes: Mapping[str, Scene]) -> Counts:
    """Count what the scenes will capture and write down. Sessions of sub-agents count too."""
    counts = Counts()
    for scene in scenes.values():
        for played in (part for _ in scene.asks for part in _with_delegated(scene, scenes)):
            counts.sessions[played.ends] += 1
            for step in played.steps:
                if step.call or step.delegate:
                    counts.tool_calls[step.gives] += step.times
                counts.captured.update({"retrieval": 1, "answer": 1} if step.ask else {"feedback": bool(step.rate)})
    counts.captured["tool_call"] = counts.tool_calls.total()
    counts.captured["server_event"] = 2  # its start and its stop
    return counts


def _with_delegated(scene: Scene, scenes: Mapping[str, Scene]) -> Iterator[Scene]:
    yield scene
    for step in scene.steps:
        if step.delegate:
            yield from _with_delegated(scenes[step.delegate], scenes)
