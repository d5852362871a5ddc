"""What a `kill -9` of a producer loses, in each mode: no more than what was neither in Redis nor in the spool."""

from pathlib import Path

import pytest

from tests.bench.durability import loss

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    ("durability", "redis_up"),
    [("memory", True), ("spool", True), ("spool", False), ("fsync", False)],
    ids=["memory", "spool", "spool while Redis is away", "fsync while Redis is away"],
)
def test_a_killed_producer_loses_only_what_was_in_its_memory(tmp_path: Path, durability: str, redis_up: bool) -> None:
    killed = loss(durability, tmp_path / "kill", redis_up=redis_up, events=300)
    assert killed.captured >= 300
    assert killed.safe_but_lost == 0
    assert killed.lost < killed.captured


def test_with_memory_alone_all_that_waits_for_redis_dies_with_its_producer(tmp_path: Path) -> None:
    killed = loss("memory", tmp_path / "kill", redis_up=False, events=300)
    assert killed.lost == killed.captured
