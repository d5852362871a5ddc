"""The spool by itself: its files, its bounds, and what is left when processes die."""

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay_capture.owners import default_spool_dir, private_directory
from assay_capture.spool import Spool
from assay_capture.stats import ProblemLog


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

    def __call__(
        self, max_bytes: int = 1 << 20, fsync: bool = False, destination: str = "redis-a", adopt: Collection[str] = ()
    ) -> Spool:
        self.opened.append(Spool(self.directory, destination, max_bytes, fsync, lambda _: 0, ProblemLog(), adopt))
        return self.opened[-1]

    def segments(self) -> list[Path]:
        return sorted(self.private.rglob("*.jsonl"))

    def owners(self, destination: str = "redis-a") -> list[Path]:
        return sorted((self.private / destination).iterdir())


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
    assert spools.segments() == []
    spool.close()
    assert spools.owners() == []


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
    [owner] = spools.owners()
    assert [mode(path) for path in (spools.directory, spools.private, owner.parent, owner)] == [0o700] * 4
    assert [mode(path) for path in spools.segments()] == [0o600]


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


def left_behind(directory: Path, destination: str = "redis-a") -> Path:
    """What a process that died might have left in a user's directory."""
    owner = directory / destination / "dead"
    owner.mkdir(mode=0o700, parents=True)
    (directory / destination).chmod(0o700)
    (owner / "0000000001.jsonl").write_text('{"name":"planted"}\n')
    return owner / "0000000001.jsonl"


