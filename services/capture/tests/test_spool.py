"""The spool by itself: its files, its bounds, and what is left when processes die."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_capture.spool import Spool, default_spool_dir, private_directory
from assay_capture.stats import Problems


def entries(*names: str) -> list[tuple[int, bytes]]:
    return [(0, b'{"name":"%b"}' % name.encode()) for name in names]


def names_left(spool: Spool, batch: int = 2) -> list[str]:
    found = []
    while read := spool.read(batch, 1 << 20):
        found += [data.decode()[9:-2] for _, data in read]
        spool.sent()
    return found


@pytest.fixture
def spools(tmp_path: Path) -> Iterator["Opener"]:
    opener = Opener(tmp_path / "state" / "spool")
    yield opener
    for spool in opener.opened:
        spool.close()


class Opener:
    """Opens spools on one directory, as several processes would."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.private = private_directory(directory)
        self.opened: list[Spool] = []

    def __call__(self, max_bytes: int = 1 << 20, fsync: bool = False) -> Spool:
        self.opened.append(Spool(self.directory, max_bytes, fsync, lambda _: 0, Problems()))
        return self.opened[-1]

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.private.glob(f"*.{suffix}"))


@pytest.mark.parametrize("fsync", [False, True])
def test_what_is_written_is_read_in_order_and_its_files_go_when_it_is_sent(spools: Opener, fsync: bool) -> None:
    spool = spools(fsync=fsync)
    assert not spools.directory.exists(), "a producer whose Redis is well leaves no trace on disk"
    assert spool.write(entries("a", "b")) is None
    assert spool.write(entries("c")) is None
    assert spool.waiting()
    assert spool.bytes_waiting() == sum(len(data) + 1 for _, data in entries("a", "b", "c"))
    assert names_left(spool) == ["a", "b", "c"]
    assert not spool.waiting()
    assert spools.files("jsonl") == []
    spool.close()
    assert spools.files("lock") == []


def test_a_batch_comes_back_to_its_reserved_place_before_what_was_written_since(spools: Opener) -> None:
    spool = spools()
    place = spool.reserve()
    spool.write(entries("c", "d"))
    spool.write(entries("a", "b"), place)
    spool.write(entries("e"))
    assert names_left(spool) == ["a", "b", "c", "d", "e"]


