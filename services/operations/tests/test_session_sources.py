"""The logs to read: in the usual places of every agent, or where somebody says, of the agent that they name."""

from pathlib import Path

import pytest

from assay_operations.errors import OperationError
from assay_operations.sessions.importing import sources
from tests.support.opencode_logs import Session, assistant, database, user


def test_without_a_path_the_usual_places_of_every_agent_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert sources([], [], {}) == []
    (tmp_path / ".local/share/opencode").mkdir(parents=True)
    log = tmp_path / ".local/share/opencode/opencode.db"
    database(log, "1.18", [Session("a", [user("Hi."), assistant("Hello.")])])
    (tmp_path / ".claude/projects/p").mkdir(parents=True)
    (tmp_path / ".claude/projects/p/s.jsonl").write_text("")
    assert {source.reader.name for source in sources([], [], {})} == {"opencode", "claude-code"}
    assert {source.reader.name for source in sources(["claude-code"], [], {})} == {"claude-code"}


@pytest.mark.parametrize(
    ("agents", "name", "said"),
    [
        (["cursor"], "log", "'cursor' is not one of opencode, claude-code"),
        ([], "log", "name the agent whose log it is: --from opencode, claude-code"),
        (["opencode"], "gone", "does not exist"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_can(agents: list[str], name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x")
    with pytest.raises(OperationError) as refused:
        sources(agents, [tmp_path / name])
    assert said in str(refused.value)
