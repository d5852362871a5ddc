"""What docs/scrubbing.md says of Redis's append-only file: raw entries stay in it until its next rewrite."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from assay_schema.streams import CAPTURE, FIELD
from tests.support.redis import RedisServer, each_redis_binary  # noqa: F401

SECRET = b"ada.planted@example.com"


@pytest.fixture
def server(redis_binary: str, tmp_path: Path) -> Iterator[RedisServer]:
    # Uncompressed, so that what is in a file can be found there.
    server = RedisServer(tmp_path, "--rdbcompression", "no", binary=redis_binary).start()
    yield server
    server.stop()


def on_disk(directory: Path) -> bool:
    return any(SECRET in path.read_bytes() for path in directory.rglob("*") if path.is_file())


def rewrite(client: "redis.Redis") -> None:
    client.bgrewriteaof()
    deadline = time.monotonic() + 60
    while (state := client.info("persistence"))["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]:
        assert time.monotonic() < deadline, "the rewrite does not end"
        time.sleep(0.02)
    assert state["aof_last_bgrewrite_status"] == "ok"


def test_what_was_scrubbed_is_in_the_file_until_a_rewrite_finds_the_stream_empty(
    server: RedisServer, tmp_path: Path
) -> None:
    with server.client() as client:
        scrubbed = client.xadd(CAPTURE.key(), {FIELD: SECRET})
        waiting = client.xadd(CAPTURE.key(), {FIELD: "not read yet"})
        client.xdel(CAPTURE.key(), scrubbed)
        assert on_disk(tmp_path), "deleted from the stream, and still in the file"
        rewrite(client)
        assert on_disk(tmp_path), "the stream's nodes are written whole, with what was deleted in them"
        client.xdel(CAPTURE.key(), waiting)
        rewrite(client)
        deadline = time.monotonic() + 60
        while on_disk(tmp_path):  # Redis deletes its old files in the background
            assert time.monotonic() < deadline, "the rewritten file still holds it"
            time.sleep(0.02)
