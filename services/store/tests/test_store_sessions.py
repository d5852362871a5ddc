"""Sessions: one request at a time, and an end."""

from typing import Any

import pytest

from assay_store.engine import Handle
from assay_store.errors import StoreError
from assay_store.roles import Role
from assay_store.sessions import Session, Sessions


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _enter(sessions: Sessions, user: str = "u", name: str = "s", **changed: Any) -> Session:
    session = sessions.enter(user, name, **{"seconds": None, "must_exist": False} | changed)
    session.handle = session.handle or Handle(None, Role.OWNER, "h")
    return session


def test_a_session_keeps_its_handle_until_its_time_is_over() -> None:
    clock = Clock()
    sessions = Sessions(60, 3600, 2, clock)
    first = _enter(sessions)
    sessions.leave(first)
    clock.now = 59
    assert sessions.expired() == []
    assert _enter(sessions, must_exist=True).handle is first.handle
    sessions.leave(first)
    clock.now = 119
    assert sessions.expired() == [first.handle]
    with pytest.raises(StoreError) as caught:
        _enter(sessions, must_exist=True)
    assert caught.value.code == 372


def test_a_session_serves_one_request_at_a_time_and_does_not_expire_meanwhile() -> None:
    clock = Clock()
    sessions = Sessions(60, 3600, 2, clock)
    _enter(sessions)
    clock.now = 10_000
    assert sessions.expired() == []
    with pytest.raises(StoreError) as caught:
        _enter(sessions)
    assert caught.value.code == 373


def test_users_do_not_share_sessions() -> None:
    sessions = Sessions(60, 3600, 2, Clock())
    assert _enter(sessions, "a").handle is not _enter(sessions, "b").handle


@pytest.mark.parametrize("seconds", [0, -1, 3601])
def test_a_session_cannot_live_longer_than_allowed(seconds: int) -> None:
    with pytest.raises(StoreError):
        _enter(Sessions(60, 3600, 2, Clock()), seconds=seconds)


def test_a_user_has_so_many_sessions_and_others_have_theirs() -> None:
    clock = Clock()
    sessions = Sessions(60, 3600, 2, clock)
    first = _enter(sessions, "a", "1")
    sessions.leave(first)
    _enter(sessions, "a", "2")
    with pytest.raises(StoreError, match="700"):
        _enter(sessions, "a", "3")
    assert _enter(sessions, "a", "1") is first
    _enter(sessions, "b", "3")
    sessions.leave(first)
    clock.now = 61
    sessions.expired()
    _enter(sessions, "a", "3")
