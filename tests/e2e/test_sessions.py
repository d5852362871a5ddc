"""Sessions as their users import them: from an agent's log through the whole system, and out again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_sessions.document import derived, document
from assay_sessions.readers import READERS
from assay_sessions.record import Transcript
from tests.support.cli import called
from tests.support.opencode_logs import START_MS, Session, assistant, database, tool, user
from tests.support.stack import System, running
from tests.support.wait import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.bare_only,
    pytest.mark.server,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("sessions"),
]

#: Documentation addresses and invented keys, one in each place where a log can hold one.
PLANTED = {
    "title": "ada.title@example.com",
    "prompt": "ada.prompt@example.com",
    "answer": "ada.answer@example.com",
    "argument": "h7Xk2pQz9wLmR4tV",
    "path": "ada.path@example.com",
    "result": "postgres://planted:hunter2planted@db.example.com:5432/shop",
    "error": "AKIAQ3EGPLANTED77XYZ",
}


@pytest.fixture(scope="module")
def system(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running(tmp_path_factory.mktemp("system"), "--no-quality", tables=tables) as system:
        yield system


def assay(system: System, *arguments: str, code: int = 0) -> str:
    done = called(*arguments, "--data", str(system.data))
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout.decode()


def imported(system: System, log: Path, *options: str) -> str:
    """Import a log in its own process, whose end shows that it sent everything."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    command = [sys.executable, "-m", "assay_cli", "sessions", "import", "--from", "opencode", str(log), "--quiet"]
    command += [*options, "--data", str(system.data)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()[0]


def exported(system: System, project: str) -> dict[str, dict[str, Any]]:
    lines = assay(system, "sessions", "export", "--quiet", "--project", project).splitlines()
    found = {row["session_id"]: row for row in map(json.loads, lines)}
    assert len(found) == len(lines)
    assert [row.pop("project") for row in found.values()] == [project] * len(found)
    return found


def documents(log: Path) -> dict[str, dict[str, Any]]:
    read = [each for each in READERS["opencode"].read(log, None) if isinstance(each, Transcript)]
    return {each.session_id: derived(document(each)) for each in read}


def test_every_session_is_stored_once_and_comes_back_as_it_was(system: System, tmp_path: Path) -> None:
    log = tmp_path / "opencode.db"
    database(log, "1.18", [_session(str(number)) for number in range(5)])
    assert imported(system, log, "--project", "once").startswith("5 sessions found (5 opencode): 5 new or changed")
    assert imported(system, log, "--project", "once").endswith("0 new or changed, 5 already stored")
    assert exported(system, "once") == documents(log)
    rows = [
        json.loads(line)
        for line in assay(system, "sessions", "list", "--since", "9999d", "--project", "once", "--json").splitlines()
    ]
    assert {(row["turns"], row["tools"], row["status"], row["complete"]) for row in rows} == {(2, 1, "answered", True)}


def test_a_session_that_grew_replaces_its_earlier_revision(system: System, tmp_path: Path) -> None:
    for number, words in enumerate((("List.", "Two."), ("List.", "Two.", "Thanks.", "Welcome."))):
        log = tmp_path / f"{number}.db"
        turns = [(user if at % 2 == 0 else assistant)(text) for at, text in enumerate(words)]
        database(log, "1.18", [Session("grown", turns, start_ms=START_MS + number * 60_000)])
        assert " 1 new or changed" in imported(system, log, "--project", "grown")
    assert [row["metadata"]["total_turns"] for row in exported(system, "grown").values()] == [4]
    assert imported(system, tmp_path / "0.db", "--project", "grown").endswith("0 new or changed, 1 already stored")


def test_watching_imports_the_next_turn_and_ends_with_ctrl_c(system: System, tmp_path: Path) -> None:
    log = tmp_path / "opencode.db"
    start = int(time.time() * 1000)
    database(log, "1.18", [Session("watched", [user("List."), assistant("Two.")], start_ms=start)])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    command = [sys.executable, "-m", "assay_cli", "sessions", "import", "--from", "opencode", str(log), "--watch"]
    with subprocess.Popen(
        [*command, "--project", "watched", "--data", str(system.data)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as watching:
        assert watching.stdout
        assert " 1 new or changed" in watching.stdout.readline()
        log.unlink()
        turns = [user("List."), assistant("Two."), user("Thanks."), assistant("Welcome.")]
        database(log, "1.18", [Session("watched", turns, start_ms=start + 1_000)])
        assert " 1 new or changed" in watching.stdout.readline()
        log.unlink()  # and one of last year comes, such as from a backup
        old = Session("old", [user("List."), assistant("Two.")], start_ms=start - 365 * 86_400_000)
        database(log, "1.18", [Session("watched", turns, start_ms=start + 1_000), old])
        assert "2 sessions found (2 opencode): 1 new or changed" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) in (0, 130)
    until(lambda: len(exported(system, "watched")) == 2, "they are stored", 60)
    found = exported(system, "watched")
    assert {name: row["metadata"]["total_turns"] for name, row in found.items()} == {"ses_watched": 4, "ses_old": 2}


def test_the_export_continues_where_the_one_before_ended(system: System, tmp_path: Path) -> None:
    cursor = tmp_path / "cursor"

    def export() -> list[str]:
        options = ("--quiet", "--project", "chain", "--cursor-file", str(cursor))
        return [json.loads(line)["session_id"] for line in assay(system, "sessions", "export", *options).splitlines()]

    log = tmp_path / "first.db"
    database(log, "1.18", [_session("a"), _session("b")])
    imported(system, log, "--project", "chain")
    until(lambda: len(exported(system, "chain")) == 2, "the watermark passed both", 60)
    assert sorted(export()) == ["ses_a", "ses_b"]
    log = tmp_path / "second.db"
    database(log, "1.18", [_session("b"), _session("c")])
    imported(system, log, "--project", "chain")
    until(lambda: len(exported(system, "chain")) == 3, "the watermark passed the third", 60)
    assert export() == ["ses_c"]
    assert export() == []


def test_a_session_of_twenty_mebibytes_goes_through_and_comes_back_whole(system: System, tmp_path: Path) -> None:
    chance, words = random.Random(5), ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    calls = [
        tool("read", input={"path": f"src/{number}.py"}, output=f"{number} " + " ".join(chance.choices(words, k=1_900)))
        for number in range(1_999)
    ]
    calls.append(tool("read", output="\n".join(" ".join(chance.choices(words, k=20)) for _ in range(6_000))))
    log = tmp_path / "large.db"
    database(log, "1.18", [Session("large", [user("Read all."), assistant(*calls), assistant("All read.")])])
    assert log.stat().st_size > 20 * 1024 * 1024
    assert " 1 new or changed" in imported(system, log, "--project", "large")
    until(lambda: exported(system, "large").keys() == {"ses_large"}, "the watermark passed its last part", 60)
    assert exported(system, "large") == documents(log)
    [parts] = (
        system.store("sre").query("SELECT max(parts) FROM assay.session_parts WHERE project = 'large'").result_rows
    )
    assert parts[0] > 50


def test_what_is_planted_anywhere_in_a_log_is_in_no_row_file_or_log(system: System, tmp_path: Path) -> None:
    log = tmp_path / "planted.db"
    calls = [
        tool("bash", input={"command": "deploy", "password": PLANTED["argument"]}, output=f"at {PLANTED['result']}"),
        tool(
            "read", input={"path": f"/home/{PLANTED['path']}/a.txt"}, output="x " * 40_000 + f"key {PLANTED['error']}"
        ),
        tool("read", "error", error=f"refused for {PLANTED['error']}"),
    ]
    turns = [user(f"Write to {PLANTED['prompt']}"), assistant(*calls), assistant(f"Written to {PLANTED['answer']}.")]
    database(log, "1.18", [Session("planted", turns, fields={"title": f"Mail {PLANTED['title']}"})])
    imported(system, log, "--project", "planted")
    until(lambda: len(exported(system, "planted")) == 1, "it is stored", 60)
    shown = assay(system, "sessions", "show", "ses_planted", "--project", "planted")
    shown += json.dumps(exported(system, "planted")) + assay(
        system, "sessions", "list", "--since", "9999d", "--project", "planted"
    )
    for planted in PLANTED.values():
        assert planted not in shown
    assert "REDACTED" in shown
    stored = (
        system.store("sre")
        .query("SELECT * EXCEPT event_id FROM assay.session_parts WHERE project = 'planted'")
        .result_rows
    )
    logs = "".join(file.read_text(errors="replace") for file in (system.data / "logs").glob("*.log"))
    for planted in PLANTED.values():
        assert planted not in str(stored)
        assert planted not in logs


def test_checks_find_the_session_that_breaks_a_rule_and_exit_with_1(system: System, tmp_path: Path) -> None:
    log = tmp_path / "checked.db"
    loop = Session("loop", [user("Look."), assistant(*(tool("read") for _ in range(4))), assistant("Looked.")])
    database(log, "1.18", [_session("fine"), loop])
    imported(system, log, "--project", "checked")
    until(lambda: len(exported(system, "checked")) == 2, "both are stored", 60)
    rules = tmp_path / "sessions.toml"
    rules.write_text("[rules.no_loops]\nrequired = true\n[rules.answered]\nrequired = true\n")
    options = (
        "--rules",
        str(rules),
        "--junit",
        str(tmp_path / "checks.xml"),
        "--markdown",
        str(tmp_path / "checks.md"),
    )
    shown = assay(system, "sessions", "check", "--project", "checked", "--quiet", *options, code=1)
    assert "no_loops: checked/ses_loop" in shown
    assert 'failures="1"' in (tmp_path / "checks.xml").read_text()
    assert "ses_loop" in (tmp_path / "checks.md").read_text()
    one = ("--session", "ses_fine", "--project", "checked", "--inconclusive", "pass", "--quiet")
    assay(system, "sessions", "check", *one, *options[:2])
    file = tmp_path / "sessions.ndjson"
    file.write_text(assay(system, "sessions", "export", "--quiet", "--project", "checked"))
    from_file = assay(system, "sessions", "check", str(file), "--quiet", *options[:2], code=1)
    assert from_file == shown
    imported(system, log, "--project", "checked-too")
    until(lambda: len(exported(system, "checked-too")) == 2, "both are stored", 60)
    session = ("--session", "ses_loop", "--quiet", *options[:2])
    both = assay(system, "sessions", "check", *session, code=1)
    assert "no_loops: checked/ses_loop" in both
    assert "no_loops: checked-too/ses_loop" in both
    file.write_text(assay(system, "sessions", "export", "--quiet"))
    for place in ((), (str(file),)):
        alone = assay(system, "sessions", "check", *place, *session, "--project", "checked-too", code=1)
        assert "no_loops: checked-too/ses_loop" in alone
        assert "checked/ses_loop" not in alone
    assert assay(system, "sessions", "check", str(file), "--since", "1h", code=2) == ""
    for place in ((), (str(file),)):
        assert assay(system, "sessions", "check", *place, "--session", "ghost", "--quiet", code=2) == ""
    rules.write_text("[rules.no_lops]\n")
    assert assay(system, "sessions", "check", "--rules", str(rules), code=2) == ""


def test_what_cannot_be_imported_is_named_and_exits_with_2(system: System, tmp_path: Path) -> None:
    odd = tmp_path / "odd.jsonl"
    odd.write_text('{"vision": 1}\nnot json\n{"messages": []}\n')

    def run(*options: str) -> tuple[int, str, str]:
        done = called("sessions", "import", "--data", str(system.data), *options, settings={"COLUMNS": "200"})
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    code, out, said = run("--from", "jsonl", str(odd))
    assert (code, out) == (2, "0 sessions found: 0 new or changed, 0 already stored\n")
    assert [line.split(" in odd")[0] for line in said.splitlines()[:3]] == [
        "not read: damaged (line 2)", "not read: no session id (line)", "not read: unknown type (line vision)",
    ]  # fmt: skip
    assert "  no session id: give each session a session_id, and import again" in said.splitlines()
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"session_id": "c", "messages": [{"role": "user", "content": "Hi."}]}\n')
    code, out, said = run("--from", "codex", str(chat))
    assert (code, said.splitlines()[0]) == (
        2, "not read: another format (it looks like jsonl: --from jsonl) in chat.jsonl",
    )  # fmt: skip
    code, out, said = run("--from", "codex", str(tmp_path))
    assert (code, "but of jsonl: import it with --from jsonl" in said) == (2, True)
    (tmp_path / "empty.jsonl").touch()
    code, out, said = run("--from", "jsonl", str(tmp_path / "empty.jsonl"))
    assert (code, said.splitlines()[0]) == (2, "not read: empty file in empty.jsonl")
    row = '{"type": "vision", "timestamp": "2026-01-02T03:04:05Z", "payload": {}}\n'
    (tmp_path / "rollout-x.jsonl").write_text(row)
    code, out, said = run("--from", "codex", str(tmp_path / "rollout-x.jsonl"))
    findings = {each["check"]: each for each in json.loads(assay(system, "doctor", "--json"))}
    assert "from codex did not read: unknown type (row vision)" in findings["sessions"]["summary"]
    assert "from jsonl did not read: damaged (line 2) in odd.jsonl" in findings["sessions"]["summary"]
    for options, words in (
        ((str(odd),), "--from"),
        (("--from", "jsonl", str(odd), "--project", "bad name!"), "'bad name!' is not the name of a project"),
        (("--from", "jsonl", str(tmp_path / "gone")), "does not exist"),
    ):
        code, out, said = run(*options)
        assert (code, out) == (2, "")
        assert words in said
        assert "Traceback" not in said


def test_a_part_that_never_arrives_leaves_its_session_incomplete_and_out_of_every_export(
    system: System, tmp_path: Path
) -> None:
    redis = system.redis("producer")
    event = {
        "schema_version": 1, "event_id": "019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d", "kind": "session", "project": "half",
        "service": "jsonl", "occurred_at": "2026-01-02T03:04:05Z",
        "payload": {
            "session_id": "half", "created": "2026-01-02T03:04:05Z", "part": 1, "parts": 2, "revision": 7, "digest": "ab",
            "request": {"contents": []}, "response": {"candidates": []},
        },
    }  # fmt: skip
    redis.xadd("assay:{0}:capture", {"data": json.dumps(event)})

    def listed() -> list[dict[str, Any]]:
        lines = assay(system, "sessions", "list", "--since", "9999d", "--project", "half", "--json").splitlines()
        return [json.loads(line) for line in lines]

    until(lambda: len(listed()) == 1, "its first part is stored", 60)
    assert listed()[0]["complete"] is False
    assert exported(system, "half") == {}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    command = [sys.executable, "-m", "assay_cli", "sessions", "show", "half", "--data", str(system.data)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, "have not arrived yet" in done.stderr) == (2, True)


def _session(name: str) -> Session:
    return Session(name, [user(f"List {name}."), assistant(tool("glob")), assistant("Two files.")])
