"""The data of one Redis, opened by the one that `assay up` starts next."""

from pathlib import Path

from assay_local.preflight import find_redis
from assay_schema.streams import CAPTURE, FIELD
from tests.support.redis import RedisServer, each_redis_binary  # noqa: F401


def command(*words: str) -> bytes:
    """As Redis writes a command to its log."""
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)])


def test_the_log_of_redis_6_2_which_assay_up_once_brought_is_taken_over(redis_binary: str, tmp_path: Path) -> None:
    """One file `appendonly.aof`; servers since 7.0 keep a directory, and read that one only the first time."""
    key = CAPTURE.key()
    log = [
        command("SELECT", "0"),
        command("XADD", key, "1700000000000-0", FIELD, "read"),
        command("XADD", key, "1700000000000-1", FIELD, "unread"),
        command("XGROUP", "CREATE", key, "scrubber", "1700000000000-0"),
    ]
    (tmp_path / "appendonly.aof").write_bytes(b"".join(log))
    server = RedisServer(tmp_path, binary=redis_binary).start()
    try:
        with server.client() as client:
            assert client.xlen(key) == 2
            [(_, [(entry, fields)])] = client.xreadgroup("scrubber", "one", {key: ">"})
            assert (entry, fields) == (b"1700000000000-1", {FIELD.encode(): b"unread"})
            client.bgrewriteaof()
        server.kill()
        server.start()
        with server.client() as client:
            assert client.xpending(key, "scrubber")["pending"] == 1
    finally:
        server.stop()


def test_what_any_server_here_wrote_is_there_in_the_one_that_is_started_next(redis_binary: str, tmp_path: Path) -> None:
    server = RedisServer(tmp_path, binary=redis_binary).start()
    with server.client() as client:
        client.xadd(CAPTURE.key(), {FIELD: "x"})
    server.stop()
    found = find_redis(tmp_path)
    assert found.path == redis_binary or not found.passed_over
    server = RedisServer(tmp_path, binary=found.path).start()
    try:
        with server.client() as client:
            assert client.xlen(CAPTURE.key()) == 1
    finally:
        server.stop()
