"""`assay tail` against a real Redis with the identities' access rules."""

import itertools
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from assay_access.acl_file import acl_file, password_hash
from assay_access.identities import REDIS_IDENTITIES
from assay_schema.streams import CAPTURE, EVENTS, FIELD
from tests.support.cli import Cli, Output, stop
from tests.support.redis import INSTALLED, RedisServer
from tests.support.sample_rows import event_id_at, iso

numbers = itertools.count(1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    directory = tmp_path / "redis"
    directory.mkdir()
    hashes = {identity.name: password_hash(f"{identity.name}-password") for identity in REDIS_IDENTITIES}
    identities = [
        line for line in acl_file(hashes, INSTALLED.version).splitlines() if not line.startswith("user default")
    ]
    (directory / "users.acl").write_text("\n".join([*identities, "user default on nopass ~* &* +@all\n"]))
    server = RedisServer(directory, "--aclfile", str(directory / "users.acl"), "--appendfsync", "always").start()
    yield server
    server.stop()


@pytest.fixture
def root(server: RedisServer) -> Iterator[redis.Redis]:
    with server.client() as client:
        yield client


@pytest.fixture
def url(server: RedisServer) -> str:
    return f"redis://{{role}}:{{role}}-password@127.0.0.1:{server.port}/0"


@pytest.fixture
def cli(url: str, tmp_path: Path) -> Cli:
    return Cli(tmp_path, redis_url=url)


def event(query: str, *, ago_ms: int = 0, kind: str = "retrieval", project: str = "shop") -> dict[str, Any]:
    ms = int(time.time() * 1000) - ago_ms
    return {
        "schema_version": 1,
        "id": next(numbers),
        "kind": kind,
        "event_id": event_id_at(ms),
        "project": project,
        "service": "search-api",
        "occurred_at": iso(ms),
        "created_at": iso(ms),
        "pii_families": {"email": 1},
        "policy": "p",
        "payload": {"tool_name": "query", "query": query, "latency_ms": 12, "retrieved_chunk_ids": [1, 2]},
    }


def add(client: redis.Redis, made: dict[str, Any], *, ago_ms: int = 0, shard: int = 0) -> None:
    ms = int(time.time() * 1000) - ago_ms
    client.xadd(EVENTS.key(shard), {FIELD: json.dumps(made), "low": "1"}, id=f"{ms}-{next(numbers)}")


def queries(lines: list[bytes]) -> list[str]:
    return [json.loads(line)["payload"]["query"] for line in lines]


def test_history_is_what_is_younger_than_since_and_no_follow_ends_after_it(cli: Cli, root: redis.Redis) -> None:
    add(root, event("an hour ago"), ago_ms=3_600_000)
    add(root, event("four minutes ago"), ago_ms=240_000)
    add(root, event("just now"))
    assert queries(cli.run("tail", "--no-follow", "--json", role="sre").stdout.splitlines()) == [
        "four minutes ago",
        "just now",
    ]
    longer = cli.run("tail", "--no-follow", "--json", "--since", "2h", role="sre")
    assert len(queries(longer.stdout.splitlines())) == 3
    assert (longer.returncode, longer.stderr) == (0, b"")


def test_a_line_for_people_shows_who_what_and_what_was_scrubbed(cli: Cli, root: redis.Redis) -> None:
    add(root, event("where is [REDACTED]"))
    line = cli.run("tail", "--no-follow", role="sre").stdout.decode()
    assert "retrieval shop/search-api  query           12 ms   2 hits  where is [REDACTED]  [email×1]" in line


def test_kind_and_project_narrow_it(cli: Cli, root: redis.Redis) -> None:
    add(root, event("a", project="shop"))
    add(root, event("b", project="docs"))
    add(root, event("c", project="docs", kind="answer"))
    narrow = ["--no-follow", "--json", "--project", "docs", "--kind", "answer"]
    assert queries(cli.run("tail", *narrow, role="sre").stdout.splitlines()) == ["c"]


def test_several_shards_come_as_one_in_order_and_in_pages(cli: Cli, url: str, root: redis.Redis) -> None:
    start = int(time.time() * 1000) - 60_000
    pipe = root.pipeline(transaction=False)
    for n in range(900):
        pipe.xadd(EVENTS.key(n % 3), {FIELD: json.dumps(event(str(n)))}, id=f"{start + n}-0")
    pipe.execute()
    cli_of_three = Cli(cli.directory, redis_url=url, shards=3)
    found = cli_of_three.run("tail", "--no-follow", "--json", role="sre").stdout
    assert queries(found.splitlines()) == [str(n) for n in range(900)]


def test_new_events_follow_and_ctrl_c_is_the_ordinary_end(cli: Cli, root: redis.Redis) -> None:
    add(root, event("old"))
    process = cli.start("tail", "--json", role="sre")
    try:
        out = Output(process.stdout)
        out.wait_for(lambda lines: len(lines) == 1)
        add(root, event("new"))
        assert queries(out.wait_for(lambda lines: len(lines) == 2)) == ["old", "new"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    finally:
        stop(process)


def test_a_restart_of_redis_loses_and_repeats_nothing(cli: Cli, server: RedisServer, root: redis.Redis) -> None:
    process = cli.start("tail", "--json", role="sre")
    try:
        out, err = Output(process.stdout), Output(process.stderr)
        add(root, event("before"))
        out.wait_for(lambda lines: len(lines) == 1)
        server.kill()
        err.wait_for(lambda lines: any(b"Redis is unavailable" in line for line in lines))
        server.start()
        add(root, event("after"))
        assert queries(out.wait_for(lambda lines: len(lines) == 2)) == ["before", "after"]
        err.wait_for(lambda lines: any(b"Redis is available again" in line for line in lines))
    finally:
        stop(process)


@pytest.mark.parametrize("busy", [True, False], ids=["while events come", "while nothing comes"])
def test_a_reader_that_leaves_ends_it_without_a_word(cli: Cli, root: redis.Redis, busy: bool) -> None:
    add(root, event("one"))
    process = cli.start("tail", role="sre")
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        deadline = time.monotonic() + 60
        while process.poll() is None:
            assert time.monotonic() < deadline
            if busy:
                add(root, event("more"))
            time.sleep(0.05)
        assert process.returncode == 0
        assert process.stderr.read() == b""
    finally:
        stop(process)


def test_an_empty_window_is_one_line_on_stderr_and_nothing_on_stdout(cli: Cli, root: redis.Redis) -> None:
    add(root, event("an hour ago"), ago_ms=3_600_000)
    done = cli.run("tail", "--no-follow", "--json", role="sre")
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"no events in the last 5m (older: --since 1h)\n"
    process = cli.start("tail", role="sre")
    try:
        told = Output(process.stderr).wait_for(lambda lines: len(lines) == 1)
        assert told == [b"no events in the last 5m; waiting for new ones (older: --since 1h)\n"]
        out = Output(process.stdout)
        add(root, event("new"))
        out.wait_for(lambda lines: len(lines) == 1)
    finally:
        stop(process)


def test_it_runs_with_rights_that_cannot_read_the_raw_stream(server: RedisServer) -> None:
    with redis.Redis(port=server.port, username="sre", password="sre-password") as sre:
        with pytest.raises(redis.exceptions.NoPermissionError):
            sre.xrange(CAPTURE.key(0))
        assert sre.xrange(EVENTS.key(0)) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["--since", "soon"], b"--since"), (["--kind", "tool"], b"--kind: 'tool' is not one of")],
)
def test_bad_usage_is_one_line_and_exit_2(cli: Cli, arguments: list[str], complaint: bytes) -> None:
    done = cli.call("tail", *arguments, role="sre")
    assert done.returncode == 2
    assert complaint in done.stderr
    assert b"Traceback" not in done.stderr


def test_without_redis_it_says_so_and_exits_2(tmp_path: Path) -> None:
    done: subprocess.CompletedProcess[bytes] = Cli(tmp_path).run("tail", role="sre")
    assert done.returncode == 2
    assert b"redis.url" in done.stderr
    assert len(done.stderr.splitlines()) == 1
