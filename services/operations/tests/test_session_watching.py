"""Which files and sessions a watching import reads again: those that are new to it, regardless of their time."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay_operations.sessions.importing import Source, sources
from assay_operations.sessions.watching import Watch
from assay_sessions.record import Transcript
from tests.support.opencode_logs import Session, assistant, database, user

OLD_MS = 1_600_000_000_000
NOW = datetime.now(UTC)


def claude(path: Path, session_id: str, *words: str) -> None:
    rows = [
        {
            "type": "user", "sessionId": session_id, "uuid": f"{session_id}{number}", "timestamp": "2020-09-13T12:26:40Z",
            "message": {"role": "user", "content": word},
        }
        for number, word in enumerate(words)
    ]  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (OLD_MS / 1000, OLD_MS / 1000))


def codex(path: Path, session_id: str, *words: str) -> None:
    rows = [{"type": "session_meta", "timestamp": "2020-09-13T12:26:40Z", "payload": {"id": session_id}}]
    rows += [
        {"type": "event_msg", "timestamp": "2020-09-13T12:26:41Z", "payload": {"type": "user_message", "message": word}}
        for word in words
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    os.utime(path, (OLD_MS / 1000, OLD_MS / 1000))


def session(source: Source) -> set[str]:
    found = source.reader.read_pieces(source.path, None, source.fresh) if source.fresh else iter(())
    return {each.session_id for each in found if isinstance(each, Transcript)}


@pytest.mark.parametrize(
    ("agent", "write", "name"),
    [
        ("claude-code", claude, "projects/p/{}.jsonl"),
        ("codex", codex, "2020/09/13/rollout-2020-09-13T12-26-40-{}.jsonl"),
    ],
)
def test_an_old_file_that_appears_or_grows_later_is_read_alone(
    agent: str, write: Callable[..., None], name: str, tmp_path: Path
) -> None:
    watch = Watch()

    def read() -> set[str]:
        return {name for store in watch.look(sources([agent], [tmp_path])) for name in session(store)}

    write(tmp_path / name.format("a"), "a", "Hi.")
    assert read() == {"a"}
    assert read() == {"a"}, "what was not settled stays new"
    watch.settle()
    assert read() == set()
    write(tmp_path / name.format("b"), "b", "Hi.")
    assert read() == {"b"}
    watch.settle()
    write(tmp_path / name.format("a"), "a", "Hi.", "More.")
    assert read() == {"a"}
    watch.settle()
    assert read() == set()
    assert [
        item
        for store in sources([agent], [tmp_path])
        for item in store.reader.read(store.path, NOW)
        if isinstance(item, Transcript)
    ] == []


def test_an_old_session_that_appears_in_a_database_is_read_alone(tmp_path: Path) -> None:
    def hello(name: str) -> Session:
        return Session(name, [user("Hi."), assistant("Hello.")], start_ms=OLD_MS)

    log, watch = tmp_path / "opencode.db", Watch()
    database(log, "1.18", [hello("a")])
    [store] = watch.look(sources(["opencode"], [log]))
    assert session(store) == {"ses_a"}
    watch.settle()
    kept = tmp_path / "other.db"
    database(kept, "1.18", [hello("a"), hello("b")])
    log.write_bytes(kept.read_bytes())  # the same file, with one session more
    [store] = watch.look(sources(["opencode"], [log]))
    assert session(store) == {"ses_b"}
    watch.settle()
    assert watch.look(sources(["opencode"], [log]))[0].fresh == frozenset()
    kept.replace(log)
    assert session(watch.look(sources(["opencode"], [log]))[0]) == {"ses_a", "ses_b"}
