"""Room on the disk: what is done about merges, before there is none."""

import asyncio
import contextlib
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay_store import disk_guard
from assay_store.disk_guard import statement
from assay_store.errors import ABORTED, StoreError

RESERVE = 1000


@pytest.mark.parametrize(
    ("stopped", "free", "wanted"),
    [
        (False, 5000, None),
        (False, 500, None),
        (False, 499, "SYSTEM STOP MERGES"),
        (True, 10, None),
        (True, 999, None),
        (True, 1000, "SYSTEM START MERGES"),
    ],
)
def test_merges_stop_once_half_of_the_reserve_is_gone_and_start_when_all_of_it_is_back(
    stopped: bool, free: int, wanted: str | None
) -> None:
    assert statement(free, RESERVE, stopped=stopped) == wanted


def test_merges_that_a_person_stopped_stay_stopped_while_there_is_room() -> None:
    assert [statement(free, RESERVE, stopped=False) for free in (500, 1000, 5000)] == [None] * 3


def test_without_a_reserve_merges_are_left_alone() -> None:
    assert statement(0, 0, stopped=False) is None


async def test_what_the_engine_refused_for_want_of_memory_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[StoreError | None] = [StoreError(241, "no memory"), None]
    sent: list[str] = []
    started = asyncio.Event()

    async def control(sql: str) -> None:
        sent.append(sql)
        if answers and (error := answers.pop(0)):
            raise error
        if sql == "SYSTEM START MERGES":
            started.set()
        free.value = 5000

    free = SimpleNamespace(value=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free.value))
    watching = asyncio.create_task(disk_guard.watch(tmp_path, RESERVE, control))
    async with asyncio.timeout(60):
        await started.wait()
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    assert sent == ["SYSTEM STOP MERGES", "SYSTEM STOP MERGES", "SYSTEM START MERGES"]


async def test_the_look_at_the_disk_ends_with_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def control(_: str) -> None:
        raise StoreError(ABORTED, "the store is stopping")

    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    async with asyncio.timeout(60):
        await disk_guard.watch(tmp_path, RESERVE, control)
