"""Status of the running system in one line."""

import os
import time

from redis.asyncio import Redis
from redis.exceptions import RedisError

from assay_local.demo_report import megabytes, moment
from assay_local.probes import StoreUnavailableError, lag, memory, otlp_counts, sessions, tool_calls, total_stored
from assay_local.processes import LocalStack
from assay_local.supervisor import State, Supervisor

#: Limits of the pause between two counts of the stored events, in seconds. A count of a large table is slow, so counting may take a
#: twentieth of the time.
_COUNT_EVERY_S, _COUNT_AT_LEAST_EVERY_S = 5.0, 60.0
_COUNT_SHARE = 20
#: Timeout of a count, in seconds. The line waits for it.
_COUNT_TIMEOUT_S = 5.0
#: Number of stored events up to which tool calls and sessions are counted too: sessions take several times as long.
_AGENTS_UP_TO = 1_000_000


class Status:
    """Source of the status line."""

    def __init__(self, system: LocalStack, supervisor: Supervisor, admin: Redis) -> None:
        self._system = system
        self._supervisor = supervisor
        self._admin = admin
        self._store = system.store_queries("sre")
        self._began = time.monotonic()
        self._stored = ""
        self._agents = ""
        self._count_at = 0.0

    async def line(self) -> str:
        """Return the current line, and with an agent one for its tool calls and one for sessions, by status.

        A part of the system that does not answer is named in it, and raises nothing.
        """
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        states = [f"{name} {state}" for name, state in self._supervisor.states.items() if state is not State.READY]
        processes = {"assay up": os.getpid(), **self._supervisor.pids}
        size = megabytes(sum(memory(processes, apart=os.getpid()).values()))
        parts = [f"up {minutes}:{seconds:02}", *states, *await self._streams(), await self._count(), size]
        return " | ".join(parts) + self._agents

    async def _streams(self) -> list[str]:
        try:
            now = await lag(self._admin, self._system.shards)
        except RedisError:
            return ["Redis does not answer"]
        return [
            f"lag: {now}",
            f"watermark {moment(now.watermark)}",
        ]

    async def _count(self) -> str:
        began = time.monotonic()
        if began >= self._count_at:
            pause = _COUNT_EVERY_S
            try:
                total = await total_stored(self._store, _COUNT_TIMEOUT_S)
                self._stored = f"stored {total:,}"
                self._agents = await self._count_agents() if total <= _AGENTS_UP_TO else ""
                took = time.monotonic() - began
                pause = min(max(pause, took * _COUNT_SHARE), _COUNT_AT_LEAST_EVERY_S)
            except StoreUnavailableError:
                self._stored, self._agents = "store does not answer", ""
            self._count_at = time.monotonic() + pause
        return self._stored

    async def _count_agents(self) -> str:
        """Return a line each for tool calls and sessions by status, and events over OTLP by kind; none without any."""
        calls = await tool_calls(self._store, timeout_s=_COUNT_TIMEOUT_S)
        found = await sessions(self._store, timeout_s=_COUNT_TIMEOUT_S)
        over_otlp = await otlp_counts(self._store, timeout_s=_COUNT_TIMEOUT_S)
        counts = {"tool calls": calls, "sessions": dict(found.statuses), "events over OTLP": over_otlp}
        if found.incomplete:
            counts["sessions"]["incomplete"] = found.incomplete
        return "".join(
            f"\n{what}: {', '.join(f'{count:,} {status}' for status, count in by_status.items())}"
            for what, by_status in counts.items()
            if by_status
        )
