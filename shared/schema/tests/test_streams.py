"""Stream names and shards: what every service, ACL and script relies on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_schema.streams import (
    ALERTS,
    CAPTURE,
    DEAD,
    EVENTS,
    FAILURES,
    STREAMS,
    acknowledged_key,
    calibration_key,
    drift_key,
    drift_seen_key,
    numbered_key,
    overflow_key,
    scrubbed_low_watermark_key,
    shard_of,
    watermark_key,
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (CAPTURE.key(), "assay:{0}:capture"),
        (EVENTS.key(1), "assay:{1}:events"),
        (FAILURES.key(15), "assay:{15}:failures"),
        (ALERTS.key(0), "assay:{0}:alerts"),
        (DEAD.key(0), "assay:{0}:dead"),
        (ALERTS.key(3), "assay:{3}:alerts"),
        (drift_key(2), "assay:{2}:drift"),
        (drift_seen_key(2), "assay:{2}:drift-seen"),
        (acknowledged_key(2), "assay:{2}:acknowledged"),
        (calibration_key(2), "assay:{2}:calibration"),
        (scrubbed_low_watermark_key(2), "assay:{2}:low"),
        (watermark_key(2), "assay:{2}:watermark"),
        (overflow_key(2), "assay:{2}:overflow"),
        (numbered_key(2), "assay:{2}:numbered"),
    ],
)
def test_keys_are_fixed(key: str, expected: str) -> None:
    assert key == expected


def test_all_keys_of_a_shard_share_one_cluster_slot_and_are_distinct() -> None:
    keys = [stream.key(3) for stream in STREAMS] + [
        scrubbed_low_watermark_key(3),
        watermark_key(3),
        overflow_key(3),
        numbered_key(3),
    ]
    assert {key[key.index("{") : key.index("}") + 1] for key in keys} == {"{3}"}
    assert len(set(keys)) == len(keys)


def test_only_the_scrubber_reads_raw_events() -> None:
    assert CAPTURE.groups == ("scrubber",)


@pytest.mark.parametrize(
    ("project", "of_2", "of_3", "of_16"),
    [("default", 1, 1, 15), ("acme", 0, 2, 14), ("proj-é", 0, 1, 6), ("p" * 64, 0, 0, 8)],
)
def test_a_project_keeps_its_shard_across_versions(project: str, of_2: int, of_3: int, of_16: int) -> None:
    assert (shard_of(project, 2), shard_of(project, 3), shard_of(project, 16)) == (of_2, of_3, of_16)


@given(st.text(max_size=64), st.integers(1, 16))
def test_every_project_has_a_shard(project: str, shards: int) -> None:
    assert 0 <= shard_of(project, shards) < shards


def test_one_shard_takes_every_project() -> None:
    assert {shard_of(project, 1) for project in ("default", "acme", "x")} == {0}


def test_projects_spread_over_all_shards() -> None:
    assert {shard_of(f"project-{n}", 16) for n in range(1_000)} == set(range(16))
