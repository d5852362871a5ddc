"""A short, seeded run of what `make fuzz` does for ten minutes."""

from pathlib import Path

import pytest

from tests.security.fuzz_store import run


# With the second seed an earlier gate let a reader do what it must not.
@pytest.mark.parametrize("seed", [20261122, 4])
def test_hostile_requests_break_nothing_and_lose_no_row(tmp_path: Path, seed: int) -> None:
    report = run(tmp_path, seconds=240, seed=seed, attackers=4, attacks=30)
    assert report.requests > 60
    assert report.rows_stored >= report.rows_sent > 0
    assert report.faults == []
