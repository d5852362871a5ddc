"""A short, seeded run of what `make fuzz SUITE=gateway` does with 10,000 requests."""

from pathlib import Path

from tests.security.fuzz_gateway import run
from tests.security.openapi_client import operations


def test_hostile_requests_get_the_right_answer_and_an_honest_client_is_served(tmp_path: Path) -> None:
    report = run(tmp_path, seed=20261127, attacks=300)
    assert report.faults == []
    assert report.answers.total() == 300
    assert len(report.answers) > 8
    assert report.honest


def test_every_answer_is_one_that_the_openapi_document_lists(tmp_path: Path) -> None:
    report = run(tmp_path, seed=20261127, attacks=0, examples=3)
    assert report.faults == []
    assert {name.rpartition(" ")[0] for name in report.documented} == {each.label for each in operations("gateway")}
    statuses = {name.rpartition(" ")[2] for name in report.documented}
    assert {"200", "202", "400"} <= statuses <= {"200", "202", "400", "404", "413"}