def test_a_link_in_the_place_of_its_own_directory_is_not_followed(spools: Opener, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    planted = left_behind(elsewhere)
    spools.directory.mkdir(parents=True)
    spools.private.symlink_to(elsewhere, target_is_directory=True)
    spool = spools()
    spool.adopt()
    assert not spool.waiting(), "nothing that lies behind the link is sent"
    assert spool.write(entries("a")) == "spool_error"
    assert [path for path in elsewhere.rglob("*") if path.is_file()] == [planted]


def test_its_own_directory_open_to_others_is_refused_and_not_changed(spools: Opener) -> None:
    spools.private.mkdir(parents=True)
    spools.private.chmod(0o770)
    left_behind(spools.private)
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
    assert sum(path.stat().st_size for path in spools.segments()) <= 1024


def test_large_spools_are_cut_in_segments_that_go_one_by_one(spools: Opener) -> None:
    spool = spools(max_bytes=8000)
    for name in "abcdefghij":
        spool.write(entries(name * 500))
    segments = len(spools.segments())
    assert segments == 5
    spool.read(2, 1 << 20)
    spool.sent()
    assert len(spools.segments()) == segments - 1


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
    assert spools.owners() == []


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
    [segment] = spools.segments()
    segment.write_bytes(segment.read_bytes() + b'{"name":"c')
    heir = spools()
    heir.adopt()
    assert names_left(heir) == ["a", "b"]
    assert heir.torn_lines == 1
    assert spools.segments() == []


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


def test_what_waits_for_one_redis_is_never_sent_to_another(spools: Opener) -> None:
    dead = spools(destination="redis-a")
    dead.write(entries("a"))
    dead.close()
    other = spools(destination="redis-b")
    other.adopt()
    assert not other.waiting()
    heir = spools(destination="redis-a")
    heir.adopt()
    assert names_left(heir) == ["a"]


def test_each_redis_has_a_bound_of_its_own_in_one_directory(spools: Opener) -> None:
    one, other = spools(1024, destination="redis-a"), spools(1024, destination="redis-b")
    assert one.write(entries("x" * 900)) is None
    assert other.write(entries("x" * 900)) is None


@pytest.mark.parametrize("adopt", ["redis-a", "all"])
def test_what_waits_for_an_address_of_before_is_sent_when_it_is_named(spools: Opener, adopt: str) -> None:
    dead, live = spools(destination="redis-a"), spools(destination="redis-a")
    dead.write(entries("a", "b"))
    live.write(entries("c"))
    dead.close()
    heir = spools(destination="redis-b", adopt=[adopt])
    heir.adopt()
    assert heir.adopted_segments == 1, "what a running process owns is left to it"
    assert names_left(heir) == ["a", "b"]
    assert spools.owners("redis-b") == []


def left_by_the_version_before(directory: Path, *names: str, owner: str = "dead", lock: bool = True) -> Path:
    """Segments and a lock as the version that did not tell destinations apart left them. Returns the lock file's path."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number, name in enumerate(names, 1):
        (directory / f"{owner}-{number:010d}.jsonl").write_text(f'{{"name":"{name}"}}\n')
    if lock:
        (directory / f"{owner}.lock").touch()
    return directory / f"{owner}.lock"


def test_what_the_version_before_left_is_not_sent_unless_it_is_named(spools: Opener) -> None:
    left_by_the_version_before(spools.private, "a", "b")
    spool = spools()
    spool.adopt()
    assert not spool.waiting(), "nobody knows which Redis it is for"
    assert len(spools.segments()) == 2
    heir = spools(adopt=["unnamed"])
    heir.adopt()
    assert names_left(heir) == ["a", "b"]
    assert list(spools.private.glob("*.*")) == []


def test_a_running_process_of_the_version_before_keeps_what_it_has(spools: Opener) -> None:
    lock = left_by_the_version_before(spools.private, "a", owner="live")
    left_by_the_version_before(spools.private, "b", owner="dead")
    with lock.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        heir = spools(adopt=["unnamed"])
        heir.adopt()
        assert names_left(heir) == ["b"]
    heir.adopt()
    assert names_left(heir) == ["a"]


def test_what_the_version_before_left_without_its_lock_is_not_lost(spools: Opener) -> None:
    left_by_the_version_before(spools.private, "a", lock=False)
    heir = spools(adopt=["all"])
    heir.adopt()
    assert names_left(heir) == ["a"]


def test_events_that_nobody_sends_are_named_in_the_log_once(spools: Opener, caplog: pytest.LogCaptureFixture) -> None:
    dead, live = spools(destination="redis-a"), spools(destination="redis-c")
    dead.write(entries("a"))
    live.write(entries("c"))
    dead.close()
    left_by_the_version_before(spools.private, "b")
    spool = spools(destination="redis-b")
    spool.adopt()
    spool.adopt()
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2, told
    assert "ASSAY_CAPTURE_SPOOL_ADOPT) to redis-a" in told[0]
    assert "ASSAY_CAPTURE_SPOOL_ADOPT) to unnamed" in told[1]


@pytest.mark.parametrize("at", ["owner", "destination", "private"])
def test_a_directory_that_somebody_cleaned_is_made_again(spools: Opener, at: str) -> None:
    spool = spools()
    spool.write(entries("a"))
    [owner] = spools.owners()
    shutil.rmtree({"owner": owner, "destination": owner.parent, "private": spools.private}[at])
    assert spool.write(entries("b")) is None
    assert spool.write(entries("c")) is None
    assert names_left(spool) == ["b", "c"]


def test_a_directory_cleaned_between_two_outages_is_made_again(spools: Opener) -> None:
    spool = spools()
    spool.write(entries("a"))
    assert names_left(spool) == ["a"]
    shutil.rmtree(spools.private)
    assert spool.write(entries("b")) is None
    assert names_left(spool) == ["b"]


def test_a_segment_that_somebody_deleted_takes_no_further_events(
    spools: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    spool = spools()
    spool.write(entries("a"))
    [segment] = spools.segments()
    segment.unlink()
    assert spool.write(entries("b")) is None
    assert names_left(spool) == ["b"]
    assert "deleted by another program" in caplog.text


def test_events_of_a_segment_deleted_while_it_is_read_are_read_to_their_end(spools: Opener) -> None:
    spool = spools()
    spool.write(entries("a", "b", "c"))
    assert len(spool.read(1, 1 << 20)) == 1
    shutil.rmtree(spools.private)
    spool.sent()
    assert spool.write(entries("d")) is None
    assert names_left(spool) == ["b", "c", "d"]


def test_a_segment_that_cannot_be_deleted_is_sent_once_and_holds_nothing_up(
    spools: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = spools()
    dead.write(entries("a"))
    dead.close()
    spool = spools()
    spool.write(entries("b"))
    spool.adopt()

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refuse)  # a disk cannot be made read-only here at will
    assert names_left(spool) == ["a", "b"]
    assert not spool.waiting()
    spool.adopt()
    assert not spool.waiting(), "not again and again in the same process"
    monkeypatch.undo()
    spool.close()
    heir = spools()
    heir.adopt()
    assert names_left(heir) == ["a", "b"], "the next process sends them again; event_id keeps them single"
    heir.close()
    assert spools.owners() == []


def test_a_file_system_without_locks_is_an_error_that_leaves_nothing_behind(
    spools: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("assay_capture.owners.fcntl.flock", refuse)  # as on some network file systems
    spool = spools()
    assert spool.write(entries("a")) == "spool_error"
    assert spool.write(entries("a")) == "spool_error"
    assert spools.owners() == []
    monkeypatch.undo()
    assert spool.write(entries("a")) is None
    assert names_left(spool) == ["a"]


def test_half_a_line_that_cannot_be_taken_back_does_not_swallow_the_next(
    spools: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = spools()
    spool.write(entries("a"))
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 10:
            raise OSError(errno.EIO, "Input/output error")
        return write(descriptor, data[: len(data) // 2])

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("assay_capture.spool.os.write", half)
    monkeypatch.setattr("assay_capture.spool.os.ftruncate", refuse)
    assert spool.write(entries("b")) == "spool_error"
    monkeypatch.undo()
    assert spool.write(entries("b", "c")) is None
    assert names_left(spool) == ["a", "b", "c"]
    assert spool.torn_lines == 1


def test_a_spool_directory_that_is_a_link_is_followed_as_its_owner_wants(spools: Opener, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    spools.directory.parent.mkdir(parents=True)
    spools.directory.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    spool = spools()
    assert spool.write(entries("a")) is None
    assert names_left(spool) == ["a"]


def test_rights_that_change_while_events_wait_are_an_error_until_they_are_mended(spools: Opener) -> None:
    spool = spools()
    spool.write(entries("a"))
    spools.private.chmod(0o755)
    other = spools()
    assert other.write(entries("b")) == "spool_error"
    other.adopt()
    assert not other.waiting()
    spools.private.chmod(0o700)
    assert other.write(entries("b")) is None
    assert names_left(other) == ["b"]
    assert names_left(spool) == ["a"]


def test_one_write_costs_few_system_calls_however_many_segments_there_are(
    spools: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = spools(max_bytes=80_000)
    for _ in range(5):
        spool.write(entries("x" * 10_000))
    spool.write(entries("a"))
    called: list[str] = []
    for name in ("open", "write", "fstat", "stat", "lstat", "scandir", "mkdir", "close"):
        real = getattr(os, name)

        def counted(*arguments: Any, _name: str = name, _real: Any = real, **named: Any) -> Any:
            called.append(_name)
            return _real(*arguments, **named)

        monkeypatch.setattr(os, name, counted)
    spool.write(entries("b"))
    assert called == ["fstat", "write"]
