"""Run judges as processes, with their own Redis and the API of `tests.support.anthropic_server`.

Tests feed them from `events` and kill them.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import redis

from assay_schema.scores import Score
from assay_schema.streams import ALERTS, EVENTS, FAILURES, SCORES
from tests.support.answers import answer_bytes
from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.redis import RedisServer

GROUP = "judge"


class Judges:
    """Start judges with `start`; `close` ends every process."""

    def __init__(self, directory: Path, server: RedisServer, api: AnthropicServer, **settings: Any) -> None:
        self._directory, self._server, self._api = directory, server, api
        defaults = {"base_rate": 1.0, "base_floor_per_day": 0, "deadline_s": 10.0, "request_timeout_s": 1.0, "port": 0}
        defaults |= {"anchors_every_days": 0}
        limits = {"requests_per_minute": 1_000_000, "tokens_per_minute": 1_000_000_000}
        self._settings = defaults | limits | settings
        self.processes: list[subprocess.Popen[bytes]] = []
        self.client = redis.Redis(port=server.port)
        self.client.xgroup_create(EVENTS.key(), GROUP, id="0", mkstream=True)

    def start(self, count: int) -> None:
        """Start more judges."""
        variables = {f"ASSAY_JUDGE_{name}".upper(): str(value) for name, value in self._settings.items()}
        variables |= {"ASSAY_JUDGE_API_KEY": KEY, "ASSAY_JUDGE_BASE_URL": self._api.url}
        variables |= {"ASSAY_REDIS_URL": self._server.url, "ASSAY_DELIVERY_VISIBILITY_TIMEOUT_S": "4"}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._directory)} | variables
        for _ in range(count):
            with (self._directory / f"judge-{len(self.processes)}.log").open("wb") as log:
                command = [sys.executable, "-m", "assay_judge"]
                options: Any = {"cwd": self._directory, "env": environment, "stdout": log, "stderr": log}
                self.processes.append(subprocess.Popen(command, **options))

    def feed(self, count: int, **answer: Any) -> list[str]:
        """Append answers to `events`; returns their ids."""
        ids = []
        pipeline = self.client.pipeline(transaction=False)
        for number in range(count):
            data = answer_bytes(f"{number}: Is the boot waterproof?", **answer)
            ids.append(str(orjson.loads(data)["event_id"]))
            pipeline.xadd(EVENTS.key(), {"data": data})
        pipeline.execute()
        return ids

    def scored(self) -> int:
        """Return the number of published scores."""
        return int(self.client.xlen(SCORES.key()))

    def kill(self) -> None:
        """Kill one judge with SIGKILL, at any point of its work."""
        process = self.processes[0]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.processes.remove(process)

    def wait(self, scores: int, timeout_s: float) -> None:
        """Wait until so many scores are published and nothing is pending."""
        deadline = time.monotonic() + timeout_s
        while self.scored() < scores or self.client.xpending(EVENTS.key(), GROUP)["pending"]:
            assert time.monotonic() < deadline, (self.scored(), self.client.xpending(EVENTS.key(), GROUP), self.logs())
            assert all(process.poll() is None for process in self.processes), self.logs()
            time.sleep(0.05)

    def logs(self) -> str:
        """Return the judges' logs."""
        return "\n".join(path.read_text()[-2_000:] for path in sorted(self._directory.glob("judge-*.log")))

    def scores(self) -> list[Score]:
        """Return every published score."""
        return [Score.model_validate_json(fields[b"data"]) for _, fields in self.client.xrange(SCORES.key())]

    def spent(self, project: str = "acme") -> int:
        """Return today's cost in nano-dollars."""
        day = datetime.now(UTC).date().isoformat()
        return int(self.client.get(f"assay:{{0}}:judge:spend:{project}:{day}") or 0)

    def alerts(self) -> int:
        """Return the published alerts."""
        return int(self.client.xlen(ALERTS.key()))

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.client.close()


def audit(judges: Judges, api: AnthropicServer, ids: list[str], cap_nano: int) -> dict[str, Any]:
    """Check the invariants. Raises `AssertionError`."""
    scores = judges.scores()
    by_answer = Counter(str(score.event_id) for score in scores)
    assert by_answer == Counter(ids), "every answer ends in exactly one state"
    costs = sum(round(score.cost_usd * 1e9) for score in scores)
    spent = judges.spent()
    assert spent <= cap_nano, "the cap holds"
    assert api.nano <= spent, "nothing was billed that is not in the books"
    assert costs == spent, "the books are the sum of the scores"
    assert not judges.client.xlen(FAILURES.key())
    statuses = Counter(score.status.value for score in scores)
    interrupted = [score for score in scores if score.detail.startswith("Interrupted")]
    return {"statuses": dict(statuses), "interrupted": len(interrupted), "spent": spent, "billed": api.nano}
