"""`assay sessions judge` with a real store, a real Redis and the model's API on a socket: what is paid, stored, judged again and used."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from assay_judge.judge_config import load_judge_config
from assay_judge.pricing import tariff_of
from assay_runtime.store import Client
from assay_schema.scores import Metric, ScoreStatus
from assay_schema.settings import JudgeSettings
from assay_sessions.document import document
from assay_sessions.rubric import items_prompt
from assay_sessions.rubric_view import view_of
from tests.support.anthropic_server import AnthropicServer
from tests.support.session_judge import SessionJudge, keep_session, transcript

pytestmark = [pytest.mark.one_day]


def test_a_session_is_judged_by_its_own_rubric_and_only_once(
    judge: SessionJudge, owner: Client, api: AnthropicServer
) -> None:
    keep_session(owner, transcript("good"))
    keep_session(owner, transcript("invented", result="no such month"), first_id=10)
    found = judge.run()
    assert found["counts"] == {"scored": 2}
    scores = {score.session_id: score for score in judge.stored()}
    good, invented = scores["good"], scores["invented"]
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


def test_what_is_not_shown_to_the_writer_of_the_rubric(
    judge: SessionJudge, owner: Client, api: AnthropicServer
) -> None:
    keep_session(owner, transcript("good"))
    judge.run()
    (asked,) = [body for body in api.bodies if "asked" in json.loads(body["messages"][0]["content"])]
    shown = json.loads(asked["messages"][0]["content"])
    assert shown["tools"] == ["read_ledger"]
    assert "1,234" not in json.dumps(shown), "the rubric is written without the answer and the results"


def test_sessions_that_cannot_be_judged_wait_or_are_left_out(
    judge: SessionJudge, owner: Client, api: AnthropicServer
) -> None:
    now = datetime.now(UTC)
    keep_session(owner, transcript("going-on", began=now - timedelta(minutes=3)))
    keep_session(owner, transcript("sub", parent_session_id="good"), first_id=10)
    keep_session(owner, transcript("stopped", aborted=True), first_id=20)
    keep_session(owner, transcript("other"), "elsewhere", first_id=30)
    assert judge.run()["counts"] == {}
    assert judge.run("--settled", "1m")["counts"] == {"scored": 1}
    judge.run("--session", "stopped", code=2)
    assert "session 'stopped' of project default has no answer: it is aborted" in judge.error
    assert len(api.bodies) == 2


def test_the_sample_is_that_of_the_settings_and_is_drawn_once(
    judge: SessionJudge, owner: Client, api: AnthropicServer
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


def test_a_limit_takes_the_oldest_and_leaves_the_rest_for_later(judge: SessionJudge, owner: Client) -> None:
    for number in range(5):
        began = datetime.now(UTC) - timedelta(hours=9 - number)
        keep_session(owner, transcript(f"s{number}", began=began), first_id=10 * number)
    assert judge.run("--limit", "2")["counts"] == {"scored": 2}
    assert {score.session_id for score in judge.stored()} == {"s0", "s1"}
    assert judge.run("--limit", "2")["counts"] == {"scored": 2}
    assert {score.session_id for score in judge.stored()} == {"s2", "s3"}


def test_the_budget_of_the_day_is_that_of_answers_and_what_it_left_is_judged_later(
    judge: SessionJudge, owner: Client, api: AnthropicServer
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
    judge: SessionJudge, owner: Client, api: AnthropicServer
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


def test_a_session_that_went_on_is_judged_again_by_a_new_rubric(
    judge: SessionJudge, owner: Client, api: AnthropicServer
) -> None:
    began = datetime.now(UTC) - timedelta(hours=2)
    keep_session(owner, transcript("grows", began=began))
    judge.run()
    (first,) = judge.stored()
    later = datetime.now(UTC) - timedelta(hours=1)
    longer = transcript("grows", "What is the total of May, and why?", began=began)
    keep_session(owner, replace(longer, updated=later), first_id=10)
    judge.run()
    (second,) = judge.stored()
    assert second.revision > first.revision
    assert (second.score_id, second.event_id) == (first.score_id, first.event_id)
    assert len(api.bodies) == 4


def test_a_day_with_many_sessions_keeps_the_daily_minimum(judge: SessionJudge, owner: Client) -> None:
    for number in range(60):
        keep_session(owner, transcript(f"s{number}"), first_id=10 * number)
    planned = judge.run("--dry-run", extra='base_rate = 0.05\nbase_floor_per_day = 50\nsalt = "fixed"\n')
    assert 40 <= planned["would_be_judged"] <= 58


def test_a_session_whose_start_moves_stays_the_same(judge: SessionJudge, owner: Client) -> None:
    began = datetime.now(UTC) - timedelta(hours=3)
    keep_session(owner, transcript("moves", began=began))
    judge.run()
    (first,) = judge.stored()
    keep_session(owner, transcript("moves", "And of June?", began=began + timedelta(hours=1)), first_id=10)
    judge.run()
    (second,) = judge.stored()
    assert (second.event_id, second.score_id) == (first.event_id, first.score_id)
    assert second.revision > first.revision


def test_what_earlier_revisions_and_errors_cost_stays_in_the_books(
    judge: SessionJudge, owner: Client, api: AnthropicServer
) -> None:
    began = datetime.now(UTC) - timedelta(hours=3)
    keep_session(owner, transcript("grows", "[malformed] What is the total?", began=began))
    assert judge.run(code=1)["counts"] == {"judge_error": 1}
    judge.stored()
    assert judge.run("--again", code=1)["counts"] == {"judge_error": 1}
    judge.stored()
    keep_session(
        owner, transcript("grows", "What is the total, and why?", began=began + timedelta(hours=1)), first_id=10
    )
    assert judge.run()["counts"] == {"scored": 1}
    (scored,) = judge.stored()
    assert round(scored.cost_usd * 1e9) == api.nano


def test_what_is_not_in_the_sample_never_replaces_a_score(
    judge: SessionJudge, owner: Client, api: AnthropicServer
) -> None:
    keep_session(owner, transcript("named"))
    none = 'base_rate = 0.000001\nbase_floor_per_day = 0\nsalt = "fixed"\n'
    assert judge.run("--session", "named", extra=none)["counts"] == {"scored": 1}
    assert judge.run(extra=none)["counts"] == {}, "the writer has not stored the score yet"
    (score,) = judge.stored()
    assert score.status is ScoreStatus.SCORED
    assert judge.run("--session", "named", extra=none)["counts"] == {}
    assert len(api.bodies) == 2


def test_again_repeats_errors_and_what_is_named(judge: SessionJudge, owner: Client, api: AnthropicServer) -> None:
    keep_session(owner, transcript("good"))
    keep_session(owner, transcript("bad", "[once:malformed] What is the total?"), first_id=10)
    judge.run()
    judge.stored()
    assert judge.run("--again")["counts"] == {}
    assert judge.run("--again", "--session", "good")["counts"] == {"scored": 1}
    judge.run("--again", "--watch", code=2)
    assert "--again with --watch" in judge.error


def test_a_fork_is_judged_only_by_name(judge: SessionJudge, owner: Client) -> None:
    keep_session(owner, transcript("first"))
    keep_session(owner, transcript("fork", forked_from="first"), first_id=10)
    assert judge.run()["counts"] == {"scored": 1}
    assert judge.run("--session", "fork")["counts"] == {"scored": 1}
