"""What drift watches is worked out again from the store, by the SQL that alerts and `assay drift history` use."""

from datetime import UTC, datetime

import pytest

from assay_cli.drift import _latest, _samples
from assay_runtime.store import INSERT_SETTINGS, connect
from assay_schema.alert_actions import query_of
from assay_schema.alerts import AlertState
from tests.alert_samples import transition
from tests.sample_rows import FINGERPRINT, lines, score
from tests.store_server import StoreServer

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
        assert _latest(store, project, metric) == FINGERPRINT
        assert sorted(value for _, value in _samples(store, project, metric, FINGERPRINT, 0)) == values
        found = store.query(query_of(alert)).result_rows
    assert sum(n for _, _, n in found) == len(values)
    assert sum(mean * n for _, mean, n in found) == pytest.approx(sum(values))
