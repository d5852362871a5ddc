"""`capture.sink`: the file of events, its lines, its rotation, and what it loses."""

import errno
import logging
import multiprocessing
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_capture import Capture, SettingsError, event_file, rotating_file
from assay_capture.rotating_file import RotatingFile
from assay_schema.event_file import FIELDS
from assay_schema.settings import Settings
from tests.support.redis import RedisServer

NOWHERE = "redis://127.0.0.1:1/0"
WHO = "ada.planted@example.com"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "deep" / "events.jsonl"


@pytest.fixture
def to_file(make_capture: Any, path: Path) -> Callable[..., Capture]:
    def make(url: str = NOWHERE, **settings: Any) -> Capture:
        made: Capture = make_capture(url, **({"sink": "file", "file_path": path} | settings))
        return made

    return make


def lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def balanced(capture: Capture) -> bool:
    stats = capture.stats()
    return stats.captured == stats.file_lines + sum(stats.file_dropped.values()) + stats.file_waiting


# Lines


def test_a_tool_call_is_a_line_with_the_eleven_fields_first(to_file: Any, path: Path) -> None:
    capture: Capture = to_file()
    with capture.server_session() as run, capture.in_session("chat"):
        event_id = capture.tool_call(tool_name="t", duration_ms=1.5, args_summary={"q": "x"}, call_id="7")
    capture.server_event(event_subtype="events_path_init", message="m")
    assert capture.flush(60)
    start, call, stop, other = lines(path)
    for line in (start, call, stop, other):
        assert list(line)[:11] == list(FIELDS)
        assert len(line["timestamp"]) == len("2026-05-17T14:32:07.114523Z")
    assert list(call)[11:] == ["call_id", "seq", "event_id", "project", "service", "session_id"]
    assert (call["event_id"], call["server_session_id"], call["seq"]) == (event_id, run, 1)
    assert (call["args_summary"], call["result_summary"], call["session_id"]) == ({"q": "x"}, {}, "chat")
    assert (start["event_subtype"], stop["event_subtype"]) == ("server_start", "server_stop")


def test_other_kinds_are_lines_with_the_event_itself(to_file: Any, path: Path, retrieve: Any) -> None:
    capture: Capture = to_file()
    event_id = retrieve(capture, f"mail {WHO}")
    assert capture.flush(60)
    [line] = lines(path)
    assert (line["event_id"], line["kind"], line["payload"]["query"]) == (event_id, "retrieval", "mail [REDACTED]")


def test_a_line_is_ascii_so_that_no_character_ends_it(to_file: Any, path: Path) -> None:
    capture: Capture = to_file()
    capture.tool_call(tool_name="t", duration_ms=1, args_summary={"q": "a\u2028b\x85c\nd é"})
    assert capture.flush(60)
    assert path.read_bytes().isascii()
    assert len(path.read_text().splitlines()) == 1
    assert lines(path)[0]["args_summary"] == {"q": "a\u2028b\x85c\nd é"}


def test_nothing_unscrubbed_reaches_the_file(to_file: Any, path: Path, retrieve: Any) -> None:
    capture: Capture = to_file()
    long_text = "x" * 2040 + "ssn 219-09-9999" * 10
    capture.tool_call(
        tool_name="get_metric",
        duration_ms=1,
        args_summary={"filters": {"name": "Ada", "n": 5, "none": None}, "deep": [{"url": "see postgres://u:p@h/d"}]},
        result_summary={"text": long_text, "who": f"for {WHO}", "card": "4111 1111 1111 1111"},
    )
    retrieve(capture, WHO, latency_ms=WHO, occurred_at=WHO)  # breaks the contract in two fields
    capture.tool_call(tool_name="", duration_ms=-1, args_summary={"filters": {"name": "Ada"}, "who": WHO})
    capture.tool_call(tool_name="AKIA" + "QYLPMN5HFIQR7XYA", duration_ms=1)
    assert capture.flush(60)
    text = path.read_text()
    for planted in (WHO, "219-09-9999", "4111", "Ada", "u:p@h", "QYLPMN5HFIQR7XYA", "xxxx"):
        assert planted not in text
    first, _, third = lines(path)
    assert first["args_summary"] == {
        "filters": {"name": "<value>", "n": "<value>", "none": None},
        "deep": [{"url": "<redacted-connection-url>"}],
    }
    assert first["result_summary"] == {
        "text": f"<truncated:{len(long_text)} bytes>",
        "who": "<email>",
        "card": "[REDACTED]",
    }
    assert third["args_summary"] == {"filters": {"name": "<value>"}, "who": "<email>"}
    assert capture.stats().file_dropped == {"credential_in_name": 1}
    assert balanced(capture)


