"""Set the conversation that events belong to: the `session_id` of a block, in its context."""

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Self

_current: ContextVar[str | None] = ContextVar("assay_capture_session", default=None)

#: Returns the `session_id` of the innermost `in_session` block, or None.
current_session = _current.get


class SessionBlock:
    """A block whose events belong to one session, used with `with` or `async with`. It may be nested."""

    def __init__(self, session_id: str | None) -> None:
        self._session_id = session_id
        self._tokens: list[Token[str | None]] = []

    def __enter__(self) -> Self:
        self._tokens.append(_current.set(self._session_id))
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
            _current.set(token.old_value if token.old_value is not Token.MISSING else None)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(exception_type, exception, traceback)
