"""The agent: what its scenes script is what it does, captures and logs, exactly."""

import json
import stat
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from assay_demo.agent.player import SUB_AGENT
from assay_demo.agent.scenes import Scene, read_scenes, scripted
from assay_demo.agent.session_log import SOURCE, LogFile
from assay_schema.streams import CAPTURE, FIELD
from assay_schema.validation import parse_event
from assay_sessions.checks.checker import Checker
from assay_sessions.checks.rules_file import default_rules
from assay_sessions.document import document
from assay_sessions.readers import READERS
from assay_sessions.record import Transcript
from tests.support.demo import planted_in, run_demo
from tests.support.redis import RedisServer

SCENES = read_scenes()
SCRIPT = scripted(SCENES)


class Played:
    """One run of the agent alone: its output, its log, and the events that it captured."""

    def __init__(self, done: subprocess.CompletedProcess[str], log: Path, entries: list[bytes]) -> None:
        assert done.returncode == 0, done.stderr
        self.output = done.stdout + done.stderr
        self.report = json.loads(done.stdout.splitlines()[-1])
        self.log = log
        self.raw = b"\n".join(entries).decode()
        self.events = [parse_event(entry) for entry in entries]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The payloads of a kind, each with the session that it belongs to."""
        return [
            event.payload.model_dump() | {"session_id": event.session_id}
            for event in self.events
            if event.kind.value == kind
        ]

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    folder = tmp_path_factory.mktemp("run")
    log = folder / "agent/sessions.jsonl"
    environment = {
        "ASSAY_CAPTURE": "1",
        "ASSAY_REDIS_URL": server.url,
        "ASSAY_CAPTURE_SPOOL_DIR": str(folder / "spool"),
        "ASSAY_CAPTURE_EXIT_DEADLINE_S": "60",
    }
    try:
        done = run_demo(folder, environment, "--rounds", "0", "--no-pii", "--agent-log", str(log))
        with server.client() as client:
            return Played(done, log, [fields[FIELD.encode()] for _, fields in client.xrange(CAPTURE.key())])
    finally:
        server.stop()


def scene_of(session_id: str) -> Scene:
    """The scene of a session: `PREFIX-SCENE-NUMBER`, or that with the name of a sub-agent's scene."""
    name = next((name for name in SCENES if session_id.endswith(f"-{name}")), None)
    return SCENES[name or session_id.split("-", 2)[2].rpartition("-")[0]]


def test_the_script_has_every_status_every_ending_and_a_few_dozen_sessions() -> None:
    assert set(SCRIPT.tool_calls) == {"success", "empty", "partial", "degraded", "error", "refused"}
    assert set(SCRIPT.sessions) == {"answered", "unanswered", "aborted", "open"}
    assert 30 <= SCRIPT.sessions.total() <= 40
    assert len(SCENES) >= 16


def test_it_does_and_captures_exactly_what_is_scripted(played: Played) -> None:
    agent = played.report["agent"]
    assert agent["tool_calls"] == SCRIPT.tool_calls
    assert agent["sessions"] == SCRIPT.sessions
    assert played.report["captured"] == SCRIPT.captured
    assert Counter(event.kind.value for event in played.events) == SCRIPT.captured
    assert len({event.event_id for event in played.events}) == SCRIPT.captured.total()
    assert Counter(call["status"] for call in played.of("tool_call")) == SCRIPT.tool_calls


def test_each_session_has_the_calls_of_its_scene(played: Played) -> None:
    calls: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for call in played.of("tool_call"):
        calls[call["session_id"]][call["tool_name"], call["status"]] += 1
    for session_id, made in calls.items():
        scene = scene_of(session_id)
        wanted = Counter[tuple[str, str]]()
        for step in scene.steps:
            if step.call or step.delegate:
                wanted[step.call or "delegate", step.gives] += step.times
        assert made == wanted, session_id
    assert len(calls) == SCRIPT.sessions.total() - len(SCENES["rated"].asks)


def test_answers_retrievals_and_feedback_belong_to_the_session_in_which_they_were_given(played: Played) -> None:
    for kind in ("retrieval", "answer", "feedback"):
        scenes = Counter(scene_of(event["session_id"]).name for event in played.of(kind))
        assert scenes == {"rated": len(SCENES["rated"].asks), "disliked": len(SCENES["disliked"].asks)}


