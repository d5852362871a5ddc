"""What the store reads and takes before it opens the engine: users, the lock, its configuration."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from assay_store import config
from assay_store.__main__ import options
from assay_store.lock import DataDirectoryError, DirectoryLock
from assay_store.options import StoreOptions
from assay_store.roles import Role, limits
from assay_store.users import UsersFileError, read_users


def _parsed(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314  our own text


def _users(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_user_is_known_by_name_and_password(tmp_path: Path) -> None:
    users = read_users(_users(tmp_path / "u.json", '{"a": {"password": "p", "role": "sre"}}'))
    found = users.check("a", "p")
    assert found is not None
    assert found.role is Role.SRE
    assert users.check("a", "q") is None
    assert users.check("b", "p") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_users_file_that_others_can_read_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    path = _users(tmp_path / "u.json", '{"a": {"password": "p", "role": "sre"}}', mode)
    with pytest.raises(UsersFileError, match=f"chmod 600 {path}"):
        read_users(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("{}", "names no user"),
        ('{"a": {"password": "p"}}', "role"),
        ('{"a": {"password": "p", "role": "root"}}', "owner, writer, sre, exporter, evaluator, operator, console"),
        ('{"a": {"role": "sre"}}', "password"),
        ('{"a": {"password": "p", "role": "sre", "admin": true}}', "unknown keys"),
    ],
)
def test_a_users_file_that_makes_no_sense_says_why(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsersFileError, match=said):
        read_users(_users(tmp_path / "u.json", text))


def test_a_missing_users_file_names_the_flag(tmp_path: Path) -> None:
    with pytest.raises(UsersFileError, match="--users"):
        read_users(tmp_path / "none.json")


def test_passwords_are_not_kept(tmp_path: Path) -> None:
    users = read_users(_users(tmp_path / "u.json", '{"a": {"password": "secret-1", "role": "sre"}}'))
    assert "secret-1" not in repr(list(users))


def test_a_second_holder_is_told_the_first_ones_process_id(tmp_path: Path) -> None:
    first, second = DirectoryLock(tmp_path / "d"), DirectoryLock(tmp_path / "d")
    first.take()
    with pytest.raises(DataDirectoryError, match=f"process id {os.getpid()}.*--data"):
        second.take()
    first.release()
    second.take()
    second.release()


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, pathlib; from assay_store.lock import DirectoryLock; "
        "DirectoryLock(pathlib.Path(sys.argv[1])).take(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "d")], timeout=30)
    assert (tmp_path / "d" / "store.lock").read_text().strip().isdigit()
    lock = DirectoryLock(tmp_path / "d")
    lock.take()
    lock.release()


@pytest.mark.parametrize("plant", [os.symlink, os.link], ids=["symbolic link", "hard link"])
def test_a_lock_file_that_is_a_link_is_not_emptied(tmp_path: Path, plant: Callable[[Path, Path], None]) -> None:
    kept = tmp_path / "kept"
    kept.write_text("x")
    (tmp_path / "d").mkdir()
    plant(kept, tmp_path / "d" / "store.lock")
    with pytest.raises(DataDirectoryError, match=r"store\.lock is .* remove it"):
        DirectoryLock(tmp_path / "d").take()
    assert kept.read_text() == "x"


def test_a_lock_file_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "store.lock")
    with pytest.raises(DataDirectoryError, match="not a regular file"):
        DirectoryLock(tmp_path).take()


def test_a_directory_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirectoryError, match="--data"):
        DirectoryLock(tmp_path / "file" / "d").take()


def test_every_option_has_a_flag_and_the_same_default(tmp_path: Path) -> None:
    parsed = options(["--data", str(tmp_path), "--users", "u.json"])
    assert parsed == StoreOptions(data=tmp_path, users=Path("u.json"))
    assert options(["--data", str(tmp_path), "--users", "u", "--max-memory", "5"]).max_memory_bytes == 5


def test_configuration_is_well_formed_and_quotes_paths(tmp_path: Path) -> None:
    _parsed(config.config_xml(tmp_path / "a<b&c", tmp_path / "users.xml", 1, 2))
    parsed = _parsed(config.users_xml(limits(1000, 10), []))
    assert {role.tag for role in parsed.find("roles") or []} == {
        "owner",
        "writer",
        "sre",
        "exporter",
        "evaluator",
        "operator",
        "console",
        "auditor",
        "staging",
    }


def test_a_limit_can_neither_be_raised_nor_taken_away() -> None:
    profile = _parsed(config.users_xml(limits(1000, 10), [])).find("profiles/sre/constraints/max_execution_time")
    assert profile is not None
    assert (profile.findtext("min"), profile.findtext("max")) == ("1", "10")


def test_a_setting_that_is_not_named_is_fixed_for_everybody_but_the_owner() -> None:
    profiles = _parsed(config.users_xml(limits(1000, 10), ["max_threads", "something_new"])).find("profiles")
    assert profiles is not None
    fixed = {
        profile.tag: {setting.tag for setting in profile.findall("constraints/*[readonly]")} for profile in profiles
    }
    for role in ("writer", "sre", "exporter", "evaluator", "operator", "console", "auditor"):
        assert "something_new" in fixed[role]
        assert "max_threads" not in fixed[role]
    assert fixed["owner"] == set(config.FIXED_SETTINGS)
