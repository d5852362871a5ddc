"""What drift watches is worked out again from the store, by the SQL that alerts and `assay drift history` use."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from assay_operations.drift.explain import explained
from assay_operations.drift.history import latest, samples
from assay_operations.errors import OperationError
from assay_runtime.store import INSERT_SETTINGS, connect
from assay_schema.alert_actions import query_of
from assay_schema.alerts import AlertState
from assay_schema.ids import new_event_id
from assay_schema.settings import DriftSettings
from assay_writer.rows import alert_row
from tests.support.alert_samples import transition
from tests.support.sample_rows import FINGERPRINT, answer, by_column, candidate, lines, score
from tests.support.store import StoreServer

ROWS = [
    score(faithfulness=0.9, checks={"cited": True}),
    score(faithfulness=0.8, checks={"cited": False}),
    score(status="abstained", checks={"cited": False}),
    score(status="no_context", checks={"cited": True}),
    score(status="skipped_budget", checks={"cited": False}),
    score(status="judge_error", checks={}),
    score(status="not_sampled", checks={"cited": False}, base=False),
]


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        ("faithfulness", [0.8, 0.9]),
        ("abstained", [0.0, 0.0, 0.0, 1.0]),
        ("no_context", [0.0, 0.0, 0.0, 1.0]),
        ("check_failed_cited", [0.0, 0.0, 1.0, 1.0, 1.0]),
    ],
)
def test_each_series_has_its_samples_in_the_store(migrated: StoreServer, metric: str, values: list[float]) -> None:
    project = f"of-{metric}"
    with connect(migrated.settings("writer").store, database="assay_base") as writer:
        rows = [row | {"project": project} for row in ROWS]
        writer.raw_insert("assay_base.scores", insert_block=lines(rows), fmt="JSONEachRow", settings=INSERT_SETTINGS)
    alert = transition(1, AlertState.WARN, metric=metric, project=project, series=FINGERPRINT, since=datetime.now(UTC))
    with connect(migrated.settings("sre").store) as store:
        assert latest(store, project, metric) == FINGERPRINT
        assert sorted(value for _, value in samples(store, project, metric, FINGERPRINT, 0)) == values
        found = store.query(query_of(alert)).result_rows
    assert sum(n for _, _, n in found) == len(values)
    assert sum(mean * n for _, mean, n in found) == pytest.approx(sum(values))


@pytest.mark.parametrize(
    ("metric", "operation", "value"),
    [("latency_p50", "answer", 900.0), ("latency_p95", "search", 12.5), ("cost_p50", "answer", 73.0)],
)
def test_latency_and_cost_are_in_the_store(migrated: StoreServer, metric: str, operation: str, value: float) -> None:
    project = f"of-{metric}"
    rows = {
        "answers": [answer(number, project=project) for number in range(3)],
        "candidates": [
            candidate(number, project=project, tool_name="search", expand_enabled=None) for number in range(3)
        ],
    }
    with connect(migrated.settings("writer").store, database="assay_base") as writer:
        for table, each in rows.items():
            writer.raw_insert(
                f"assay_base.{table}", insert_block=lines(each), fmt="JSONEachRow", settings=INSERT_SETTINGS
            )
    alert = transition(1, AlertState.WARN, metric=metric, project=project, series=operation, since=datetime.now(UTC))
    with connect(migrated.settings("sre").store) as store:
        found = store.query(query_of(alert)).result_rows
    assert sum(n for _, _, n in found) == 3
    assert {quantile for _, quantile, _ in found} == {value}


def test_an_episode_is_explained_by_the_model_that_got_worse(migrated: StoreServer) -> None:
    project, now = "explained", datetime.now(UTC)
    answers, scores = [], []
    for number in range(400):
        worse, small = number % 2 == 0, number % 4 < 2
        days_old = 0.01 if worse else 3.0
        made = answer(number, days_old=days_old, project=project, model="small" if small else "large")
        good = (number // 4) % 10 < (4 if worse and small else 9)
        answers.append(made)
        judged = score(faithfulness=float(good), days_old=days_old, project=project)
        scores.append(judged | {"event_id": made["event_id"]})
    identity = uuid4()
    about: dict[str, Any] = {"alert_id": identity, "metric": "faithfulness", "project": project, "series": FINGERPRINT}
    episode = [  # over again, so that no other test of this store finds it open
        transition(1, AlertState.WARN, **about, since=now - timedelta(days=1)),
        transition(2, AlertState.RESOLVED, AlertState.WARN, **about, since=now - timedelta(days=1)),
    ]
    with connect(migrated.settings("writer").store, database="assay_base") as writer:
        documents = (
            ("answers", answers),
            ("scores", scores),
            ("alerts", [by_column(*alert_row(each.model_dump_json().encode())[:2]) for each in episode]),
        )
        for table, rows in documents:
            writer.raw_insert(
                f"assay_base.{table}", insert_block=lines(rows), fmt="JSONEachRow", settings=INSERT_SETTINGS
            )
    with connect(migrated.settings("sre").store) as store:
        found = explained(store, str(identity), DriftSettings())
        with pytest.raises(OperationError, match="no episode"):
            explained(store, str(new_event_id()), DriftSettings())
    assert found == [
        "faithfulness of explained: -0.25 since the change",
        "  model small: 0.9 to 0.4, 100% of the change",
    ]
