"""Bodies share the turns of the event loop: none has long ones, and many at once have no longer ones."""

import asyncio
from collections.abc import Iterator

import pytest

from assay_gateway import turns
from assay_gateway.turns import SLICE_S, Turns

STEP_S = SLICE_S / 4


class Clock:
    """A clock that goes on with each step of work only."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def work(self, steps: int) -> Iterator[None]:
        for _ in range(steps):
            self.now += STEP_S
            yield


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(turns, "time", made)
    return made


@pytest.mark.parametrize(("bodies", "steps"), [(1, 100), (30, 3), (30, 100)])
def test_a_turn_has_the_time_of_new_bodies_and_of_one_that_goes_on(clock: Clock, bodies: int, steps: int) -> None:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = clock.now
            await asyncio.sleep(0)
            longest = max(longest, clock.now - before)

    async def run() -> None:
        shared, watching = Turns(), asyncio.create_task(watch())
        await asyncio.gather(*[shared.take(clock.work(steps)) for _ in range(bodies)])
        watching.cancel()

    asyncio.run(run())
    assert clock.now == pytest.approx(bodies * steps * STEP_S)
    assert longest <= (1 if bodies == 1 else 2) * (SLICE_S + 2 * STEP_S)


def test_a_small_body_does_not_wait_for_large_ones_and_these_take_turns(clock: Clock) -> None:
    ended = []

    async def body(shared: Turns, name: str, steps: int) -> None:
        await shared.take(clock.work(steps))
        ended.append(name)

    async def run() -> None:
        shared = Turns()
        large = [asyncio.create_task(body(shared, f"large {number}", 400)) for number in range(5)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert ended == []
        await body(shared, "small", 1)
        assert ended == ["small"]
        before = clock.now
        await asyncio.gather(*large)
        assert clock.now - before > 300 * STEP_S

    asyncio.run(run())
    assert ended == ["small", *(f"large {number}" for number in range(5))]
