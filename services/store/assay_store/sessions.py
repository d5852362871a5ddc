"""Sessions: handles that keep their settings, current database and temporary tables between requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from assay_store.engine import Handle
from assay_store.errors import (
    BAD_ARGUMENTS,
    SESSION_IS_LOCKED,
    SESSION_NOT_FOUND,
    USER_SESSION_LIMIT_EXCEEDED,
    StoreError,
)


@dataclass
class Session:
    """One session. `busy` while a request uses it; `expires` by the clock of its `Sessions`."""

    user: str
    seconds: int
    expires: float = 0.0
    busy: bool = False
    handle: Handle | None = None
    """None until the first request creates it: that takes a millisecond or more, and never happens in the event loop."""


class Sessions:
    """The sessions of one store, by user and session id. Used from the event loop only."""

    def __init__(
        self, default_seconds: int, longest_seconds: int, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._default = default_seconds
        self._most = most
        self._longest = longest_seconds
        self._clock = clock
        self._sessions: dict[tuple[str, str], Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(self, user: str, name: str, *, seconds: int | None, must_exist: bool) -> Session:
        """Take a session for one request, creating it if it does not exist.

        Raises:
            StoreError: it must exist and does not (372), another request uses it (373), its time is too long (36), or the
                user has too many (700).
        """
        if seconds is not None and not 0 < seconds <= self._longest:
            raise StoreError(BAD_ARGUMENTS, f"session_timeout must be between 1 and {self._longest} seconds")
        session = self._sessions.get((user, name))
        if session is None:
            if must_exist:
                raise StoreError(SESSION_NOT_FOUND, "Session not found")
            if sum(other.user == user for other in self._sessions.values()) >= self._most:
                raise StoreError(
                    USER_SESSION_LIMIT_EXCEEDED,
                    f"User {user} has {self._most} sessions already: use fewer session_id, a shorter session_timeout, "
                    "or raise --max-sessions-per-user",
                )
            session = self._sessions[user, name] = Session(user, seconds or self._default)
        elif session.busy:
            raise StoreError(SESSION_IS_LOCKED, "Session is locked by a concurrent client")
        if seconds is not None:
            session.seconds = seconds
        session.busy = True
        return session

    def leave(self, session: Session) -> None:
        """Release a session and restart its time."""
        session.busy = False
        session.expires = self._clock() + session.seconds

    def drop(self, session: Session) -> None:
        """Remove a session whose handle cannot be used again."""
        self._sessions = {key: value for key, value in self._sessions.items() if value is not session}

    def expired(self) -> list[Handle]:
        """Remove expired sessions; returns their handles, to be closed."""
        now = self._clock()
        over = {key for key, session in self._sessions.items() if not session.busy and session.expires <= now}
        return [handle for key in over if (handle := self._sessions.pop(key).handle)]

    def clear(self) -> list[Handle]:
        """Remove every session; returns their handles, to be closed."""
        handles = [session.handle for session in self._sessions.values() if session.handle]
        self._sessions.clear()
        return handles
