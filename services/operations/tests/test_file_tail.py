"""Following the file of events: each line once, through everything that happens to files."""

import os
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_operations.errors import OperationError
from assay_operations.file_tail import Follower, check_status, file_path, follow_file

NOW = datetime(2026, 5, 17, 14, 0, tzinfo=UTC)


def line(number: int, **fields: Any) -> bytes:
    moment = (NOW + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
    event = {
        "timestamp": moment,
        "kind": "tool_call",
        "tool_name": f"t{number % 3}",
        "status": "success",
        "seq": number,
    }
    return orjson.dumps(event | fields) + b"\n"


class Bus:
    """A file of events with numbered lines, and a follower."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.follower = Follower(path, 0)

    def rotated(self, number: int) -> Path:
        return self.path if number == 0 else self.path.with_name(f"{self.path.name}.{number}")

    def write(self, lines: int = 1) -> None:
        with self.path.open("ab") as file:
            for _ in range(lines):
                file.write(line(self.number))
                self.number += 1

    def rotate(self, keep: int = 9) -> None:
        """Rename as the SDK does; the next line makes a new file."""
        for number in range(keep, 0, -1):
            if self.rotated(number - 1).exists():
                self.rotated(number - 1).rename(self.rotated(number))

    def copy_and_truncate(self, keep: int = 9) -> None:
        """As logrotate does with `copytruncate`."""
        for number in range(keep, 1, -1):
            if self.rotated(number - 1).exists():
                self.rotated(number - 1).rename(self.rotated(number))
        if self.path.exists():
            shutil.copyfile(self.path, self.rotated(1))
            os.truncate(self.path, 0)

    def read(self) -> list[int]:
        return [event["seq"] for _, event in self.follower.lines()]


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    made = Bus(tmp_path / "events.jsonl")
    yield made
    made.follower.close()


def test_new_lines_are_read_once(bus: Bus) -> None:
    assert bus.read() == []
    bus.write(3)
    assert bus.read() == [0, 1, 2]
    assert bus.read() == []
    bus.write(1)
    assert bus.read() == [3]


def test_a_partial_line_is_held_until_it_is_whole(bus: Bus) -> None:
    bus.write(1)
    whole = line(1)
    with bus.path.open("ab") as file:
        file.write(whole[:20])
        file.flush()
        assert bus.read() == [0]
        assert bus.read() == []
        file.write(whole[20:50])
        file.flush()
        assert bus.read() == []
        file.write(whole[50:])
    assert bus.read() == [1]


@pytest.mark.parametrize("rotations", [1, 2, 5])
@pytest.mark.parametrize("how", ["rotate", "copy_and_truncate"])
def test_lines_written_around_rotations_are_neither_lost_nor_repeated(how: str, rotations: int, bus: Bus) -> None:
    bus.write(4)
    assert bus.read() == [0, 1, 2, 3]
    for _ in range(rotations):
        bus.write(3)  # after the last look, before the rotation
        getattr(bus, how)()
        bus.write(2)
    assert bus.read() == list(range(4, bus.number))
    bus.write(1)
    assert bus.read() == [bus.number - 1]


@pytest.mark.parametrize("how", ["rotate", "copy_and_truncate"])
def test_a_file_that_was_empty_at_the_last_look_loses_nothing_either(how: str, bus: Bus) -> None:
    bus.path.touch()
    assert bus.read() == []
    bus.write(3)
    getattr(bus, how)()
    bus.write(1)
    assert bus.read() == [0, 1, 2, 3]


@pytest.mark.parametrize("keep", [1, 2])
def test_rotated_files_that_are_dropped_in_between_cost_only_themselves(keep: int, bus: Bus) -> None:
    bus.write(1)
    assert bus.read() == [0]
    for _ in range(5):
        bus.rotate(keep)
        bus.write(1)
    assert bus.read() == list(range(5 - keep, 6))
    assert bus.read() == []


def test_a_new_file_with_the_inode_of_a_removed_one_is_read_from_its_start(bus: Bus) -> None:
    """Some file systems give a new file the number of the last one, even while that is open elsewhere."""
    bus.write(3)
    assert bus.read() == [0, 1, 2]
    lines = b"".join(line(number) for number in range(3, 9))
    with bus.path.open("r+b") as file:  # the same inode with other content, longer than what was read
        file.write(lines)
    bus.number = 9
    assert bus.read() == [3, 4, 5, 6, 7, 8]


def test_a_removed_file_is_waited_for_and_its_successor_is_read_whole(bus: Bus) -> None:
    bus.write(2)
    assert bus.read() == [0, 1]
    for _ in range(20):  # ext4 and tmpfs would reuse the inode here if the follower did not keep the file open
        bus.path.unlink()
        assert bus.read() == []
        bus.write(2)
        assert bus.read() == [bus.number - 2, bus.number - 1]


def test_a_truncated_file_without_a_copy_is_read_from_its_start(bus: Bus) -> None:
    bus.write(5)
    bus.rotate()
    bus.write(2)
    assert bus.read() == [0, 1, 2, 3, 4, 5, 6]
    os.truncate(bus.path, 0)
    assert bus.read() == []
    bus.write(3)
    assert bus.read() == [7, 8, 9]


def test_what_is_no_json_object_is_left_out(bus: Bus) -> None:
    bus.write(1)
    with bus.path.open("ab") as file:
        file.write(b'\n{"torn\n[1]\nnull\n\xff\xfe\n' + b"x" * 9_000_000 + b"\n")
    bus.write(1)
    assert bus.read() == [0, 1]


def test_a_torn_line_that_the_next_writer_ends_costs_only_itself(bus: Bus) -> None:
    bus.write(1)
    with bus.path.open("ab") as file:
        file.write(line(99)[:30])
    assert bus.read() == [0]
    with bus.path.open("ab") as file:
        file.write(b"\n" + line(1))
    assert bus.read() == [1]


@pytest.mark.parametrize("seed", range(40))
def test_any_order_of_writes_rotations_and_looks_shows_each_line_once(seed: int, tmp_path: Path) -> None:
    bus, seen, choose = Bus(tmp_path / "events.jsonl"), [], random.Random(seed)  # noqa: S311
    bus.write(1)
    how = choose.choice([bus.rotate, bus.copy_and_truncate])
    for _ in range(60):
        step = choose.random()
        if step < 0.5:
            bus.write(choose.randrange(1, 4))
        elif step < 0.65:
            how(9)
            bus.write(1)  # an empty file is never rotated
        else:
            seen += bus.read()
        if choose.random() < 0.3:
            seen += bus.read()
    seen += bus.read()
    bus.follower.close()
    assert seen == list(range(bus.number))


# What is shown


def shown(path: Path, since_ms: int = 0, **options: Any) -> list[int]:
    plain: dict[str, Any] = {"status": None, "tool": None, "live": False, "tell": print, "still_read": lambda: None}
    return [event["seq"] for _, event in follow_file(path, since_ms, **(plain | options))]


def test_a_missing_file_ends_at_once_without_live(tmp_path: Path) -> None:
    assert shown(tmp_path / "none.jsonl") == []


def test_since_is_inclusive_and_lines_without_a_time_pass(bus: Bus) -> None:
    bus.write(5)
    with bus.path.open("ab") as file:
        file.write(line(5, timestamp=None) + line(6, timestamp="yesterday") + line(7, timestamp=7))
    assert shown(bus.path, int((NOW + timedelta(seconds=3)).timestamp() * 1000)) == [3, 4, 5, 6, 7]


def test_rotated_files_written_since_then_come_first(bus: Bus) -> None:
    for _ in range(3):
        bus.write(2)
        bus.rotate()
    bus.write(1)
    os.utime(bus.rotated(3), (1, 1))
    since = int(NOW.timestamp() * 1000)
    assert shown(bus.path, since) == [2, 3, 4, 5, 6]


def test_lines_are_chosen_by_status_and_tool(bus: Bus) -> None:
    bus.path.write_bytes(line(0) + line(1, status="refused") + line(2, status="refused", tool_name="t1") + line(3))
    assert shown(bus.path, status="refused") == [1, 2]
    assert shown(bus.path, tool="t0") == [0, 3]
    assert shown(bus.path, status="refused", tool="t1") == [1, 2]


def test_an_unknown_status_is_refused_with_the_six() -> None:
    check_status(None)
    check_status("empty")
    with pytest.raises(OperationError, match="success, empty, partial, degraded, error, refused"):
        check_status("ok")


def test_what_cannot_be_read_is_an_operation_error(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="cannot read"):
        shown(tmp_path)


def test_the_option_comes_before_the_environment_and_that_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_CONFIG", raising=False)
    monkeypatch.delenv("ASSAY_CAPTURE_FILE_PATH", raising=False)
    named = {"ASSAY_CAPTURE_FILE_PATH": "/named.jsonl", "XDG_STATE_HOME": "/state"}
    assert file_path("/own.jsonl", named) == Path("/own.jsonl")
    assert file_path("auto", named) == Path("/named.jsonl")
    assert file_path("auto", {"XDG_STATE_HOME": "/state"}) == Path("/state/assay/events.jsonl")
    assert file_path("auto", {}) == Path.home() / ".local/state/assay/events.jsonl"
    (tmp_path / "assay.toml").write_text('[capture]\nfile_path = "/configured.jsonl"\n')
    assert file_path("auto", named) == Path("/named.jsonl")
    assert file_path("auto", {}) == Path("/configured.jsonl")


def test_a_missing_file_is_named_also_if_it_is_not_waited_for(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "none.jsonl"
    lines = follow_file(path, 0, status=None, tool=None, live=False, tell=told.append, still_read=lambda: None)
    assert list(lines) == []
    [text] = told
    assert str(path) in text
    assert "capture.file_path" in text


def test_a_file_that_was_empty_and_was_rotated_twice_before_the_next_look_loses_no_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"")
    follower = Follower(path, 0)
    assert list(follower.lines()) == []

    def write(first: int) -> None:
        with path.open("ab") as file:
            file.writelines(b'{"n": %d}\n' % number for number in range(first, first + 5))

    write(0)
    path.rename(tmp_path / "events.jsonl.1")
    write(5)
    (tmp_path / "events.jsonl.1").rename(tmp_path / "events.jsonl.2")
    path.rename(tmp_path / "events.jsonl.1")
    write(10)
    assert [event["n"] for _, event in follower.lines()] == list(range(15))
    follower.close()
