"""A system under test, and the options for querying it."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from assay_operations.errors import OperationError

if TYPE_CHECKING:
    from assay_evals.target.runner import QueryResult, RunnerOptions
    from assay_evals.target.targets import CallableTarget, CommandTarget, HttpTarget, Question

Item = TypeVar("Item")


@dataclass(frozen=True)
class TargetConfig:
    """A system under test, with concurrency, timeout and retries."""

    target: str
    workspace: str | None = None
    concurrency: int = 5
    deadline_s: float = 30.0
    retries: int = 2
    #: Called with each error of the system.
    on_error: Callable[[Exception], None] | None = None
    #: Seconds that all queries together may take; None: no limit.
    within_s: float | None = None
    #: True if errors keep the stderr of a command.
    keep_message: bool = False

    def open(self) -> "tuple[HttpTarget | CallableTarget | CommandTarget, RunnerOptions]":
        """Open the target, and return it with the runner's options. Raises `OperationError`."""
        from assay_evals.errors import TargetUsageError
        from assay_evals.target.runner import RunnerOptions
        from assay_evals.target.targets import open_target

        log_no_tries()
        try:
            options = RunnerOptions(self.concurrency, self.deadline_s, self.retries, on_error=self.on_error)
        except ValueError as error:
            raise OperationError("invalid", f"--{error}") from None
        try:
            target = open_target(
                self.target,
                workspace=self.workspace,
                timeout_s=self.deadline_s,
                connections=self.concurrency,
                keep_message=self.keep_message,
            )
            return target, options
        except TargetUsageError as error:
            raise OperationError("invalid", f"--target: {error}") from None

    def ask(
        self,
        items: Iterable[Item],
        question: "Callable[[Item], Question | None]",
        take: "Callable[[QueryResult[Item]], None]",
    ) -> None:
        """Query the target for every item, and pass each answer to `take`, in the order of the items.

        Raises `TimeoutError` after `within_s` seconds.
        """
        from assay_evals.target.runner import run_queries

        target, options = self.open()

        async def work() -> None:
            async with asyncio.timeout(self.within_s):
                await run_queries(target, items, question, options, take)

        asyncio.run(work())


def log_no_tries() -> None:
    """Switch off the log of failed attempts: a result already has their number and the last error."""
    from stamina.instrumentation import set_on_retry_hooks

    set_on_retry_hooks([])
