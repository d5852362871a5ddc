"""What is done with the scores of sessions: they are shown, queried, monitored, calibrated and deleted."""

import json

import orjson
import pytest

from assay_drift.monitor import Monitor
from assay_runtime.store import Client
from assay_schema.scores import Metric
from assay_schema.settings import DriftSettings
from tests.support.session_judge import SessionJudge, keep_session, transcript

pytestmark = [pytest.mark.one_day]


def test_scores_of_sessions_are_shown_queried_and_counted_apart(judge: SessionJudge, owner: Client) -> None:
    keep_session(owner, transcript("good"))
    keep_session(owner, transcript("invented", result="no such month"), first_id=10)
    judge.run()
    judge.stored()
    shown = judge.cli.call("sessions", "show", "invented", role="sre").stdout.decode()
    assert "75% of its rubric" in shown
    assert "  -  The total is in a result  (groundedness)" in shown
    row = json.loads(judge.cli.call("judge", "status", "--json", role="sre").stdout)
    assert (row["kind"], row["scored"], row["rubric_score"], row["faithfulness"]) == ("session", 2, 0.875, None)
    worst = [
        json.loads(line)
        for line in judge.cli.call("query", "worst-sessions", "--format", "json", role="sre").stdout.splitlines()
    ]
    assert [(each["session_id"], each["value"]) for each in worst] == [("invented", 0.75), ("good", 1.0)]
    assert worst[0]["first_unmet"] == "The total is in a result"
    (day,) = [
        json.loads(line)
        for line in judge.cli.call("query", "judging", "--format", "json", role="sre").stdout.splitlines()
    ]
    assert (day["kind"], day["seen"], day["scored"]) == ("session", 2, 2)


def test_drift_follows_the_metrics_of_sessions_and_counts_no_answers(judge: SessionJudge, owner: Client) -> None:
    keep_session(owner, transcript("good"))
    judge.run()
    (score,) = judge.stored()
    monitor = Monitor(DriftSettings())
    monitor.observe_score(score, score.event_time.timestamp() * 1000)
    series = {key.split("/")[1] for key in monitor.scores}
    assert series == set(score.metrics)


def test_people_label_sessions_and_the_judge_is_calibrated_by_them(judge: SessionJudge, owner: Client) -> None:
    for number in range(8):
        found = "the total is 1,234 euros" if number < 5 else "no such month"
        keep_session(owner, transcript(f"s{number}", result=found), first_id=10 * number)
    judge.run()
    scores = {f"{score.event_id}@{score.revision}": score for score in judge.stored()}
    listed = judge.cli.call("judge", "label", "--sessions", "--output", "l.ndjson", "--list", role="sre")
    assert dict(line.split("\t") for line in listed.stdout.decode().splitlines()) == {
        name: score.session_id for name, score in scores.items()
    }
    labels = judge.cli.directory / "labels.ndjson"
    good = {name: score.metrics[Metric.RUBRIC_SCORE] == 1 for name, score in scores.items()}
    labels.write_bytes(
        b"".join(orjson.dumps({"event_id": name, "label": "good" if good[name] else "bad"}) + b"\n" for name in good)
    )
    calibrate = ("judge", "calibrate", "--labels", str(labels), "--metric", "rubric_score")
    done = judge.cli.call(*calibrate, role="owner")
    text = done.stdout.decode()
    assert done.returncode == 1, done.stderr
    assert "8 of 8 labelled sessions are in the base stream" in text
    assert "share of good sessions" in text
    assert owner.query("SELECT metric, labels, true_negatives FROM calibrations").result_rows == [
        ("rubric_score", 8, 3)
    ]


def test_prune_deletes_scores_with_their_session_and_no_others(judge: SessionJudge, owner: Client) -> None:
    keep_session(owner, transcript("old"))
    keep_session(owner, transcript("new"), first_id=10)
    judge.run()
    judge.stored()
    owner.command(
        "ALTER TABLE assay_base.session_parts UPDATE created_at = created_at - INTERVAL 3 DAY WHERE session_id = 'old'",
        settings={"mutations_sync": 2},
    )

    def left(*options: str) -> list[str]:
        pruned = judge.cli.call("prune", "--project", "default", "--yes", *options, role="owner")
        assert pruned.returncode == 0, pruned.stderr
        return [name for (name,) in owner.query("SELECT session_id FROM scores ORDER BY session_id").result_rows]

    assert left("--kind", "answer", "--older-than", "0d") == ["new", "old"]
    assert left("--kind", "session", "--older-than", "2d") == ["new"], "it was judged today, but its session is old"
    assert left("--kind", "session", "--older-than", "0d") == []
