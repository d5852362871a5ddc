"""The error of a command line."""

from assay_operations.errors import OperationError


class CommandError(OperationError):
    """What a command line asks for cannot be. The message names the option or command that mends it; the exit code is 2."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid", message)
