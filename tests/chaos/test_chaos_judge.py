"""Four judges race for 500 answers against an API that fails, stalls and cuts connections, and one of them is killed."""

import time
from pathlib import Path

import pytest

from tests.support.anthropic_server import AnthropicServer
from tests.support.judge_rig import Judges, audit
from tests.support.redis import RedisServer


@pytest.mark.slow
@pytest.mark.one_day
@pytest.mark.timeout(600)
def test_every_answer_ends_in_one_state_and_the_cap_holds_whatever_dies(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    answers, budget = 500, 0.06
    with AnthropicServer(chance=0.05, slow_s=2.0, latency_s=0.01) as api:
        judges = Judges(tmp_path, redis_server, api, budget_usd_per_day=budget, max_output_tokens=512, concurrency=8)
        try:
            ids = judges.feed(answers)
            judges.start(4)
            deadline = time.monotonic() + 60
            while judges.scored() < answers // 10:
                assert time.monotonic() < deadline, judges.logs()
                time.sleep(0.02)
            judges.kill()
            judges.wait(answers, 300)
            found = audit(judges, api, ids, int(budget * 1e9))
            assert max(api.billed.values()) <= 2, "what may be billed is tried twice at most"
            assert found["statuses"]["scored"] > 0
            assert found["interrupted"] <= 8, "no more than one judge had in hand"
            skipped = found["statuses"].get("skipped_budget", 0)
            assert skipped, "the budget was too small on purpose"
            assert judges.alerts() == 1
        finally:
            judges.close()