def test_a_sub_agent_is_a_client_of_its_own_and_its_session_names_its_parent(played: Played) -> None:
    by_id = {each["session_id"]: each for each in played.documents}
    started = {
        call["child_session_id"]: each["session_id"]
        for each in by_id.values()
        for call in each["intermediate_events"]
        if "child_session_id" in call
    }
    assert len(started) == len(SCENES["delegates"].asks)
    assert {child: by_id[child]["metadata"]["parent_session_id"] for child in started} == started
    agents = {(call["session_id"] in started, call["agent_name"]) for call in played.of("tool_call")}
    assert agents == {(True, SUB_AGENT), (False, SOURCE)}


def test_failed_calls_have_the_kind_of_their_error(played: Played) -> None:
    kinds = {(call["tool_name"], call["error_kind"]) for call in played.of("tool_call") if call["error_kind"]}
    assert kinds == {
        ("read", "tool_error"),
        ("search", "tool_error"),
        ("summarize", "unknown_name"),
        ("find_maintainer", "pii_blocked"),
        ("rebuild_index", "cancelled"),
        ("bash", "exit_code"),
        ("bash", "rule_refused"),
    }


def test_its_log_is_private_and_has_each_session_once_except_open_ones(played: Played) -> None:
    assert stat.S_IMODE(played.log.stat().st_mode) == 0o600
    assert stat.S_IMODE(played.log.parent.stat().st_mode) == 0o700
    ids = [each["session_id"] for each in played.documents]
    assert len(ids) == len(set(ids)) == SCRIPT.sessions.total() - SCRIPT.sessions["open"]
    assert all(each.startswith(played.report["agent"]["prefix"]) for each in ids)
    unlogged = {call["session_id"] for call in played.of("tool_call")} - set(ids)
    assert [scene_of(each).ends for each in unlogged] == ["open"] * SCRIPT.sessions["open"]


def test_the_import_reads_its_log_as_it_was_written(played: Played) -> None:
    read = list(READERS["jsonl"].read(played.log, None))
    assert all(isinstance(each, Transcript) for each in read), "it has problems"
    for made, written in zip(
        (document(each) for each in read if isinstance(each, Transcript)), played.documents, strict=True
    ):
        assert made["metadata"]["status"] == scene_of(written["session_id"]).ends
        assert made["metadata"]["source"] == SOURCE
        for name in ("session_id", "title", "request", "response"):
            assert made[name] == written[name]
        calls = [{**call, "executed_by": "agent"} for call in written["intermediate_events"]]
        assert [_without_exit(call) for call in made["intermediate_events"]] == calls


def _without_exit(call: dict[str, Any]) -> dict[str, Any]:
    """A call without the copy of its exit code in the response."""
    call["function_response"]["response"].pop("exit_code", None)
    return call


@pytest.mark.parametrize(
    ("rule", "scenes"),
    [
        ("answered", {"unanswered"}),
        ("not_aborted", {"interrupted"}),
        ("no_loops", {"loop"}),
        ("no_call_after_refusal", {"refused-again"}),
        ("no_false_success", {"false-success"}),
        ("no_failed_commands", {"false-success", "fixes-a-test"}),
        ("no_unknown_tools", {"unknown-tool"}),
        ("no_truncated_outputs", set()),
    ],
)
def test_each_rule_finds_the_scenes_that_break_it(played: Played, rule: str, scenes: set[str]) -> None:
    checker = Checker(default_rules())
    read = [each for each in READERS["jsonl"].read(played.log, None) if isinstance(each, Transcript)]
    failed = {
        scene_of(each.session_id).name for each in read if checker.check(document(each)).findings[rule].state == "fail"
    }
    assert failed == scenes


def test_planted_values_reach_the_stream_and_the_log_and_no_output(played: Played) -> None:
    planted = planted_in(played.log)
    assert len(planted) == 3 * len(SCENES["planted"].asks)
    assert [value for value in planted if value not in played.raw] == []
    assert [value for value in planted if value in played.output] == []


def test_a_second_run_replaces_the_log(tmp_path: Path) -> None:
    path = tmp_path / "agent/sessions.jsonl"
    for text in ("one", "two"):
        log = LogFile(path)
        log.append({"session_id": text})
        log.close()
        path.chmod(0o644)
    log = LogFile(path)
    log.close()
    assert path.read_text() == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
