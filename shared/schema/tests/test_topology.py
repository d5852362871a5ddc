"""Addresses with several hosts, slots, and what clusters and Sentinels answer."""

import re

import pytest

from assay_schema.settings import RedisSettings, SettingsError
from assay_schema.topology import address_of, destination, hosts, master_named, master_of_slot, nodes_in, slot_of


def settings(url: str, mode: str = "cluster") -> RedisSettings:
    return RedisSettings.model_validate({"url": url, "mode": mode})


def test_the_slot_of_a_shard_is_that_of_its_keys() -> None:
    assert [slot_of(shard) for shard in (0, 1, 2, 15)] == [13_907, 9_842, 5_649, 4_178]


def test_an_address_may_name_several_hosts_of_a_cluster_or_several_sentinels() -> None:
    url = "rediss://user:p%40ss@one:7001,two,[::1]:7003/0"
    assert hosts(settings(url)) == [("one", 7001), ("two", 6379), ("::1", 7003)]
    assert hosts(settings(url, "sentinel"))[1] == ("two", 26_379)
    assert address_of(settings(url)) == "rediss://user:p%40ss@one:7001/0"
    assert address_of(settings("redis://[::1],two")) == "redis://[::1]:6379"


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("redis://one,two", "standalone"),
        ("redis://one,", "cluster"),
        ("redis://one:x", "cluster"),
        ("redis://one:0", "standalone"),
        ("unix:///run/redis", "cluster"),
        ("http://one", "standalone"),
    ],
)
def test_an_address_that_cannot_work_is_refused(url: str, mode: str) -> None:
    with pytest.raises(SettingsError, match=r"redis\.url"):
        hosts(settings(url, mode))


SLOTS = [
    [0, 8_191, [b"10.0.0.1", 7001, b"id-1"], [b"10.0.0.2", 7001, b"id-2"]],
    [8_192, 16_383, [b"", 7002, b"id-3"]],
]


def test_the_master_of_a_slot_is_the_first_node_of_its_range_and_one_without_a_name_is_the_one_asked() -> None:
    assert master_of_slot(SLOTS, 8_191, "seed") == ("10.0.0.1", 7001)
    assert master_of_slot(SLOTS, 8_192, "seed") == ("seed", 7002)
    assert master_of_slot(SLOTS[:1], 8_192, "seed") is None
    assert nodes_in(SLOTS, "seed") == [("10.0.0.1", 7001), ("10.0.0.2", 7001), ("seed", 7002)]


def test_a_sentinel_that_does_not_know_the_name_names_nobody() -> None:
    assert master_named([b"10.0.0.1", b"6379"]) == ("10.0.0.1", 6379)
    assert master_named(None) is None


def named(url: str, mode: str = "standalone", **settings: object) -> str:
    return destination(RedisSettings.model_validate({"url": url, "mode": mode, **settings}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("redis://h:6379/0",), ("redis://producer:secret@h/",)),
        (("redis://h:6379/0",), ("rediss://H:6379",)),
        (("redis://h:6379/2",), ("redis://h?db=2",)),
        (("redis://a,b:7000", "cluster"), ("redis://u:p@b:7000,a:6379", "cluster")),
        (("redis://a,b", "sentinel"), ("redis://b,a,a", "sentinel")),
        (("unix:///run/redis.sock",), ("unix://u:p@/run/redis.sock?db=0",)),
    ],
)
def test_the_same_redis_has_one_name_whoever_asks_and_however(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert named(*one) == named(*other)


def test_shards_replicas_and_time_outs_are_no_part_of_the_name() -> None:
    assert named("redis://h") == named("redis://h", shards=4, replicas=1, connect_timeout_s=9)


def test_another_host_port_database_socket_or_master_is_another_redis() -> None:
    names = [
        named("redis://h"),
        named("redis://h:6380"),
        named("redis://h/1"),
        named("redis://g"),
        named("redis://h,g", "cluster"),
        named("redis://h:6379", "sentinel"),
        named("redis://h:6379", "sentinel", sentinel_master="other"),
        named("unix:///run/a.sock"),
        named("unix:///run/b.sock"),
        named("unix:///run/b.sock?db=1"),
    ]
    assert len(set(names)) == len(names)


def test_a_name_is_readable_fit_for_a_directory_and_holds_no_secret() -> None:
    assert re.fullmatch(r"redis\.internal-6390-2-[0-9a-f]{16}", named("redis://producer:secret@redis.internal:6390/2"))
    assert re.fullmatch(r"1-6379-0-[0-9a-f]{16}", named("redis://[::1]"))
    assert re.fullmatch(r"run-redis.sock-0-[0-9a-f]{16}", named("unix:///run/redis.sock"))
    assert len(named(f"redis://{'h' * 250}")) < 120
