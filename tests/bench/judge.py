"""10,000 answers, four judges, an API with 5 % errors, stalls and cut connections, one judge killed: what holds, and how fast it is."""

import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.result import result
from tests.support.anthropic_server import AnthropicServer
from tests.support.judge_rig import Judges, audit
from tests.support.redis import RedisServer

ANSWERS = 10_000
#: US dollars: enough for most of the answers, not for all.
BUDGET = 1.1


def measure() -> list[dict[str, Any]]:
    """Run it once, with the books audited at the end."""
    with tempfile.TemporaryDirectory() as directory, AnthropicServer(chance=0.05, slow_s=2.0, latency_s=0.02) as api:
        redis = Path(directory) / "redis"
        redis.mkdir()
        server = RedisServer(redis).start()
        judges = Judges(Path(directory), server, api, budget_usd_per_day=BUDGET, max_output_tokens=512, concurrency=16)
        try:
            ids = judges.feed(ANSWERS)
            began = time.monotonic()
            judges.start(4)
            while judges.scored() < ANSWERS // 3:
                time.sleep(0.05)
            judges.kill()
            judges.wait(ANSWERS, 900)
            took = time.monotonic() - began
            found = audit(judges, api, ids, int(BUDGET * 1e9))
            states = found["statuses"]
            judged = sum(count for state, count in states.items() if state != "skipped_budget")
            return [
                result("answers in exactly one state", sum(states.values()), ANSWERS, "answers", ">= 1", ANSWERS),
                result("spent and set aside beside the cap", found["spent"] / 1e9, BUDGET, "USD", "<= 1", ANSWERS),
                result(
                    "billed beside what the books say",
                    found["billed"] / 1e9,
                    found["spent"] / 1e9,
                    "USD",
                    "<= 1",
                    ANSWERS,
                ),
                result(
                    "answers billed more than twice",
                    1 + sum(n > 2 for n in api.billed.values()),
                    1,
                    "answers + 1",
                    "<= 1",
                    ANSWERS,
                ),
                result("budget alerts", judges.alerts(), 1, "alerts", "<= 1", 1),
                result("judge errors, of judged", states.get("judge_error", 0) / judged, 0.05, "share", None, judged),
                result("answers a second, four judges", ANSWERS / took, 50, "1/s", None, ANSWERS),
            ]
        finally:
            judges.close()
            server.stop()