def test_events_may_be_written_while_others_are_read(spools: Opener) -> None:
    spool = spools()
    spool.write(entries("a", "b", "c"))
    assert [data for _, data in spool.read(2, 1 << 20)] == [data for _, data in entries("a", "b")]
    spool.write(entries("d"))
    spool.sent()
    assert names_left(spool) == ["c", "d"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_directories_and_files_that_it_makes_are_for_their_owner_only(spools: Opener) -> None:
    before = os.umask(0)
    try:
        spools().write(entries("a"))
    finally:
        os.umask(before)
    assert (mode(spools.directory), mode(spools.private)) == (0o700, 0o700)
    assert [mode(path) for path in [*spools.files("jsonl"), *spools.files("lock")]] == [0o600, 0o600]


def test_a_directory_that_others_use_too_stays_as_it_is(spools: Opener) -> None:
    spools.directory.mkdir(parents=True)
    spools.directory.chmod(0o1777)
    (spools.directory / "another's.jsonl").write_text("kept")
    dead = spools()
    assert dead.write(entries("a")) is None
    dead.close()
    heir = spools()
    heir.adopt()
    assert names_left(heir) == ["a"]
    assert mode(spools.directory) == 0o1777
    assert mode(spools.private) == 0o700
    assert (spools.directory / "another's.jsonl").read_text() == "kept"


def stray_lock(directory: Path) -> Path:
    """What a process that died might have left in a directory."""
    (directory / "dead-0000000001.jsonl").write_text('{"name":"planted"}\n')
    (directory / "dead.lock").touch()
    return directory


def test_a_link_in_the_place_of_its_own_directory_is_not_followed(spools: Opener, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    stray_lock(elsewhere)
    spools.directory.mkdir(parents=True)
    spools.private.symlink_to(elsewhere, target_is_directory=True)
    spool = spools()
    spool.adopt()
    assert not spool.waiting(), "nothing that lies behind the link is sent"
    assert spool.write(entries("a")) == "spool_error"
    assert {path.name for path in elsewhere.iterdir()} == {"dead.lock", "dead-0000000001.jsonl"}


def test_its_own_directory_open_to_others_is_refused_and_not_changed(spools: Opener) -> None:
    spools.private.mkdir(parents=True)
    spools.private.chmod(0o770)
    stray_lock(spools.private)
    spool = spools()
    spool.adopt()
    assert not spool.waiting(), "others could have put there what it would send"
    assert spool.write(entries("a")) == "spool_error"
    assert mode(spools.private) == 0o770


def test_its_own_directory_made_by_another_user_is_refused(spools: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    spools.private.mkdir(parents=True, mode=0o700)
    spool = spools()
    owner = os.geteuid()
    monkeypatch.setattr("assay_capture.spool.os.geteuid", lambda: owner + 1)  # not every test runs as root
    assert spool.write(entries("a")) == "spool_error"
    assert list(spools.private.iterdir()) == []


def test_the_bound_counts_every_process_that_shares_the_directory(spools: Opener) -> None:
    one, other = spools(max_bytes=1024), spools(max_bytes=1024)
    assert one.write(entries("x" * 500)) is None
    assert other.write(entries("x" * 600)) == "spool_full"
    assert other.write(entries("x" * 300)) is None
    assert one.write(entries("x" * 300)) == "spool_full"
    assert names_left(one) == ["x" * 500]
    assert other.write(entries("x" * 600)) is None
    assert sum(path.stat().st_size for path in spools.files("jsonl")) <= 1024


def test_large_spools_are_cut_in_segments_that_go_one_by_one(spools: Opener) -> None:
    spool = spools(max_bytes=8000)
    for name in "abcdefghij":
        spool.write(entries(name * 500))
    segments = len(spools.files("jsonl"))
    assert segments == 5
    spool.read(2, 1 << 20)
    spool.sent()
    assert len(spools.files("jsonl")) == segments - 1


def test_a_live_processs_segments_are_its_own(spools: Opener) -> None:
    live, other = spools(), spools()
    live.write(entries("a"))
    other.adopt()
    assert not other.waiting()
    assert other.adopted_segments == 0


def test_a_dead_processs_segments_are_taken_over_and_go_before_later_ones(spools: Opener) -> None:
    dead = spools()
    dead.write(entries("a", "b"))
    dead.close()
    heir = spools()
    heir.write(entries("c"))
    heir.adopt()
    assert heir.adopted_segments == 1
    assert names_left(heir) == ["a", "b", "c"]
    heir.close()
    assert list(spools.private.iterdir()) == []


def test_only_one_of_several_takes_over_what_a_dead_process_left(spools: Opener) -> None:
    dead = spools()
    dead.write(entries("a"))
    dead.close()
    first, second = spools(), spools()
    first.adopt()
    second.adopt()
    assert (first.waiting(), second.waiting()) == (True, False)
    first.close()
    second.adopt()
    assert names_left(second) == ["a"], "what the first could not send is there for the next"


def test_a_segment_is_kept_until_its_last_event_is_sent_so_a_crash_in_between_sends_it_again(spools: Opener) -> None:
    spool = spools()
    spool.write(entries("a", "b", "c"))
    spool.read(2, 1 << 20)
    spool.sent()
    spool.close()
    heir = spools()
    heir.adopt()
    assert names_left(heir) == ["a", "b", "c"]


def test_a_line_cut_off_by_a_crash_is_counted_and_the_rest_is_read(spools: Opener) -> None:
    dead = spools()
    dead.write(entries("a", "b"))
    dead.close()
    [segment] = spools.files("jsonl")
    segment.write_bytes(segment.read_bytes() + b'{"name":"c')
    heir = spools()
    heir.adopt()
    assert names_left(heir) == ["a", "b"]
    assert heir.torn_lines == 1
    assert spools.files("jsonl") == []


def test_a_write_that_fails_leaves_what_was_there_and_can_be_tried_again(
    spools: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = spools()
    spool.write(entries("a"))
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 10:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr("assay_capture.spool.os.write", half)  # a disk cannot be filled here at will
    assert spool.write(entries("b")) == "spool_error"
    monkeypatch.undo()
    assert spool.write(entries("c")) is None
    assert names_left(spool) == ["a", "c"]


def test_a_directory_that_cannot_be_made_is_an_error_that_is_counted_not_raised(spools: Opener) -> None:
    spools.directory.parent.mkdir(parents=True)
    spools.directory.write_text("a file is in the way")
    assert spools().write(entries("a")) == "spool_error"


def test_a_file_of_anything_else_in_the_directory_is_let_be(spools: Opener) -> None:
    spools.private.mkdir(parents=True, mode=0o700)
    (spools.private / "notes.txt").write_text("mine")
    (spools.private / "odd-name.jsonl").write_text("mine")
    spool = spools()
    spool.adopt()
    assert not spool.waiting()
    assert {path.name for path in spools.private.iterdir()} == {"notes.txt", "odd-name.jsonl"}


def test_the_default_directory_is_in_the_users_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_spool_dir() == tmp_path / "assay-spool"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_spool_dir() == tmp_path / ".local/state/assay-spool"


def test_without_a_home_the_directory_for_temporary_files_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert default_spool_dir() == Path(tempfile.gettempdir())
