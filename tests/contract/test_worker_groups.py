"""Tests that share a module's servers run in one worker, so that these start once: the runner's own promise, which versions broke."""

import subprocess

import pytest


@pytest.fixture(scope="module")
def shared() -> object:
    return object()


@pytest.mark.xdist_group("named")
def test_a_group_that_is_named_is_what_workers_share_tests_by(request: pytest.FixtureRequest) -> None:
    assert _group(request) in (None, "named")


def test_what_uses_a_fixture_of_its_module_is_in_its_modules_group(
    shared: object, request: pytest.FixtureRequest
) -> None:
    assert _group(request) in (None, "tests/contract/test_worker_groups.py")


def test_what_computes_only_is_in_its_modules_group_too(request: pytest.FixtureRequest) -> None:
    assert _group(request) in (None, "tests/contract/test_worker_groups.py")


def test_what_starts_its_own_process_is_in_no_group(request: pytest.FixtureRequest) -> None:
    assert subprocess.run(["true"], check=True).returncode == 0
    assert _group(request) in (None, "")


def _group(request: pytest.FixtureRequest) -> str | None:
    """The group by which tests are shared out; None where there are no workers."""
    parallel = hasattr(request.config, "workerinput") and request.config.getoption("loadgroup", default=False)
    return request.node.nodeid.partition("@")[2] if parallel else None
