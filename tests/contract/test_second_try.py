"""The gate's second try: the few tests that failed, by themselves, and no others."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.second_try import MOST, failed

CASE = '<testcase classname="{module}" name="{name}"><{end}/></testcase>'
#: One that passes.
HERE = "tests.contract.test_second_try"


def report(directory: Path, *cases: tuple[str, str, str]) -> Path:
    path = directory / "report.xml"
    inside = "".join(CASE.format(module=module, name=name, end=end) for module, name, end in cases)
    path.write_text(f"<testsuites><testsuite>{inside}</testsuite></testsuites>")
    return path


def second_try(path: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.second_try", path], capture_output=True, text=True, check=False, timeout=240
    )


def test_what_failed_is_named_as_pytest_takes_it(tmp_path: Path) -> None:
    path = report(
        tmp_path,
        ("tests.one", "test_a", "failure"),
        ("tests.one", "test_b[x-1]", "error"),
        ("tests.one", "test_c", "skipped"),
    )
    assert failed(path) == ["tests/one.py::test_a", "tests/one.py::test_b[x-1]"]


def test_the_group_of_a_test_is_no_part_of_its_name(tmp_path: Path) -> None:
    path = report(
        tmp_path,
        ("tests.one", "test_a@tests/one.py", "failure"),
        ("tests.one", "test_b[x@y]", "failure"),
        ("tests.one", "test_c[x@y]@store", "failure"),
    )
    assert failed(path) == ["tests/one.py::test_a", "tests/one.py::test_b[x@y]", "tests/one.py::test_c[x@y]"]


@pytest.mark.parametrize("count", [0, MOST + 1])
def test_none_and_many_have_no_second_try(tmp_path: Path, count: int) -> None:
    ended = second_try(report(tmp_path, *((HERE, f"test_{number}", "failure") for number in range(count))))
    assert ended.returncode == 1
    assert "no second try" in ended.stderr


def test_one_that_passes_by_itself_is_named(tmp_path: Path) -> None:
    ended = second_try(report(tmp_path, (HERE, "test_what_failed_is_named_as_pytest_takes_it@a group", "failure")))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "not steady:\ntests/contract/test_second_try.py::test_what_failed" in ended.stdout


def test_one_that_fails_again_fails(tmp_path: Path) -> None:
    assert second_try(report(tmp_path, (HERE, "test_that_is_not_there", "failure"))).returncode == 1
