"""The file in which an export keeps how far it came."""

from pathlib import Path

import pytest

from assay_cli.cursor_file import read_cursor, write_cursor
from assay_cli.errors import CommandError


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
    with pytest.raises(CommandError, match=r"cursor\.txt: .* is not a cursor"):
        read_cursor(path)


def test_a_file_that_cannot_be_written_says_what_the_cursor_is(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"--cursor-file: cannot write .*the cursor is 42"):
        write_cursor(tmp_path / "missing" / "cursor", 42)
