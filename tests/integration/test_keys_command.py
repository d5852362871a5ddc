"""`assay keys` against a real Redis with the identities' rights: what it prints, stores and records."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_access.acl_file import acl_file, password_hash
from assay_access.api_keys import KeyState, fits, id_of, records_in
from assay_access.identities import REDIS_IDENTITIES
from assay_operations.api_keys.records import now
from assay_schema.streams import API_KEYS_VERSION, api_keys_key
from tests.support.cli import Cli
from tests.support.redis import SERVERS, RedisServer


class System:
    """A Redis with the identities' access rules, and the command as the operator. The store is away."""

    def __init__(self, directory: Path, server: RedisServer) -> None:
        self.directory = directory
        self.root = server.client()
        self._cli = Cli(directory, redis_url=f"redis://{{role}}:{{role}}-password@127.0.0.1:{server.port}/0")

    def keys(self, *arguments: str, code: int = 0) -> tuple[str, str]:
        done = self._cli.call("keys", *arguments, role="operator")
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def listed(self, *arguments: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.keys("list", "--json", *arguments)[0].splitlines()]

    @property
    def fields(self) -> dict[bytes, bytes]:
        return self.root.hgetall(api_keys_key())

    @property
    def audit(self) -> str:
        return (self.directory / "data/audit/operations-waiting.jsonl").read_text()


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    program = SERVERS["installed"]
    hashes = {identity.name: password_hash(f"{identity.name}-password") for identity in REDIS_IDENTITIES}
    lines = [line for line in acl_file(hashes, program.version).splitlines() if not line.startswith("user default")]
    (tmp_path / "users.acl").write_text("\n".join([*lines, "user default on nopass ~* &* +@all\n"]))
    server = RedisServer(tmp_path, "--aclfile", str(tmp_path / "users.acl"), binary=program.path).start()
    running = System(tmp_path, server)
    with contextlib.closing(running.root):
        yield running
    server.stop()


def test_a_new_key_is_alone_on_stdout_and_only_its_hash_is_stored(system: System) -> None:
    out, err = system.keys("create", "--project", "shop", "--service", "search", "--name", "production")
    key = out.strip()
    key_id = id_of(key)
    assert key_id is not None
    record = records_in(system.fields)[key_id]
    assert fits(key, record)
    assert (record.project, record.service, record.name) == ("shop", "search", "production")
    secret = key.rpartition("_")[2]
    assert secret not in err
    assert secret.encode() not in b"".join(system.fields.values())
    assert secret not in system.audit


def test_a_feedback_key_without_an_origin_is_created_with_a_warning(system: System) -> None:
    assert "--origin" in system.keys("create", "--kind", "feedback")[1]
    assert "--origin" not in system.keys("create", "--kind", "feedback", "--origin", "https://app.example.com")[1]
    assert "--origin" not in system.keys("create")[1]


def test_each_change_is_recorded_with_the_key_s_id_and_sets_a_new_version(system: System) -> None:
    key_id = id_of(system.keys("create")[0].strip())
    assert key_id is not None
    versions = {system.fields[API_KEYS_VERSION.encode()]}
    system.keys("rotate", key_id)
    versions.add(system.fields[API_KEYS_VERSION.encode()])
    system.keys("revoke", key_id, "--yes", "--comment", "lost")
    versions.add(system.fields[API_KEYS_VERSION.encode()])
    assert len(versions) == 3
    done = [json.loads(line) for line in system.audit.splitlines() if '"done"' in line]
    assert [each["operation"] for each in done] == ["keys create", "keys rotate", "keys revoke"]
    assert {json.loads(each["target"])["key"] for each in done} == {key_id}
    assert done[2]["comment"] == "lost"


def test_a_revoked_key_is_not_listed_except_with_all(system: System) -> None:
    kept, gone = (id_of(system.keys("create", "--project", name)[0].strip()) for name in ("shop", "docs"))
    system.keys("revoke", str(gone), "--yes")
    assert [each["id"] for each in system.listed()] == [kept]
    assert {each["id"]: each["state"] for each in system.listed("--all")} == {kept: "live", gone: "revoked"}
    assert [each["id"] for each in system.listed("--all", "--project", "docs")] == [gone]
    assert "sha256" not in system.listed()[0]


def test_rotating_makes_a_key_with_the_same_rights_and_lets_the_old_one_expire(system: System) -> None:
    old = id_of(
        system.keys("create", "--kind", "feedback", "--origin", "https://a.example", "--name", "web")[0].strip()
    )
    out, err = system.keys("rotate", str(old), "--grace", "1h")
    records = records_in(system.fields)
    new, replaced = records[str(id_of(out.strip()))], records[str(old)]
    assert (new.kind, new.origins, new.name) == (replaced.kind, replaced.origins, replaced.name)
    assert new.state(now()) is replaced.state(now()) is KeyState.LIVE
    assert replaced.expires_at is not None
    assert 3500 < (replaced.expires_at - now()).total_seconds() <= 3600
    assert str(old) in err


def test_rotating_without_grace_ends_the_old_key_at_once(system: System) -> None:
    old = str(id_of(system.keys("create")[0].strip()))
    system.keys("rotate", old, "--grace", "0s")
    assert records_in(system.fields)[old].state(now()) is KeyState.EXPIRED


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("create", "--project", "no project"), "--project"),
        (("create", "--origin", "https://a.example"), "--origin"),
        (("create", "--kind", "feedback", "--origin", "*"), "--origin"),
        (("create", "--events-per-second", "-1"), "--events-per-second"),
        (("create", "--expires-in", "soon"), "--expires-in"),
        (("revoke", "AAAAAAAAAA", "--yes"), "assay keys list"),
        (("rotate", "AAAAAAAAAA"), "assay keys list"),
    ],
)
def test_a_mistake_names_the_option_or_the_command_that_helps(
    system: System, arguments: tuple[str, ...], named: str
) -> None:
    assert named in system.keys(*arguments, code=2)[1]


def test_a_key_given_instead_of_its_id_is_not_repeated(system: System) -> None:
    key = system.keys("create")[0].strip()
    _, err = system.keys("revoke", key, "--yes", code=2)
    assert "by its id" in err
    assert key.rpartition("_")[2] not in err
