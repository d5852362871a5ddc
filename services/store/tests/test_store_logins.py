"""Failed logins: counted by name, and a name that fails often waits."""

from collections import Counter

import pytest

from assay_store.logins import SUSPICIOUS, Logins


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_name_waits_after_many_failures_within_a_minute_and_no_other_does() -> None:
    clock, counted = Clock(), Counter[str]()
    logins = Logins(["ann", "bob"], lambda name: counted.update([name]), clock)
    for _ in range(SUSPICIOUS):
        assert not logins.waits("ann", known=False)
        logins.failed("ann", "peer")
    assert logins.waits("ann", known=False)
    assert not logins.waits("ann", known=True)
    assert not logins.waits("bob", known=False)
    clock.now += 61
    assert not logins.waits("ann", known=False)
    assert counted == {"ann": SUSPICIOUS}


def test_names_that_nobody_has_are_one_and_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    counted = Counter[str]()
    logins = Logins(["ann"], lambda name: counted.update([name]))
    for number in range(500):
        logins.failed(f"secret-{number}", "peer")
    assert counted == {"unknown": 500}
    assert len(caplog.records) <= 6
    assert "secret" not in caplog.text
