"""Sessions: handles that keep their settings, current database and temporary tables between requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from assay_store.engine import Handle
from assay_store.errors import SESSION_IS_LOCKED, SESSION_NOT_FOUND, StoreError
from assay_store.roles import Role


@dataclass
class Session:
    """One session. `busy` while a request uses it; `expires` on the clock of the sessions that hold it."""

    handle: Handle
    seconds: int
    expires: float
    busy: bool = False


class Sessions:
    """The sessions of one store, by user and session id. Used from the event loop only."""

    def __init__(self, default_seconds: int, longest_seconds: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._default = default_seconds
        self._longest = longest_seconds
        self._clock = clock
        self._sessions: dict[tuple[str, str], Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def enter(
        self, user: str, name: str, *, seconds: int | None, must_exist: bool, role: Role, make: Callable[[Role], Handle]
    ) -> Session:
        """Take a session for one request, making it if it does not exist.

        Raises:
            StoreError: it must exist and does not (372), another request uses it (373), or its time is too long (36).
        """
        if seconds is not None and not 0 < seconds <= self._longest:
            raise StoreError(36, f"session_timeout must be between 1 and {self._longest} seconds")
        session = self._sessions.get((user, name))
        if session is None:
            if must_exist:
                raise StoreError(SESSION_NOT_FOUND, "Session not found")
            session = Session(make(role), seconds or self._default, 0.0)
            session.handle.tainted = True
            self._sessions[user, name] = session
        elif session.busy:
            raise StoreError(SESSION_IS_LOCKED, "Session is locked by a concurrent client")
        if seconds is not None:
            session.seconds = seconds
        session.busy = True
        return session

    def leave(self, session: Session) -> None:
        """Give a session back; its time starts anew."""
        session.busy = False
        session.expires = self._clock() + session.seconds

    def drop(self, session: Session) -> None:
        """Forget a session whose handle cannot be used again."""
        self._sessions = {key: value for key, value in self._sessions.items() if value is not session}

    def expired(self) -> list[Handle]:
        """Forget the sessions whose time is over; returns their handles, to be closed."""
        now = self._clock()
        over = {key for key, session in self._sessions.items() if not session.busy and session.expires <= now}
        return [self._sessions.pop(key).handle for key in over]

    def clear(self) -> list[Handle]:
        """Forget every session; returns their handles, to be closed."""
        handles = [session.handle for session in self._sessions.values()]
        self._sessions.clear()
        return handles
