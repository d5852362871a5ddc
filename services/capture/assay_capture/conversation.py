"""Set the conversation and the user that events belong to, for a block, in its context."""

from contextvars import ContextVar, Token
from types import TracebackType
from typing import NamedTuple, Self


class _Conversation(NamedTuple):
    session_id: str | None
    user_hash: str | None


_NONE = _Conversation(None, None)
_current: ContextVar[_Conversation] = ContextVar("assay_capture_session", default=_NONE)


def current_session() -> str | None:
    """Return the `session_id` of the innermost `in_session` block, or None."""
    return _current.get().session_id


def current_user() -> str | None:
    """Return the `user_hash` of the innermost `in_session` block that has one, or None."""
    return _current.get().user_hash


class SessionBlock:
    """A block whose events belong to one session, used with `with` or `async with`. It may be nested."""

    def __init__(self, session_id: str | None, user_hash: str | None = None) -> None:
        self._session_id, self._user_hash = session_id, user_hash
        self._tokens: list[Token[_Conversation]] = []

    def __enter__(self) -> Self:
        user_hash = current_user() if self._user_hash is None else self._user_hash
        self._tokens.append(_current.set(_Conversation(self._session_id, user_hash)))
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        token = self._tokens.pop()
        try:
            _current.reset(token)
        except ValueError:  # the block ends in another context, as a generator's may
            _current.set(token.old_value if token.old_value is not Token.MISSING else _NONE)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(exception_type, exception, traceback)
