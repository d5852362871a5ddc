"""Dates come from Redis's clock, whatever the host's says."""

import time

import pytest

from assay_runtime import entries
from assay_runtime.clock import RedisClock
from assay_schema.ids import AHEAD_MAX_MS

NOW_MS = 1_790_000_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> RedisClock:
    clock = RedisClock()
    monkeypatch.setattr(entries, "clock", clock)
    return clock


def test_before_redis_was_asked_it_is_the_clock_of_the_host(clock: RedisClock) -> None:
    assert abs(clock.now_ms() - time.time() * 1_000) < 60_000
    assert clock.host_is_off() == ""


@pytest.mark.parametrize("host_s", [-26 * 3_600, 67 * 60, 30 * 86_400])
def test_a_wrong_clock_of_the_host_moves_no_date_and_is_told(
    clock: RedisClock, monkeypatch: pytest.MonkeyPatch, host_s: int
) -> None:
    clock.set(NOW_MS // 1_000, 0)
    host = NOW_MS / 1_000 + host_s
    monkeypatch.setattr(time, "time", lambda: host)
    monkeypatch.setattr(time, "time_ns", lambda: int(host * 1e9))
    assert NOW_MS <= clock.now_ms() < NOW_MS + 60_000
    assert entries.arrived_ms(f"{NOW_MS - 5}-0") == NOW_MS - 5
    assert NOW_MS <= entries.arrived_ms(f"{NOW_MS + AHEAD_MAX_MS + 120_000}-0") < NOW_MS + 60_000
    assert ("behind" if host_s < 0 else "ahead of") in clock.host_is_off()
