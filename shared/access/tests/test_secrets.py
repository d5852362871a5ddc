"""The files under `<data>/secrets`: made once, private, each holding one identity's credentials."""

import json
from pathlib import Path

import pytest

from assay_access.errors import AccessError
from assay_access.identities import REDIS_IDENTITIES, SETTINGS_IDENTITIES, STORE_IDENTITIES
from assay_access.secrets import Passwords, load_or_create, write_derived, write_private
from assay_access.settings_files import Ports


def write_all(directory: Path, base_port: int = 9100) -> Passwords:
    passwords = load_or_create(directory)
    write_derived(
        directory, passwords, ports=Ports.from_base(base_port), redis_version=(7, 0), spool=directory.parent / "spool"
    )
    return passwords


def test_every_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    directory = tmp_path / "data" / "secrets"
    write_all(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    files = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
    expected = {
        "passwords.json",
        "redis-users.acl",
        "store-users.json",
        "sre.curl",
        "console.key",
        *(f"{i.name}.toml" for i in SETTINGS_IDENTITIES),
    }
    assert files == dict.fromkeys(expected, 0o600)


def test_a_directory_or_file_that_was_opened_to_others_is_closed_again(tmp_path: Path) -> None:
    directory = tmp_path / "secrets"
    write_all(directory)
    directory.chmod(0o755)
    (directory / "sre.toml").chmod(0o644)
    write_all(directory)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "sre.toml").stat().st_mode & 0o777 == 0o600


def test_passwords_are_made_once_and_are_all_different(tmp_path: Path) -> None:
    first, second = write_all(tmp_path), write_all(tmp_path, base_port=9200)
    assert (first.redis, first.store) == (second.redis, second.store)
    every = [*first.redis.values(), *first.store.values()]
    assert len(set(every)) == len(REDIS_IDENTITIES) + len(STORE_IDENTITIES)
    assert min(map(len, every)) >= 43


def test_an_identity_that_is_new_gets_a_password_and_the_others_keep_theirs(tmp_path: Path) -> None:
    first = write_all(tmp_path)
    kept = {name: password for name, password in first.redis.items() if name != "sre"}
    (tmp_path / "passwords.json").write_text(json.dumps({"redis": kept, "store": dict(first.store)}))
    second = write_all(tmp_path)
    assert second.redis["sre"] not in (None, first.redis["sre"])
    assert {name: second.redis[name] for name in kept} == kept


def test_no_file_but_the_source_holds_the_credentials_of_two_identities(tmp_path: Path) -> None:
    passwords = write_all(tmp_path)
    for identity in SETTINGS_IDENTITIES:
        text = (tmp_path / f"{identity.name}.toml").read_text()
        others = [
            p for store in (passwords.redis, passwords.store) for name, p in store.items() if name != identity.name
        ]
        assert not [password for password in others if password in text]
    acl = (tmp_path / "redis-users.acl").read_text()
    assert not [password for password in passwords.redis.values() if password in acl]


def test_a_damaged_password_file_stops_the_start_and_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "passwords.json"
    path.write_text('{"redis": ')
    with pytest.raises(AccessError, match="restore it from a backup"):
        load_or_create(tmp_path)
    assert path.read_text() == '{"redis": '


def test_an_unchanged_file_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(path, "text")
    inode = path.stat().st_ino
    write_private(path, "text")
    assert path.stat().st_ino == inode
    write_private(path, "other")
    assert path.read_text() == "other"


def test_passwords_do_not_show_when_printed(tmp_path: Path) -> None:
    passwords = write_all(tmp_path)
    assert passwords.redis["owner"] not in repr(passwords)
