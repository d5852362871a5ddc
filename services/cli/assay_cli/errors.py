"""The error of a command line."""

from assay_operations.errors import OperationError


class CommandError(OperationError):
    """A command line that cannot be carried out. The message names the fix; exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid", message)
