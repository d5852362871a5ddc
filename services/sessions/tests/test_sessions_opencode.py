"""OpenCode's sessions are read from each shape, once, with the words of people and models and nothing else."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from assay_sessions.document import document
from assay_sessions.readers import READERS, Problem
from assay_sessions.record import Json, Transcript
from tests.support import opencode_logs as logs
from tests.support.opencode_logs import ABORTED, SHELL, START_MS, Session, assistant, tool, user

REJECTED = "The user rejected permission to use this specific tool call."
RULE = "The user has specified a rule which prevents you from using this specific tool call. Here are some of the relevant rules []"
SHELL_ABORTED = "(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"
SHELL_TIMEOUT = "<shell_metadata>\nshell tool terminated command after exceeding timeout 100 ms.\n</shell_metadata>"
UNAVAILABLE = "Model tried to call unavailable tool 'nope'. Available tools: bash."


class Expected(NamedTuple):
    """Contents as `role: text`, the answer, the events as `turn name status kind exit`, and the status."""

    contents: list[str]
    answer: str | None
    events: list[str]
    status: str = "answered"


def seen(found: Transcript) -> Expected:
    made = document(found)
    events = []
    for event in made["intermediate_events"]:
        who = "user " if event["executed_by"] == "user" else ""
        kind, code = event.get("error_kind"), event.get("exit_code")
        end = "".join(f" {one}" for one in (kind, code) if one is not None)
        events.append(f"{event['turn']} {who}{event['function_call']['name']} {event['status']}{end}")
    contents = [f"{content['role']}: {content['parts'][0]['text']}" for content in made["request"]["contents"]]
    answers = [one["content"]["parts"][0]["text"] for one in made["response"]["candidates"]]
    return Expected(contents, answers[0] if answers else None, events, made["metadata"]["status"])


def read(store: Path, since: datetime | None = None) -> tuple[dict[str, Transcript], list[Problem]]:
    found: dict[str, Transcript] = {}
    problems = []
    for one in READERS["opencode"].read(store, since):
        if isinstance(one, Problem):
            problems.append(one)
        else:
            assert one.session_id not in found, "read twice"
            found[one.session_id] = one
    return found, problems


COMPACTION = (
    user({"type": "compaction", "auto": True}),
    assistant("## Goal", mode="compaction", agent="compaction", summary=True),
    user(
        {
            "type": "text",
            "text": "Continue if you have next steps",
            "synthetic": True,
            "metadata": {"compaction_continue": True},
        }
    ),
)
#: Cases of messages with parts.
PARTS: dict[str, tuple[list[Any], Expected]] = {
    "turns": (
        [
            user("List."),
            assistant("I look.", tool("glob"), tool("read")),
            assistant("Two files."),
            user("Test."),
            assistant(tool("bash", metadata={"exit": 1})),
            assistant(
                {"type": "reasoning", "text": "hidden"}, "One fails.", {"type": "patch", "hash": "h", "files": []}
            ),
            user("Thanks."),
            assistant("OK."),
        ],
        Expected(
            ["user: List.", "model: I look.\n\nTwo files.", "user: Test.", "model: One fails.", "user: Thanks."],
            "OK.",
            ["2 glob success", "2 read success", "4 bash error exit_code 1"],
        ),
    ),
    "failures": (
        [
            user("Go."),
            assistant(tool("read", "error", error="File not found: a.txt")),
            assistant(tool("invalid", input={"tool": "nope", "error": UNAVAILABLE}, output="The arguments ...")),
            assistant(tool("invalid", input={"tool": "edit", "error": "Invalid input for tool edit: x"})),
            assistant(tool("bash", metadata={"exit": 3}), tool("bash", metadata={"exit": 0})),
            assistant(tool("bash", output=SHELL_TIMEOUT, metadata={"exit": None})),
            assistant("Failed."),
        ],
        Expected(
            ["user: Go."],
            "Failed.",
            [
                "2 read error tool_error",
                "2 nope error unknown_name",
                "2 edit error invalid_arguments",
                "2 bash error exit_code 3",
                "2 bash success 0",
                "2 bash error timeout",
            ],
        ),
    ),
    "aborted tool": (
        [
            user("Sleep."),
            assistant(tool("bash", output=SHELL_ABORTED, metadata={"exit": None}), error=ABORTED),
            user("Back?"),
            assistant("Yes."),
        ],
        Expected(["user: Sleep.", "model: ", "user: Back?"], "Yes.", ["2 bash error interrupted"]),
    ),
    "aborted at the tool": (
        [user("Sleep."), assistant("Waiting.", tool("bash", "error", error="Tool execution aborted"), error=ABORTED)],
        Expected(["user: Sleep."], "Waiting.", ["2 bash error interrupted"], "aborted"),
    ),
    "aborted stream": (
        [user("Tell."), assistant("Once upon", error=ABORTED)],
        Expected(["user: Tell."], "Once upon", [], "aborted"),
    ),
    "killed": (
        [user("Go."), assistant(tool("bash", "running"), running=True)],
        Expected(["user: Go."], None, ["2 bash error interrupted"], "aborted"),
    ),
    "api error": (
        [
            user("Fail."),
            ({"role": "assistant", "error": {"name": "APIError", "data": {"message": "m", "responseBody": "b"}}}, []),
            user("Go on."),
            assistant("OK."),
        ],
        Expected(["user: Fail.\n\nGo on."], "OK.", []),
    ),
    "compaction": (
        [user("Fill."), assistant("Filled."), *COMPACTION, assistant("Going on."), user("Test."), assistant("OK.")],
        Expected(["user: Fill.", "model: Filled.\n\nGoing on.", "user: Test."], "OK.", []),
    ),
    "attachment": (
        [
            user(
                "What is it?",
                {"type": "text", "text": "Called the Read tool", "synthetic": True},
                {"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///a.txt"},
            ),
            assistant("A file."),
        ],
        Expected(["user: What is it?"], "A file.", []),
    ),
    "file alone": (
        [user({"type": "file", "mime": "image/png", "url": "data:"}), assistant("A picture.")],
        Expected(["user: "], "A picture.", []),
    ),
    "synthetic and ignored": (
        [
            user(
                "Seen.",
                {"type": "text", "text": "no", "synthetic": True},
                {"type": "text", "text": "no", "ignored": True},
            )
        ],
        Expected(["user: Seen."], None, [], "unanswered"),
    ),
    "shell": (
        [*SHELL, user("What was it?"), assistant("ls", tool("bash", metadata={"exit": 0})), assistant("Done.")],
        Expected(["user: What was it?"], "ls\n\nDone.", ["1 user bash success", "2 bash success 0"]),
    ),
    "refused": (
        [user("Write."), assistant(tool("write", "error", error=REJECTED), tool("write", "error", error=RULE))],
        Expected(
            ["user: Write."], None, ["2 write refused user_refused", "2 write refused rule_refused"], "unanswered"
        ),
    ),
    "only a tool": (
        [user("Go."), assistant(tool("bash")), assistant()],
        Expected(["user: Go."], None, ["2 bash success"], "unanswered"),
    ),
    "text after a tool": (
        [user("Go."), assistant("A", tool("bash"), "B")],
        Expected(["user: Go."], "A\n\nB", ["2 bash success"]),
    ),
    "unicode": (
        [user("Grüße 日本語 👩‍👩‍👧 \ud83d"), assistant("✓")],
        Expected(["user: Grüße 日本語 👩‍👩‍👧 \ufffd"], "✓", []),
    ),
    "no reply": ([user("Note.")], Expected(["user: Note."], None, [], "unanswered")),
    "empty": ([], Expected([], None, [], "unanswered")),
}


def call(name: str, status: str = "completed", **state: Any) -> Json:
    own: Json = {
        "status": status,
        "input": {"path": "a"},
        "content": [{"type": "text", "text": "done"}],
        "metadata": {},
    }
    moments = {"created": START_MS, "ran": START_MS + 10, "completed": START_MS + 35}
    return {
        "type": "tool",
        "id": f"call_{name}",
        "name": name,
        "executed": False,
        "state": own | state,
        "time": moments,
    }


def model(*content: Json | str, **row: Any) -> Json:
    said = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    own: Json = {
        "type": "assistant",
        "agent": "build",
        "model": {"id": "m-2", "providerID": "p"},
        "content": said,
        "finish": "stop",
    }
    return own | {"cost": 0.01, "tokens": {"input": 10, "output": 2}} | row


def asked(text: str) -> Json:
    return {"type": "user", "text": text}


#: Cases of session messages.
ROWS: dict[str, tuple[list[Json], Expected]] = {
    "turns": (
        [
            {"type": "agent-switched", "agent": "build"},
            asked("List."),
            asked("And count."),
            model("I look.", {"type": "reasoning", "text": "hidden"}, call("glob"), finish="tool-calls"),
            model("Two."),
            {"type": "idle", "outcome": "succeeded"},
            {"type": "compaction", "status": "completed", "reason": "auto", "summary": "## Goal", "recent": ""},
            {"type": "synthetic", "text": "Continue"},
            model("Going on."),
            asked("Thanks."),
            {"type": "system", "text": "Tools were renamed"},
            model("OK."),
        ],
        Expected(
            ["user: List.\n\nAnd count.", "model: I look.\n\nTwo.\n\nGoing on.", "user: Thanks."],
            "OK.",
            ["2 glob success"],
        ),
    ),
    "failures": (
        [
            asked("Go."),
            model(
                call(
                    "read", "error", content=[], error={"type": "unknown", "message": "Invalid tool input: Missing key"}
                )
            ),
            model(call("nope", "error", error={"type": "unknown", "message": "Unknown tool: nope"})),
            model(call("bash", structured={"exit": 3}), call("bash", metadata={"exit": 0})),
            model(call("write", "error", error={"type": "permission.rejected", "message": "no"})),
            model(call("write", "error", error={"type": "unknown", "message": RULE})),
            model(call("read", "error", error={"type": "unknown", "message": "File not found"})),
            model("Failed."),
        ],
        Expected(
            ["user: Go."],
            "Failed.",
            [
                "2 read error invalid_arguments",
                "2 nope error unknown_name",
                "2 bash error exit_code 3",
                "2 bash success 0",
                "2 write refused user_refused",
                "2 write refused rule_refused",
                "2 read error tool_error",
            ],
        ),
    ),
    "streaming": (
        [asked("Go."), model(call("bash", "streaming", input='{"command": "l'), finish=None)],
        Expected(["user: Go."], None, ["2 bash error interrupted"], "aborted"),
    ),
    "aborted tool": (
        [
            asked("Go."),
            model("Wait.", call("bash", "error", error={"type": "unknown", "message": "Tool execution interrupted"})),
        ],
        Expected(["user: Go."], "Wait.", ["2 bash error interrupted"], "aborted"),
    ),
    "aborted stream": (
        [
            asked("Go."),
            model("Once", finish="error", error={"type": "unknown", "message": "Provider turn interrupted"}),
        ],
        Expected(["user: Go."], "Once", [], "aborted"),
    ),
    "interrupted": (
        [asked("Go."), model("Once", finish=None), {"type": "idle", "outcome": "interrupted"}],
        Expected(["user: Go."], "Once", [], "aborted"),
    ),
    "api error": (
        [
            asked("Go."),
            model(finish="error", error={"type": "unknown", "message": "Provider request failed with HTTP 400"}),
        ],
        Expected(["user: Go."], None, [], "unanswered"),
    ),
    "shell": (
        [
            {
                "type": "shell",
                "shellID": "sh_1",
                "command": "ls",
                "status": "exited",
                "exit": 2,
                "output": {"output": "a"},
            },
            {"type": "shell", "shellID": "sh_2", "command": "top", "status": "killed"},
            asked("Go."),
            model("OK."),
        ],
        Expected(["user: Go."], "OK.", ["1 user shell error exit_code 2", "1 user shell error interrupted"]),
    ),
}


def as_storage(folder: Path, session: Session) -> Path:
    logs.storage(folder, [session])
    return folder


def as_database(version: str) -> Callable[[Path, Session], Path]:
    def write(folder: Path, session: Session) -> Path:
        logs.database(folder / "opencode.db", version, [session])
        return folder

    return write


def as_v2(folder: Path, session: Session) -> Path:
    logs.database(folder / "opencode.db", "2.0", [session], table="session_v2")
    return folder


def as_file(write: Callable[[Path, Session], None]) -> Callable[[Path, Session], Path]:
    def written(folder: Path, session: Session) -> Path:
        write(folder / "session.json", session)
        return folder / "session.json"

    return written


SHAPES = {
    "json": as_storage,
    "1.2": as_database("1.2"),
    "1.18": as_database("1.18"),
    "export": as_file(logs.export),
    "share": as_file(logs.share),
}
ROW_SHAPES = {"v2 api": as_database("1.18"), "2.0": as_v2, "export": as_file(logs.export_v2)}


@pytest.mark.parametrize("case", PARTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_messages_with_parts_are_read(tmp_path: Path, shape: str, case: str) -> None:
    messages, expected = PARTS[case]
    found, problems = read(SHAPES[shape](tmp_path, Session("a", messages)))
    assert (seen(found["ses_a"]), problems) == (expected, [])


@pytest.mark.parametrize("case", ROWS)
@pytest.mark.parametrize("shape", ROW_SHAPES)
def test_session_messages_are_read(tmp_path: Path, shape: str, case: str) -> None:
    rows, expected = ROWS[case]
    found, problems = read(ROW_SHAPES[shape](tmp_path, Session("a", rows=rows)))
    assert (seen(found["ses_a"]), problems) == (expected, [])


def test_the_fields_of_a_session_are_read(tmp_path: Path) -> None:
    fields = {"title": "T", "agent": "plan", "model": {"id": "m-9", "providerID": "p"}, "cost": 0.5, "tokens_input": 7}
    sub = tool("task", metadata={"sessionId": "ses_child", "parentSessionId": "ses_a"})
    child = Session("child", [user("Count."), assistant("2")], fields={"parent_id": "ses_a"})
    logs.database(tmp_path / "opencode.db", "1.18", [Session("a", [user("Go."), assistant(sub)], fields=fields), child])
    found, _ = read(tmp_path)
    one = found["ses_a"]
    assert (one.title, one.model, one.source_version, one.cost_usd, one.tokens) == (
        "T",
        "m-9",
        "1.18.33",
        0.5,
        {"input": 7},
    )
    assert one.extra == {"shape": "message_part", "agent": "plan"}
    made = one.messages[1].calls[0]
    assert (made.child_session_id, made.duration_ms, made.call_id) == ("ses_child", 25.0, "call_task")
    assert found["ses_child"].parent_session_id == "ses_a"
    # a version without these columns: the sums of the messages
    assert found["ses_child"].tokens == {"input": 10, "output": 2, "reasoning": 1, "cache_read": 3}
    assert found["ses_child"].cost_usd == pytest.approx(0.01)
    assert found["ses_child"].model == "m-1"


@pytest.mark.parametrize("revert", [{"messageID": "msg_a002"}, {"messageID": "msg_a003", "partID": "prt_a003002"}])
def test_messages_after_a_revert_are_left_out(tmp_path: Path, revert: Json) -> None:
    messages = [user("One."), assistant("1"), user("Two."), assistant("2", "not this"), user("Three.")]
    logs.database(tmp_path / "opencode.db", "1.18", [Session("a", messages, fields={"revert": revert})])
    expected = Expected(["user: One."], "1", [])
    if "partID" in revert:
        expected = Expected(["user: One.", "model: 1", "user: Two."], "2", [])
    assert seen(read(tmp_path)[0]["ses_a"]) == expected


def test_each_session_is_read_once_from_its_best_source(tmp_path: Path) -> None:
    def session(name: str, source: str) -> Session:
        return Session(name, [user("Go."), assistant(source)])

    def newer(name: str, source: str) -> Session:
        return Session(name, rows=[asked("Go."), model(source)])

    logs.storage(tmp_path, [session(name, "json") for name in ("a", "b", "json")])
    logs.database(tmp_path / "opencode.db", "2.0", [session(name, "parts") for name in ("a", "b", "old", "late")])
    logs.database(tmp_path / "opencode.db", "2.0", [newer(name, "v2") for name in ("a", "new")], table="session_v2")
    logs.database(
        tmp_path / "opencode.db",
        "2.0",
        [Session("late", fields={"title": "migrated without messages"})],
        table="session_v2",
    )
    logs.database(
        tmp_path / "opencode-dev.db", "1.18", [newer("dev", "rows"), session("b", "parts of dev"), newer("old", "rows")]
    )
    found, problems = read(tmp_path)
    assert {name: seen(one).answer for name, one in found.items()} == {
        "ses_a": "v2",
        "ses_b": "parts of dev",
        "ses_json": "json",
        "ses_old": "rows",
        "ses_late": "parts",
        "ses_new": "v2",
        "ses_dev": "rows",
    }
    assert problems == []


def test_an_export_with_content_is_preferred_to_a_sanitized_one(tmp_path: Path) -> None:
    redacted = Session("a", [user("[redacted:text:prt_1]"), assistant("[redacted:text:prt_2]")])
    logs.export(tmp_path / "1.json", redacted)
    assert read(tmp_path)[0]["ses_a"].extra["sanitized"] is True
    logs.export(tmp_path / "2.json", Session("a", PARTS["turns"][0]))
    logs.export(tmp_path / "3.json", redacted)
    assert seen(read(tmp_path)[0]["ses_a"]) == PARTS["turns"][1]


def test_a_fork_is_linked_to_the_session_that_it_copied(tmp_path: Path) -> None:
    messages = [user("One."), assistant("1")]
    copied = [({**info, "created": START_MS + number * 1000}, parts) for number, (info, parts) in enumerate(messages)]
    fork = Session("fork", [*copied, user("Two.", created=START_MS + 90_000)], start_ms=START_MS + 80_000)
    again = Session("again", [*copied], start_ms=START_MS + 95_000)
    logs.database(
        tmp_path / "opencode.db",
        "1.18",
        [again, fork, Session("a", messages), Session("other", messages, start_ms=START_MS + 1)],
    )
    found, _ = read(tmp_path)
    assert {name: one.forked_from for name, one in found.items()} == {
        "ses_a": None,
        "ses_other": None,
        "ses_fork": "ses_a",
        "ses_again": "ses_a",
    }
    assert found["ses_fork"].extra["copied_messages"] == 2


def test_a_fork_of_version_2_names_its_origin(tmp_path: Path) -> None:
    as_v2(tmp_path, Session("a", rows=[asked("Go.")], fields={"fork_session_id": "ses_0"}))
    assert read(tmp_path)[0]["ses_a"].forked_from == "ses_0"


def test_only_sessions_that_changed_since_are_read(tmp_path: Path) -> None:
    old = Session("old", [user("One.")], start_ms=START_MS - 10_000_000)
    stale_row = Session("grown", [user("One.", created=START_MS + 5000)], start_ms=START_MS - 10_000_000)
    logs.database(tmp_path / "opencode.db", "1.18", [old, stale_row, Session("new", rows=[asked("Go.")])])
    logs.storage(tmp_path, [Session("filed", [user("One.")], start_ms=START_MS - 10_000_000)])
    since = datetime.fromtimestamp(START_MS / 1000, UTC)
    assert set(read(tmp_path, since)[0]) == {"ses_grown", "ses_new"}
    assert len(read(tmp_path)[0]) == 4


LIVE = """
import sqlite3, sys
from pathlib import Path
from tests.support.opencode_logs import Session, assistant, fill, user
connection = sqlite3.connect(sys.argv[1])
fill(connection, "1.18", [Session("a", [user("Go."), assistant("OK.")])])
connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
fill(connection, "1.18", [Session("live", [user("Go."), assistant("Live.")])])
print("ready", flush=True)
sys.stdin.read()
"""


def states(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.fixture
def live(tmp_path: Path) -> Any:
    """The database of a running program; its newest session is only in the write-ahead log."""
    folder = tmp_path / "live"
    folder.mkdir()
    program = subprocess.Popen(
        [sys.executable, "-c", LIVE, str(folder / "opencode.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout
    assert program.stdout.readline() == "ready\n"
    yield folder
    program.communicate("", timeout=60)


def test_the_database_of_a_running_program_is_read_with_its_log_and_left_as_it_is(live: Path) -> None:
    before = states(live)
    assert set(before) == {"opencode.db", "opencode.db-wal", "opencode.db-shm"}
    found, problems = read(live)
    assert ({name: seen(one).answer for name, one in found.items()}, problems) == (
        {"ses_a": "OK.", "ses_live": "Live."},
        [],
    )
    assert states(live) == before


@pytest.mark.parametrize("left", [("opencode.db", "opencode.db-wal"), ("opencode.db",)])
def test_a_copied_database_is_read_and_no_file_is_made_beside_it(
    live: Path, tmp_path: Path, left: tuple[str, ...]
) -> None:
    copied = tmp_path / "copied"
    copied.mkdir()
    for name in left:
        shutil.copy(live / name, copied)
    before = states(copied)
    found, problems = read(copied)
    assert set(found) == ({"ses_a", "ses_live"} if len(left) > 1 else {"ses_a"})
    assert (problems, states(copied)) == ([], before)


def test_a_database_whose_tables_are_in_a_lost_log_is_reported(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "all.db")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    logs.fill(connection, "1.18", [Session("a", [user("Go.")])])
    shutil.copy(tmp_path / "all.db", tmp_path / "opencode.db")
    found, problems = read(tmp_path / "opencode.db")
    connection.close()
    assert (found, problems) == ({}, [Problem("missing_wal", "opencode.db")])


def test_a_database_cut_in_the_middle_is_reported_and_what_can_be_read_is_read(tmp_path: Path) -> None:
    sessions = [Session(f"s{number:03}", [user("word " * 2000), assistant("OK.")]) for number in range(100)]
    logs.database(tmp_path / "opencode.db", "1.18", sessions)
    path = tmp_path / "opencode.db"
    os.truncate(path, path.stat().st_size // 2)
    _, problems = read(tmp_path)
    assert {problem.kind for problem in problems} == {"damaged"}
    logs.storage(tmp_path, [Session("json", [user("Go."), assistant("OK.")])])
    found, _ = read(tmp_path)
    assert seen(found["ses_json"]).answer == "OK."


def test_rows_and_files_that_are_damaged_or_unknown_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    future = {"type": "hologram", "secret": "hunter2"}
    messages = [user("Go."), assistant("A", future, {"type": "my secret, hunter2"}), user("More."), assistant("B")]
    rows = [asked("Go."), {"type": "thought"}, model("A", {"type": "video"})]
    path = tmp_path / "opencode.db"
    logs.database(
        path, "1.18", [Session("a", messages), Session("b", rows=rows), Session("c", [user("Go."), assistant("C")])]
    )
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE part SET data = substr(data, 1, 10) WHERE id LIKE 'prt_a002%'")
        connection.execute("UPDATE message SET data = CAST(x'80ff' AS TEXT) WHERE id = 'msg_c001'")
        connection.execute("ALTER TABLE session RENAME COLUMN revert TO undo")
        connection.execute("ALTER TABLE session ADD COLUMN mood TEXT DEFAULT 'hunter2'")
    logs.storage(tmp_path, [Session("d", [user("Go."), assistant("D")])])
    (tmp_path / "storage/message/ses_d/msg_d001.json").write_text('{"id": "msg_d001", "ro')
    found, problems = read(tmp_path)
    assert {name: seen(one)[:2] for name, one in found.items()} == {
        "ses_a": (["user: Go."], "A\n\nB"),
        "ses_b": (["user: Go."], "A"),
        "ses_c": (["user: Go."], None),
        "ses_d": (["user: Go."], None),
    }
    assert set(problems) == {
        Problem("unknown_type", "opencode.db", 1, "part hologram"),
        Problem("unknown_type", "opencode.db", 1, "part (no name)"),
        Problem("unknown_type", "opencode.db", 1, "session_message thought"),
        Problem("unknown_type", "opencode.db", 1, "content video"),
        Problem("damaged", "opencode.db", 1, "JSON in part"),
        Problem("damaged", "opencode.db", 1, "JSON in message"),
        Problem("damaged", "storage/message", 1, "JSON"),
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", Problem("empty_file", "session.json")),
        (b'{"info": {"id": "ses_a"}, "mess', Problem("damaged", "session.json", 1, "JSON")),
        (b'{"hello": 1}', Problem("unknown_schema", "session.json")),
        (b'[{"type": "message", "data": {}}]', Problem("unknown_schema", "session.json")),
        (b"3", Problem("unknown_schema", "session.json")),
        (b"[" * 100_000, Problem("damaged", "session.json", 1, "JSON")),
    ],
)
def test_a_file_that_is_no_export_is_reported(tmp_path: Path, content: bytes, problem: Problem) -> None:
    (tmp_path / "session.json").write_bytes(content)
    assert read(tmp_path / "session.json") == ({}, [problem])


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00" + b"\x00" * 100, b"no database at all" * 100])
def test_a_file_that_is_no_database_is_reported(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "opencode.db").write_bytes(content)
    found, problems = read(tmp_path)
    assert (found, len(problems)) == ({}, 1)
    assert (problems[0].kind, problems[0].detail) == (("damaged", "not a database") if content else ("empty_file", ""))


AS_NOBODY = """
import os, sys
from pathlib import Path
from assay_sessions.readers import READERS, Problem
if os.geteuid() == 0:  # the superuser may read everything
    os.setgid(65534)
    os.setuid(65534)
