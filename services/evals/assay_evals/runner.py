"""Ask a target many questions: some at once, each with a deadline and a few tries, in memory that does not grow with their number."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

import stamina

from assay_evals.replay import Retrieved
from assay_evals.targets import Question, Target, TargetError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Asking:
    """How a target is asked. `deadline_s` bounds one question with all its tries; `retries` counts those beyond the first."""

    concurrency: int = 5
    deadline_s: float = 30.0
    retries: int = 2

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.retries < 0 or not 0 < self.deadline_s < float("inf"):
            raise ValueError(
                "concurrency is 1 or more, retries 0 or more, and the deadline a number of seconds above 0"
            )


@dataclass(frozen=True)
class Asked(Generic[Item]):
    """One item with what came back, or why nothing did. `tries` is 1 unless it was tried again."""

    item: Item
    answer: Retrieved | None
    error: str | None
    tries: int


async def ask_all(
    target: Target, items: Iterable[Item], question: Callable[[Item], Question | None], how: Asking
) -> AsyncIterator[Asked[Item]]:
    """Ask about every item, and yield each once, in the order they are done.

    Items are taken from the iterable as places become free: no more than `concurrency` are held at a time. An item for which `question`
    gives None is not asked; it comes back without an answer and without an error. Closing the iterator cancels what is in flight.
    """
    waiting = iter(items)
    running: set[asyncio.Task[Asked[Item]]] = set()
    try:
        while True:
            for item in _take(waiting, how.concurrency - len(running)):
                running.add(asyncio.create_task(_ask(target, item, question(item), how)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        for task in running:
            with suppress(asyncio.CancelledError, Exception):
                await task


def _take(waiting: Iterator[Item], count: int) -> Iterator[Item]:
    for _ in range(count):
        try:
            yield next(waiting)
        except StopIteration:
            return


async def _ask(target: Target, item: Item, question: Question | None, how: Asking) -> Asked[Item]:
    if question is None:
        return Asked(item, None, None, 0)
    tries = 0
    try:
        async with asyncio.timeout(how.deadline_s):
            async for attempt in stamina.retry_context(
                on=lambda error: isinstance(error, TargetError) and error.retryable,
                attempts=how.retries + 1,
                timeout=how.deadline_s,
                wait_initial=0.1,
                wait_max=2.0,
                wait_jitter=0.1,
            ):
                tries = attempt.num
                with attempt:
                    return Asked(item, await target.ask(question), None, tries)
    except TargetError as error:
        return Asked(item, None, str(error), tries)
    except TimeoutError:
        return Asked(item, None, f"no answer within {how.deadline_s:g} s", tries)
    raise AssertionError("unreachable: the last try returns or raises")
