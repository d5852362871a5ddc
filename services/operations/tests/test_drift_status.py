"""What `assay drift status` says of a series: the metric itself, evidence against its threshold, and what is missing."""

from typing import Any

from assay_cli.output.drift import line
from assay_drift.charts import share_text
from assay_drift.monitor import Monitor, Observation
from assay_operations.drift.status import rows_of
from tests.support.drift_samples import QUICK, START_MS, asked, monitor, score, stream

MINUTE = 60_000.0


def watched_after(days: float, **what: Any) -> list[dict[str, Any]]:
    """The rows of a hallucination rate after some days."""
    watched = monitor()
    for number, (at_ms, value) in enumerate(stream(days, 80, **what)):
        watched.observe_score(score(at_ms, value, number, metrics={"hallucination_rate": round(1 - value, 6)}), at_ms)
    return of(rows_of(watched, QUICK), "hallucination_rate")


def of(rows: list[dict[str, Any]], metric: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["metric"] == metric]


def test_a_lower_is_better_metric_is_shown_as_it_is() -> None:
    [row] = watched_after(3)
    assert 0.1 < row["baseline"] < 0.2
    assert 0.1 < row["last_day"] < 0.2
    assert "% of the alert threshold" in line(row)


def test_a_series_that_learns_says_how_much_is_missing() -> None:
    [row] = watched_after(1)
    assert row["state"] == "learning"
    assert "(80 of 100 samples, 1.0 of 2 days)" in line(row)
    watched = monitor()
    watched.observe_traffic([asked(START_MS, 0, "boots", scores=(3.0,))], START_MS)
    notes = {row["metric"]: row["note"] for row in rows_of(watched, QUICK)}
    assert notes["top_1"] == "1 of 100 samples, 0.0 of 2 days"
    assert notes["queries"] == "0 of 14 days with 100 queries"


def latencies(watched: Monitor, first: int, end: int) -> list[dict[str, Any]]:
    """The rows of the median's series after answers that took 100 to 199 ms, 100 of them in a day."""
    for number in range(first, end):
        at_ms = START_MS + number / 100 * MINUTE
        took = {"latency": 100.0 + number * 37 % 100}
        watched.observe_traffic(
            [Observation(f"{number}", "acme", at_ms, None, operation="answer", amounts=took)], at_ms
        )
    return of(rows_of(watched, QUICK), "latency_p50")


def test_latency_says_what_it_lacks_and_then_what_its_limit_is() -> None:
    watched = monitor()
    [row] = latencies(watched, 0, 50)
    assert line(row) == "LEARNING   latency    acme latency_p50 [answer] (its limit: 50 of 100 samples, 0.5 of 2 days)"
    [row] = latencies(watched, 50, 250)
    assert row["state"] == "learning"
    assert row["note"] == "share above 164 ms; 49 of 100 samples, 0.5 of 2 days"
    [row] = latencies(watched, 250, 900)
    assert row["state"] == "ok"
    assert 0.3 < row["baseline"] < 0.4
    assert line(row).endswith("(share above 164 ms)")


def test_evidence_is_a_share_of_what_raises_an_alert() -> None:
    [row] = watched_after(6, drop_from=4, drop=0.3)
    assert (row["state"], row["evidence"] >= 1) == ("critical", True)
    assert "times the alert threshold" in line(row)
    assert [share_text(each) for each in (4.6e21, 1.5, 0.16, 0.0)] == [
        "over 10 times the alert threshold",
        "1.5 times the alert threshold",
        "16% of the alert threshold",
        "less than 1% of the alert threshold",
    ]


def test_an_open_episode_with_little_evidence_says_what_it_waits_for() -> None:
    settings = QUICK.model_copy(update={"rule": "critical", "run_length_days": 1e30, "baseline_days": 5})
    watched = monitor(settings)
    for number, (at_ms, value) in enumerate(stream(9, 200, drop_from=6, drop=0.15)):
        watched.observe_score(score(at_ms, value, number), at_ms)
    [row] = of(rows_of(watched, settings), "faithfulness")
    assert (row["state"], row["evidence"] < 1) == ("critical", True)
    assert "(open until it recovers or is acknowledged)" in line(row)
