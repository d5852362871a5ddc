"""Ask a target many questions concurrently, with deadlines and retries, in bounded memory."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, TypeVar

import stamina

from assay_evals.errors import ScorerError, TargetError
from assay_evals.target.response import TargetResponse
from assay_evals.target.targets import Question, Target

Item = TypeVar("Item")
Value = TypeVar("Value")
#: Items held for each query in progress.
HELD_PER_SLOT = 4


@dataclass(frozen=True)
class RunnerOptions:
    """Options for querying a target.

    `deadline_s` limits one question with all its attempts; `retries` counts those after the first. `on_error` gets the
    error of each question without an answer. The error may quote the question: show it to people, but never store it.
    """

    concurrency: int = 5
    deadline_s: float = 30.0
    retries: int = 2
    on_error: Callable[[Exception], None] | None = None

    def __post_init__(self) -> None:
        for holds, words in (
            (self.concurrency >= 1, "concurrency must be 1 or more"),
            (self.retries >= 0, "retries must be 0 or more"),
            (0 < self.deadline_s < float("inf"), "deadline must be a number of seconds above 0"),
        ):
            if not holds:
                raise ValueError(words)


@dataclass(frozen=True)
class QueryResult(Generic[Item]):
    """Result of one item: an answer or an error.

    `tries` is 1 unless it was retried. `judged` is the judge's verdict. `unscored`: the target answered, and scoring
    its answer is the error.
    """

    item: Item
    answer: TargetResponse | None
    error: str | None
    tries: int
    judged: Mapping[str, float | None] = field(default_factory=dict)
    unscored: bool = False


async def stream_queries(
    target: Target,
    items: Iterable[Item],
    question: Callable[[Item], Question | None],
    options: RunnerOptions,
    *,
    judge: Callable[[Item, TargetResponse], Awaitable[Mapping[str, float | None]]] | None = None,
) -> AsyncGenerator[QueryResult[Item]]:
    """Query the target for every item; yield each result once, in the order of the items.

    Items are taken from the iterable as slots become free: `concurrency` are queried at a time, and a few times as many
    are held, so that a slow one does not delay those behind it. An item for which `question` returns None is not queried;
    it comes back without an answer and without an error. `judge` is called for each answer in the same slot, outside of
    the deadline. Closing the iterator cancels requests in flight.
    """
    waiting = iter(items)
    places = asyncio.Semaphore(options.concurrency)
    held: deque[asyncio.Task[QueryResult[Item]]] = deque()

    async def one(item: Item) -> QueryResult[Item]:
        async with places:
            reply = await _ask(target, item, question(item), options)
            if judge is None or reply.answer is None:
                return reply
            try:
                return replace(reply, judged=await judge(item, reply.answer))
            except ScorerError as error:
                if options.on_error:
                    options.on_error(error)
                return replace(reply, answer=None, error=str(error), unscored=True)

    try:
        while True:
            for item in islice(waiting, options.concurrency * HELD_PER_SLOT - len(held)):
                held.append(asyncio.create_task(one(item)))
            if not held:
                return
            yield await held[0]
            held.popleft()
    finally:
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)


async def run_queries(
    target: Target,
    items: Iterable[Item],
    question: Callable[[Item], Question | None],
    options: RunnerOptions,
    take: Callable[[QueryResult[Item]], None],
    *,
    judge: Callable[[Item, TargetResponse], Awaitable[Mapping[str, float | None]]] | None = None,
    close: bool = True,
) -> None:
    """Run `stream_queries`, passing each answer to `take`. Closes the target by default."""
    try:
        async with aclosing(stream_queries(target, items, question, options, judge=judge)) as answers:
            async for reply in answers:
                take(reply)
    finally:
        if close:
            await target.close()


def run_sync(work: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine to its end, even if a loop is running, as in a notebook: then in a separate thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, thread_name_prefix="evaluation") as thread:
        return thread.submit(asyncio.run, work).result()


async def _ask(target: Target, item: Item, question: Question | None, options: RunnerOptions) -> QueryResult[Item]:
    if question is None:
        return QueryResult(item, None, None, 0)
    tries = 0

    def without_answer(error: Exception, reason: str) -> QueryResult[Item]:
        if options.on_error:
            options.on_error(error)
        return QueryResult(item, None, reason, tries)

    try:
        async with asyncio.timeout(options.deadline_s):
            async for attempt in stamina.retry_context(
                on=lambda error: isinstance(error, TargetError) and error.retryable,
                attempts=options.retries + 1,
                timeout=options.deadline_s,
                wait_initial=0.1,
                wait_max=2.0,
                wait_jitter=0.1,
            ):
                tries = attempt.num
                with attempt:
                    return QueryResult(item, await target.ask(question), None, tries)
    except TargetError as error:
        return without_answer(error, str(error))
    except TimeoutError as error:
        return without_answer(error, f"no answer within {options.deadline_s:g} s")
    except Exception as error:  # noqa: BLE001  # an unexpected error is one item's error; its text may quote the question
        return without_answer(error, type(error).__name__)
    raise AssertionError("unreachable: the last try returns or raises")
