"""A short, seeded run of what `make fuzz` does for ten minutes."""

from pathlib import Path

from tests.security.fuzz_store import run


def test_hostile_requests_break_nothing_and_lose_no_row(tmp_path: Path) -> None:
    report = run(tmp_path, seconds=240, seed=20261122, attackers=4, attacks=30)
    assert report.requests > 60
    assert report.rows_stored >= report.rows_sent > 0
    assert report.faults == []
