"""The error of every operation."""

from typing import Literal

#: What went wrong, for programs: a command exits with 2 on each, a web server answers 503, 403, 404, 422 or 409.
Kind = Literal["unavailable", "refused", "not_found", "invalid", "conflict"]


class OperationError(Exception):
    """An operation cannot be done. Its text is the message, then the `fix`: the setting or command that helps."""

    def __init__(self, kind: Kind, message: str, fix: str = "") -> None:
        super().__init__(f"{message}; {fix}" if fix else message)
        self.kind, self.message, self.fix = kind, message, fix