for one in READERS["opencode"].read(Path(sys.argv[1]), None):
    print(f"{one.kind} {one.path}" if isinstance(one, Problem) else one.session_id)
"""


def test_files_and_folders_without_permission_are_reported_and_the_rest_is_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs.database(folder / "opencode.db", "1.18", [Session("a", [user("Go.")])])
        logs.database(folder / "opencode-dev.db", "1.18", [Session("b", [user("Go.")])])
        logs.storage(folder, [Session("c", [user("Go.")])])
        (folder / "opencode.db").chmod(0)
        (folder / "storage/message/ses_c").chmod(0)
        folder.chmod(0o755)
        done = subprocess.run([sys.executable, "-c", AS_NOBODY, name], capture_output=True, text=True, timeout=120)
        (folder / "storage/message/ses_c").chmod(0o700)
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == [
        "permission_denied opencode.db",
        "permission_denied ses_c",
        "ses_b",
        "ses_c",
    ]


def test_a_store_without_sessions_has_none(tmp_path: Path) -> None:
    logs.database(tmp_path / "opencode.db", "1.18", [])
    assert read(tmp_path) == ({}, [])
    assert read(tmp_path / "nothing") == ({}, [Problem("unreadable", "nothing", 1, "no such file or directory")])


def test_stores_are_discovered_in_their_default_places_and_below_paths(tmp_path: Path) -> None:
    reader = READERS["opencode"]
    data = tmp_path / ".local/share/opencode"
    assert reader.locations(tmp_path, {}) == [data]
    assert reader.locations(tmp_path, {"XDG_DATA_HOME": "/x", "OPENCODE_DB": "mine.db"}) == [
        Path("/x/opencode"),
        Path("/x/opencode/mine.db"),
    ]
    data.mkdir(parents=True)
    logs.database(data / "opencode.db", "1.18", [])
    export = tmp_path / "one.json"
    logs.export(export, Session("a"))
    given = [data, data / "opencode.db", data.parent, tmp_path / "missing", export]
    assert list(reader.discover(given)) == [data, export]
