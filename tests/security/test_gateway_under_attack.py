"""A short, seeded run of what `make fuzz SUITE=gateway` does with 10,000 requests."""

from pathlib import Path

from tests.security.fuzz_gateway import run


def test_hostile_requests_get_the_right_answer_and_an_honest_client_is_served(tmp_path: Path) -> None:
    report = run(tmp_path, seed=20261127, attacks=300)
    assert report.faults == []
    assert report.answers.total() == 300
    assert len(report.answers) > 8
    assert report.honest
