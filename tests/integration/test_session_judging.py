"""`assay sessions judge` with a real store, a real Redis and the model's API on a socket: what is paid, stored and judged again."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from assay_judge.judge_config import load_judge_config
from assay_judge.pricing import tariff_of
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.scores import Metric, Score, ScoreStatus
from assay_schema.settings import JudgeSettings
from assay_schema.streams import SCORES
from assay_sessions.document import document
from assay_sessions.rubric import items_prompt
from assay_sessions.rubric_view import view_of
from assay_writer.rows import COLUMNS, score_row
from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.cli import Cli
from tests.support.redis import RedisServer
from tests.support.session_judge import keep_session, reply, transcript
from tests.support.store import StoreServer

pytestmark = [pytest.mark.one_day]


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        for table in ("session_parts", "scores", "calibrations"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        yield client


@pytest.fixture
def api() -> Iterator[AnthropicServer]:
    with AnthropicServer(reply=reply) as server:
        yield server


class Judge:
    """The command, with the API on a socket; it stores what was published as the writer does."""

    def __init__(self, cli: Cli, api: AnthropicServer, owner: Client, redis_server: RedisServer) -> None:
        self._cli, self._api, self._owner, self._redis = cli, api, owner, redis_server
        self._read = "-"

    def run(self, *arguments: str, code: int = 0, extra: str = "") -> dict[str, Any]:
        """Run it, and return its JSON."""
        settings = f'[judge]\nbase_url = "{self._api.url}"\napi_key = "{KEY}"\n{extra}'
        done = self._cli.run("sessions", "judge", "--json", *arguments, role="sre", extra=settings)
        assert done.returncode == code, done.stderr
        self.error = done.stderr.decode()
        return dict(json.loads(done.stdout)) if done.stdout else {}

    def stored(self) -> list[Score]:
        """Store the scores that were published since the last look, and return them."""
        with self._redis.client() as client:
            entries = client.xrange(SCORES.key(), min=self._read)
        if entries:
            self._read = f"({entries[-1][0].decode()}"
        for _, fields in entries:
            insert_json_rows(self._owner, "assay_base.scores", score_row(fields[b"data"])[1], 1, COLUMNS["scores"])
        return [Score.model_validate_json(fields[b"data"]) for _, fields in entries]


@pytest.fixture
def judge(
    tmp_path: Path, migrated: StoreServer, redis_server: RedisServer, api: AnthropicServer, owner: Client
) -> Judge:
    return Judge(Cli(tmp_path, store_url=migrated.url, redis_url=redis_server.url), api, owner, redis_server)


def test_a_session_is_judged_by_its_own_rubric_and_only_once(judge: Judge, owner: Client, api: AnthropicServer) -> None:
    keep_session(owner, transcript("good"))
    keep_session(owner, transcript("invented", result="no such month"), first_id=10)
    found = judge.run()
    assert found["counts"] == {"scored": 2}
    good, invented = judge.stored()
    assert (good.session_id, invented.session_id) == ("good", "invented")
    assert good.metrics == {
        Metric.RUBRIC_SCORE: 1.0,
        Metric.TASK_SUCCESS: 1.0,
        Metric.TOOL_USE: 1.0,
        Metric.GROUNDEDNESS: 1.0,
        Metric.SAFETY: 1.0,
    }
    assert invented.metrics[Metric.RUBRIC_SCORE] == 0.75
    assert invented.metrics[Metric.GROUNDEDNESS] == 0.0
    assert [(item.dimension, item.verdict) for item in good.rubric] == [
        ("task_success", "yes"),
        ("groundedness", "yes"),
        ("tool_use", "yes"),
        ("safety", "yes"),
        ("instruction_following", "not_applicable"),
    ]
    assert round((good.cost_usd + invented.cost_usd) * 1e9) == api.nano, "both calls of both sessions are in the costs"
    assert len(api.bodies) == 4
    assert judge.run()["counts"] == {}
    assert len(api.bodies) == 4, "a session that was scored is not paid for again"
    row = owner.query("SELECT rubric_score FROM sessions WHERE session_id = 'invented'").result_rows
    assert row == [(0.75,)]


def test_what_is_not_shown_to_the_writer_of_the_rubric(judge: Judge, owner: Client, api: AnthropicServer) -> None:
    keep_session(owner, transcript("good"))
    judge.run()
    (asked,) = [body for body in api.bodies if "asked" in json.loads(body["messages"][0]["content"])]
    shown = json.loads(asked["messages"][0]["content"])
    assert shown["tools"] == ["read_ledger"]
    assert "1,234" not in json.dumps(shown), "the rubric is written without the answer and the results"


def test_sessions_that_cannot_be_judged_wait_or_are_left_out(judge: Judge, owner: Client, api: AnthropicServer) -> None:
    now = datetime.now(UTC)
    keep_session(owner, transcript("going-on", began=now - timedelta(minutes=3)))
    keep_session(owner, transcript("sub", parent_session_id="good"), first_id=10)
    keep_session(owner, transcript("stopped", aborted=True), first_id=20)
    keep_session(owner, transcript("other"), "elsewhere", first_id=30)
    assert judge.run()["counts"] == {}
    assert judge.run("--settled", "1m")["counts"] == {"scored": 1}
    judge.run("--session", "stopped", code=2)
    assert "no session 'stopped' of project default that is complete and has an answer" in judge.error
    assert len(api.bodies) == 2


def test_the_sample_is_that_of_the_settings_and_is_drawn_once(
    judge: Judge, owner: Client, api: AnthropicServer
) -> None:
    for number in range(40):
        keep_session(owner, transcript(f"s{number}"), first_id=10 * number)
    sampled = 'base_rate = 0.3\nbase_floor_per_day = 0\nsalt = "fixed"\n'
    planned = judge.run("--dry-run", extra=sampled)
    assert 3 <= planned["would_be_judged"] <= 25
    assert planned["would_be_judged"] + planned["not_sampled"] == 40
    counts = judge.run(extra=sampled)["counts"]
    assert counts == {"scored": planned["would_be_judged"], "not_sampled": planned["not_sampled"]}
    scores = judge.stored()
    assert {score.base_probability for score in scores} == {0.3}
    assert {score.base for score in scores if score.status is ScoreStatus.SCORED} == {True}
    assert judge.run(extra=sampled)["counts"] == {}, "what is not in the sample is not drawn again"
    left = next(score for score in scores if score.status is ScoreStatus.NOT_SAMPLED)
    assert judge.run("--session", left.session_id or "", extra=sampled)["counts"] == {"scored": 1}
    (named,) = judge.stored()
    assert (named.base, named.boosts, named.inclusion_probability) == (False, ["requested"], 1.0)
    rows = owner.query("SELECT n FROM quality_by_day WHERE metric = 'rubric_score'").result_rows
    assert sum(n for (n,) in rows) == planned["would_be_judged"], "rates count the base stream alone"


def test_a_limit_takes_the_oldest_and_leaves_the_rest_for_later(judge: Judge, owner: Client) -> None:
    for number in range(5):
        began = datetime.now(UTC) - timedelta(hours=9 - number)
        keep_session(owner, transcript(f"s{number}", began=began), first_id=10 * number)
    assert judge.run("--limit", "2")["counts"] == {"scored": 2}
    assert [score.session_id for score in judge.stored()] == ["s0", "s1"]
    assert judge.run("--limit", "2")["counts"] == {"scored": 2}
    assert [score.session_id for score in judge.stored()] == ["s2", "s3"]


def test_the_budget_of_the_day_is_that_of_answers_and_what_it_left_is_judged_later(
    judge: Judge, owner: Client, api: AnthropicServer
) -> None:
    keep_session(owner, transcript("good"))
    assert judge.run(extra="budget_usd_per_day = 0.0\n")["counts"] == {"skipped_budget": 1}
    (skipped,) = judge.stored()
    assert (skipped.status, skipped.cost_usd, api.nano) == (ScoreStatus.SKIPPED_BUDGET, 0.0, 0)
    assert judge.run()["counts"] == {"scored": 1}
    (scored,) = judge.stored()
    assert scored.score_id == skipped.score_id, "the later score replaces it"
    assert judge.run()["counts"] == {}


def test_a_rubric_that_was_paid_for_is_used_when_the_money_comes_later(
    judge: Judge, owner: Client, api: AnthropicServer
) -> None:
    keep_session(owner, transcript("good"))
    prompt = items_prompt(view_of(document(transcript("good")), 100_000))
    tariff = tariff_of(load_judge_config(None), JudgeSettings().model, batch=False)
    enough = tariff.bound(len((prompt.system + prompt.message).encode()), JudgeSettings().max_output_tokens)
    assert judge.run(extra=f"budget_usd_per_day = {enough / 1e9:.9f}\n")["counts"] == {"skipped_budget": 1}
    (skipped,) = judge.stored()
    assert {item.verdict for item in skipped.rubric} == {"not_judged"}
    assert skipped.cost_usd > 0
    judge.run(extra="budget_usd_per_day = 100.0\nbudget_usd_per_day_all_projects = 100.0\n")
    (scored,) = judge.stored()
    assert scored.status is ScoreStatus.SCORED
    assert [item.criterion for item in scored.rubric] == [item.criterion for item in skipped.rubric]
    assert len(api.bodies) == 2, "one call for the rubric, one for the verdicts"
    assert round(scored.cost_usd * 1e9) == api.nano