def test_events_that_break_the_contract_are_counted_and_logged_by_kind_and_field(
    to_file: Any, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    capture: Capture = to_file()
    for duration in (1, 2, -1):
        capture.tool_call(tool_name="t", duration_ms=duration, status=WHO)  # type: ignore[arg-type]
    capture.feedback(target_event_id=capture.tool_call(tool_name="t", duration_ms=1), verdict=WHO)  # type: ignore[arg-type]
    for place in range(30):
        capture.retrieval(
            tool_name="query", query="q", retrieved_slugs=["a"] * place + [7], retrieved_chunk_ids=[], latency_ms=1
        )  # type: ignore[list-item]
    assert capture.flush(60)
    stats = capture.stats()
    assert (stats.file_invalid, stats.file_lines, stats.file_dropped) == (3 + 1 + 30, 35, {})
    assert balanced(capture)
    logged = [record.getMessage() for record in caplog.records if "breaks the contract" in record.getMessage()]
    assert [re.split(r"[,)]", each.partition("(")[2])[0] for each in logged] == [
        "tool_call: payload.status: literal_error",
        "tool_call: payload.status: literal_error",
        "feedback: payload.verdict: literal_error",
        "retrieval: payload.retrieved_slugs: string_type",
    ]
    assert "payload.duration_ms: greater_than_equal" in logged[1]
    assert WHO not in caplog.text


@pytest.mark.parametrize("sink", ["redis", "file", "both"])
def test_events_go_where_the_setting_says(
    sink: str, to_file: Any, path: Path, redis_server: RedisServer, arrived: Any, retrieve: Any
) -> None:
    capture: Capture = to_file(redis_server.url, sink=sink)
    retrieve(capture, f"mail {WHO}")
    capture.tool_call(tool_name="t", duration_ms=1, args_summary={"x": b"bytes"})
    capture.retrieval(tool_name="query", query=b"bytes", retrieved_slugs=[], retrieved_chunk_ids=[], latency_ms=1)  # type: ignore[arg-type]
    assert capture.flush(60)
    stats = capture.stats()
    assert stats.captured == 3
    assert len(arrived(redis_server)) == stats.published == (0 if sink == "file" else 2)
    assert (len(lines(path)) if path.exists() else 0) == stats.file_lines == (0 if sink == "redis" else 2)
    # Only the file is scrubbed here: the service scrubs what is in Redis.
    assert [event["payload"]["query"] for event in arrived(redis_server)[:1]] == (
        [] if sink == "file" else [f"mail {WHO}"]
    )
    lost = {"unserialisable": 1}
    assert (stats.dropped, stats.file_dropped) == ({} if sink == "file" else lost, {} if sink == "redis" else lost)
    capture.close()
    retrieve(capture)
    late = {"unserialisable": 1, "closed": 1}
    stats = capture.stats()
    assert (stats.dropped, stats.file_dropped) == ({} if sink == "file" else late, {} if sink == "redis" else late)
    if sink != "file":
        assert stats.captured == stats.published + stats.spooled + sum(stats.dropped.values()) + stats.queue_entries
    if sink != "redis":
        assert balanced(capture)


def test_a_file_needs_the_scrubber_and_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    settings = Settings.model_validate({"capture": {"sink": "both", "file_path": tmp_path / "events.jsonl"}})
    with pytest.raises(
        SettingsError, match=r"capture\.sink \(or ASSAY_CAPTURE_SINK\) is both.*capture\[file\].*to redis"
    ):
        Capture(settings, enabled=True)
    Capture(settings, enabled=False)


# Directory, permissions, errors


def test_only_what_it_makes_is_private(to_file: Any, path: Path, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir(mode=0o755)
    capture: Capture = to_file()
    capture.tool_call(tool_name="t", duration_ms=1)
    assert capture.flush(60)
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (tmp_path / "made", path.parent, path)]
    assert modes == [0o755, 0o700, 0o600]


def test_the_default_is_in_the_state_directory(
    make_capture: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    capture: Capture = make_capture(NOWHERE, sink="file")
    monkeypatch.chdir("/")
    capture.tool_call(tool_name="t", duration_ms=1)
    assert capture.flush(60)
    assert len(lines(tmp_path / "state" / "assay" / "events.jsonl")) == 1


def test_a_relative_path_is_that_of_the_start(to_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    capture: Capture = to_file(file_path=Path("own.jsonl"))
    monkeypatch.chdir("/")
    capture.tool_call(tool_name="t", duration_ms=1)
    assert capture.flush(60)
    assert len(lines(tmp_path / "own.jsonl")) == 1


@pytest.mark.parametrize("broken", ["a directory", "a link", "a file above"])
def test_a_file_that_cannot_be_written_costs_the_events_alone_and_is_logged_once(
    broken: str, to_file: Any, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="assay_capture")
    if broken == "a file above":
        (tmp_path / "made").write_text("")
    else:
        path.parent.mkdir(parents=True)
        if broken == "a directory":
            path.mkdir()
        else:
            path.symlink_to(tmp_path / "elsewhere")
    capture: Capture = to_file()
    for _ in range(5):
        capture.tool_call(tool_name="secret-tool", duration_ms=1)
        assert capture.flush(60)
    assert capture.stats().file_dropped == {"file_error": 5}
    assert balanced(capture)
    logged = [record.getMessage() for record in caplog.records]
    assert len([text for text in logged if "cannot be written" in text]) == 1
    assert all("secret-tool" not in text for text in logged)
    assert not (tmp_path / "elsewhere").exists()
    # It recovers once the obstacle is gone.
    if broken == "a directory":
        path.rmdir()
        capture.tool_call(tool_name="t", duration_ms=1)
        assert capture.flush(60)
        assert capture.stats().file_lines == len(lines(path)) == 1


def test_a_full_disk_leaves_a_torn_line_that_costs_nothing_but_itself(
    to_file: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture: Capture = to_file()
    capture.tool_call(tool_name="before", duration_ms=1)
    assert capture.flush(60)
    write = os.write
    monkeypatch.setattr(rotating_file.os, "write", lambda descriptor, data: write(descriptor, data[:40]))
    capture.tool_call(tool_name="torn", duration_ms=1)
    assert capture.flush(60)
    monkeypatch.undo()
    capture.tool_call(tool_name="after", duration_ms=1)
    assert capture.flush(60)
    first, torn, last, end = path.read_bytes().split(b"\n")
    assert (orjson.loads(first)["tool_name"], len(torn), orjson.loads(last)["tool_name"], end) == (
        "before",
        40,
        "after",
        b"",
    )
    assert capture.stats().file_dropped == {"file_error": 1}
    assert capture.stats().file_lines == 2


def test_every_error_of_the_system_is_counted(to_file: Any, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture: Capture = to_file()

    def refuse(*_: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for name in ("open", "write", "fstat", "pread"):
        monkeypatch.setattr(rotating_file.os, name, refuse)
        capture.tool_call(tool_name="t", duration_ms=1)
        assert capture.flush(60)
        monkeypatch.undo()
        capture.tool_call(tool_name="t", duration_ms=1)
        assert capture.flush(60)
    assert balanced(capture)
    assert capture.stats().file_lines == len(lines(path))
    assert capture.stats().file_dropped["file_error"] >= 3  # the empty file is not read back


# Bounds, blocking, ends


class Held:
    """Holds the file's lock, as a stopped process would."""

    def __init__(self, path: Path) -> None:
        self._go, self._have = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold, args=(path,))
        self._thread.start()
        assert self._have.wait(60)

    def _hold(self, path: Path) -> None:
        def nothing() -> None:
            self._have.set()
            self._go.wait(120)

        RotatingFile(path, 1024, 1).append(nothing)

    def let_go(self) -> None:
        self._go.set()
        self._thread.join()


def test_a_locked_file_blocks_no_caller_and_the_queue_is_bounded(to_file: Any, path: Path) -> None:
    held = Held(path)
    capture: Capture = to_file(queue_entries=10)
    for _ in range(50):
        capture.tool_call(tool_name="t", duration_ms=1)
    assert not capture.flush(0.2)
    assert capture.stats().file_waiting == 10
    assert capture.stats().file_dropped == {"queue_full": 40}
    assert balanced(capture)
    held.let_go()
    assert capture.flush(60)
    assert capture.stats().file_lines == len(lines(path)) == 10


def test_close_gives_up_after_its_deadline_and_counts_the_rest(to_file: Any, path: Path) -> None:
    held = Held(path)
    capture: Capture = to_file()
    for _ in range(5):
        capture.tool_call(tool_name="t", duration_ms=1)
    capture.close(0.2)
    assert capture.stats().file_dropped == {"exit_deadline": 5}
    held.let_go()
    assert balanced(capture)
    assert lines(path) == []


def test_close_writes_what_is_waiting(to_file: Any, path: Path) -> None:
    capture: Capture = to_file()
    for _ in range(500):
        capture.tool_call(tool_name="t", duration_ms=1)
    capture.close(60)
    assert len(lines(path)) == capture.stats().file_lines == 500


def test_close_writes_even_if_no_thread_could_be_started(
    to_file: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise RuntimeError("no thread")

    monkeypatch.setattr(event_file, "start_thread", refuse)
    capture: Capture = to_file()
    capture.tool_call(tool_name="t", duration_ms=1)
    assert capture.stats().file_waiting == 1
    capture.close(60)
    assert len(lines(path)) == 1
    assert balanced(capture)


def test_a_forked_child_writes_only_its_own_events(to_file: Any, path: Path) -> None:
    capture: Capture = to_file()
    capture.tool_call(tool_name="parent", duration_ms=1)
    held = Held(path)  # so that the fork finds the parent's thread waiting, with events in memory
    capture.tool_call(tool_name="parent", duration_ms=1)
    child = os.fork()
    if child == 0:
        capture.tool_call(tool_name="child", duration_ms=1)
        capture.close(60)
        os._exit(0 if capture.stats().file_lines == 1 and balanced(capture) else 1)
    time.sleep(0.1)
    held.let_go()
    assert os.waitpid(child, 0)[1] == 0
    assert capture.flush(60)
    assert sorted(line["tool_name"] for line in lines(path)) == ["child", "parent", "parent"]


# Rotation


def everything(path: Path) -> list[Path]:
    """The file and its rotations, oldest first."""
    rotated = sorted(path.parent.glob(f"{path.name}.[0-9]*"), key=lambda file: -int(file.suffix[1:]))
    return [*rotated, path]


def appended(file: RotatingFile, number: int, size: int = 100) -> None:
    waiting = [f"{value:0{size - 1}}\n".encode() for value in range(number)]
    file.append(lambda: waiting.pop(0) if waiting else None)


@pytest.mark.parametrize(("keep", "kept"), [(0, [5]), (1, [10, 5]), (3, [10, 10, 10, 5]), (9, [10, 10, 10, 10, 5])])
def test_a_file_is_rotated_before_it_exceeds_its_size(keep: int, kept: list[int], tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    appended(RotatingFile(path, 1000, keep), 45)
    assert [len(file.read_bytes().splitlines()) for file in everything(path)] == kept
    numbers = [int(line) for file in everything(path) for line in file.read_bytes().splitlines()]
    assert numbers == list(range(45 - sum(kept), 45))
    assert {stat.S_IMODE(file.stat().st_mode) for file in everything(path)} == {0o600}


def test_a_line_longer_than_the_file_may_be_is_kept_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    appended(RotatingFile(path, 1000, 5), 3, size=5000)
    assert [file.stat().st_size for file in everything(path)] == [5000, 5000, 5000]


def test_a_lock_file_that_somebody_removes_still_locks(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    held = Held(path)
    waiting = threading.Thread(target=appended, args=(RotatingFile(path, 10_000, 1), 1))
    waiting.start()
    path.with_name("events.jsonl.lock").unlink()
    appended(RotatingFile(path, 10_000, 1), 1)
    held.let_go()
    waiting.join()
    assert len(path.read_bytes().splitlines()) == 2


# Several processes

PROCESSES, LINES = 8, 10_000


def _write(path: Path, name: int, progress: Any, victim: bool) -> None:
    settings = {"sink": "file", "file_path": path, "file_bytes": 512 * 1024, "file_keep": 500}
    capture = Capture(Settings.model_validate({"capture": settings}), service="tests", enabled=True)
    for number in range(LINES):
        capture.tool_call(tool_name=f"p{name}", duration_ms=1, seq=number, args_summary={"text": "x" * (number % 200)})
        if number % 500 == 499:
            capture.flush(120)
            progress.send((number + 1, capture.stats()))
            if victim and number > LINES // 2:
                while True:  # killed within the next lines
                    capture.tool_call(tool_name=f"p{name}", duration_ms=1, seq=number)
    capture.close(120)
    progress.send((LINES, capture.stats()))


def _read_back(path: Path) -> tuple[list[list[int]], int]:
    """The numbers of each process's lines, in order, and the number of torn lines."""
    seen: list[list[int]] = [[] for _ in range(PROCESSES)]
    torn = 0
    for file in everything(path):
        assert file.stat().st_size <= 512 * 1024
        for raw in file.read_bytes().splitlines():
            try:
                line = orjson.loads(raw)
            except orjson.JSONDecodeError:
                torn += 1
            else:
                seen[int(line["tool_name"][1:])].append(line["seq"])
    return seen, torn


@pytest.mark.slow
def test_eight_processes_rotate_one_file_and_lose_only_what_they_count(tmp_path: Path) -> None:
    """One of them is killed in the middle of its writes."""
    path = tmp_path / "events.jsonl"
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(PROCESSES)]
    processes = [
        context.Process(target=_write, args=(path, name, pipes[name][1], name == 0)) for name in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for _, sender in pipes:
        sender.close()
    told: list[Any] = [None] * PROCESSES
    for name, (receiver, _) in enumerate(pipes):
        while told[name] is None or told[name][0] < LINES:
            if name == 0 and told[0] is not None and told[0][0] > LINES // 2:
                processes[0].kill()
                break
            assert receiver.poll(200), f"process {name} after {told[name]}"
            told[name] = receiver.recv()
    for process in processes:
        process.join(60)
    assert processes[0].exitcode == -9
    seen, torn = _read_back(path)
    assert torn <= 1  # only the killed process can have torn a line
    assert len(everything(path)) > 10
    for name in range(PROCESSES):
        called, stats = told[name]
        dropped = sum(stats.file_dropped.values())
        if name == 0:
            assert len(seen[0]) >= called - dropped
        else:
            assert len(seen[name]) == len(set(seen[name])) == stats.file_lines == LINES - dropped
        ordered = [number for number in seen[name] if number < called]
        assert ordered == sorted(ordered)
