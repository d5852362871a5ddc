"""A system under test, and how it is asked."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_evals.runner import Asked, Asking
    from assay_evals.targets import Question, Target

Item = TypeVar("Item")


@dataclass(frozen=True)
class TargetConfig:
    """A system under test and how it is asked."""

    target: str
    workspace: str | None = None
    concurrency: int = 5
    deadline_s: float = 30.0
    retries: int = 2
    #: Told of each error of the system.
    on_error: Callable[[Exception], None] | None = None
    #: Whether errors keep what a command said on stderr.
    keep_said: bool = False

    def open(self) -> "tuple[Target, Asking]":
        """The target and how it is asked. Raises `OperationError` for what cannot be."""
        from assay_evals.errors import TargetUsageError
        from assay_evals.runner import Asking
        from assay_evals.targets import open_target

        log_no_tries()
        try:
            how = Asking(self.concurrency, self.deadline_s, self.retries, told=self.on_error)
        except ValueError as error:
            raise OperationError("invalid", f"--{error}") from None
        try:
            target = open_target(
                self.target,
                workspace=self.workspace,
                timeout_s=self.deadline_s,
                connections=self.concurrency,
                keep_said=self.keep_said,
            )
            return target, how
        except TargetUsageError as error:
            raise OperationError("invalid", f"--target: {error}") from None

    def ask(
        self,
        items: Iterable[Item],
        question: "Callable[[Item], Question | None]",
        take: "Callable[[Asked[Item]], None]",
    ) -> None:
        """Ask about every item and hand on each answer, in the order of the items."""
        from assay_evals.runner import ask_each

        target, how = self.open()
        asyncio.run(ask_each(target, items, question, how, take))


def log_no_tries() -> None:
    """Each try that failed would be a line in the log; a result counts its tries, and says what the last one ended in."""
    from stamina.instrumentation import set_on_retry_hooks

    set_on_retry_hooks([])
