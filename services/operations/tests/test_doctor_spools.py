"""Tests of where the doctor looks for events that wait on this host."""

from pathlib import Path

import pytest

from assay_operations.doctor import host_checks, probes
from assay_schema.settings import CaptureSettings


def spooled(directory: Path, destination: str) -> Path:
    owner = directory / "assay-spool-0" / destination / "owner"
    owner.mkdir(parents=True)
    (owner / "1.jsonl").write_text("{}\n")
    return directory


def test_the_spool_of_a_producer_without_the_directory_setting_is_found_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    default, own = spooled(tmp_path / "state" / "assay-spool", "redis-a"), tmp_path / "own"
    found = probes.spool_facts(*probes.spool_directories(CaptureSettings(spool_dir=own)))
    assert [(each.destination, each.directory) for each in found] == [("redis-a", str(default))]
    assert str(default) in host_checks.spool(found, "redis-a", 1_000).summary
    spooled(own, "redis-a")
    both = probes.spool_facts(*probes.spool_directories(CaptureSettings(spool_dir=own)))
    assert [each.directory for each in both] == [str(own), str(default)]


def test_a_spool_that_the_settings_and_the_default_name_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    directory = spooled(tmp_path / "assay-spool", "redis-a")
    assert len(probes.spool_facts(*probes.spool_directories(CaptureSettings(spool_dir=directory)))) == 1
