"""The file in which an export keeps how far it came."""

from pathlib import Path

import pytest

from assay_operations.errors import OperationError
from assay_operations.export.cursor_file import locked, read_cursor, write_cursor


def test_what_was_written_is_read_again_and_nothing_else_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    assert read_cursor(path) is None
    for place in (0, 17, 2**53 - 1):
        write_cursor(path, place)
        assert read_cursor(path) == place
    assert list(tmp_path.iterdir()) == [path]


def test_its_permissions_stay_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    path.write_text("1\n")
    path.chmod(0o600)
    write_cursor(path, 2)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "7d", "12 34", "-1", "9007199254740992"])
def test_a_file_that_holds_no_cursor_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cursor.txt"
    path.write_text(text)
    with pytest.raises(OperationError, match=r"cursor\.txt: .* is not a cursor"):
        read_cursor(path)


def test_a_file_that_cannot_be_written_says_what_the_cursor_is(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match=r"--cursor-file: cannot write .*the cursor is 42"):
        write_cursor(tmp_path / "missing" / "cursor", 42)


def test_a_cursor_never_goes_back(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    write_cursor(path, 17)
    write_cursor(path, 3)
    assert read_cursor(path) == 17


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "cursor").write_text("1\n")
    link = tmp_path / "cursor"
    link.symlink_to(tmp_path / "real" / "cursor")
    write_cursor(link, 2)
    assert link.is_symlink()
    assert read_cursor(tmp_path / "real" / "cursor") == 2


def test_only_one_export_at_a_time_has_the_file_under_whatever_name(tmp_path: Path) -> None:
    path, link = tmp_path / "cursor", tmp_path / "link"
    link.symlink_to(path)
    with locked(path), pytest.raises(OperationError, match=r"another export is using .*link"), locked(link):
        pass
    with locked(link):
        pass


def test_a_directory_that_cannot_hold_the_lock_is_told_before_anything_is_exported(tmp_path: Path) -> None:
    with pytest.raises(OperationError, match="--cursor-file: cannot lock"), locked(tmp_path / "missing" / "cursor"):
        pass
