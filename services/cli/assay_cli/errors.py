"""Exit codes: 0 ok, 1 a finding (the command worked, and what it found is not right), 2 usage or operational."""

from assay_operations.errors import OperationError

OK = 0
FINDING = 1
OPERATIONAL = 2
#: Exit code of what cannot tell.
INCONCLUSIVE = 3


class CommandError(OperationError):
    """What a command line asks for cannot be. The message names the option or command that mends it; the exit code is 2."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid", message)
