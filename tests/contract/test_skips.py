"""A test that was skipped though it could have run fails the gate."""

from collections import Counter
from pathlib import Path

import pytest

from tests.programs import DEBIAN, lacking
from tests.skips import BARE_MOST, read, unfounded


def test_passed_and_skipped_tests_are_counted_by_reason(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite><testcase/><testcase><failure/></testcase><testcase><error/></testcase>"
        '<testcase><skipped message="one"/></testcase><testcase><skipped message="one"/></testcase></testsuite></testsuites>'
    )
    assert read(report) == (1, Counter(one=2))


@pytest.mark.parametrize("name", [names[0] for names in DEBIAN])
def test_a_missing_program_is_a_reason_on_a_bare_machine_only(name: str) -> None:
    skipped = Counter([lacking(name)])
    assert unfounded(skipped, bare=True) == []
    assert unfounded(skipped, bare=False) == [f"skipped without a good reason: {lacking(name)}"]


def test_an_unknown_reason_never_holds() -> None:
    assert unfounded(Counter(["no time"]), bare=True) == ["skipped without a good reason: no time"]


def test_more_than_a_few_skips_do_not_hold_even_on_a_bare_machine() -> None:
    skipped = Counter({lacking("curl"): BARE_MOST})
    assert unfounded(skipped, bare=True) == []
    assert len(unfounded(skipped + Counter([lacking("cc")]), bare=True)) == 1
