"""`assay drift explain` names the part that moved in every kind of episode, from rows in the store, and names none by chance."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from assay_drift.embedding import embedder
from assay_operations.drift.explain import explained, next_command
from assay_operations.errors import OperationError
from assay_runtime.store import INSERT_SETTINGS, connect
from assay_schema.alerts import AlertState, handed_in
from assay_schema.settings import DriftSettings
from assay_writer.rows import alert_row
from tests.support.alert_samples import transition
from tests.support.sample_rows import FINGERPRINT, Json, answer, by_column, candidate, lines, score
from tests.support.store import StoreServer

SETTINGS = DriftSettings()
#: The change, in days ago.
AGO = 1.0


def stored(server: StoreServer, **tables: list[Json]) -> None:
    with connect(server.settings("writer").store, database="assay_base") as writer:
        for table, rows in tables.items():
            writer.raw_insert(
                f"assay_base.{table}", insert_block=lines(rows), fmt="JSONEachRow", settings=INSERT_SETTINGS
            )


def episode(kind: str, project: str, metric: str | None, series: str | None, **changes: Any) -> tuple[str, list[Json]]:
    """An episode that is over, so that no other test of this store finds it open, and its rows."""
    identity, now = changes.pop("alert_id", uuid4()), datetime.now(UTC)
    about: dict[str, Any] = {
        "alert_id": identity, "kind": kind, "project": project, "metric": metric, "series": series,
        "since": now - timedelta(days=AGO), **changes,
    }  # fmt: skip
    steps = [
        transition(1, AlertState.WARN, **about),
        transition(2, AlertState.RESOLVED, AlertState.WARN, **about | {"at": now + timedelta(days=1)}),
    ]
    return str(identity), [by_column(*alert_row(each.model_dump_json().encode())[:2]) for each in steps]


def told(server: StoreServer, identity: str) -> list[str]:
    with connect(server.settings("sre").store) as store:
        return explained(store, identity, SETTINGS)


@pytest.mark.parametrize(
    ("kind", "metric", "series", "wanted"),
    [
        ("score_drift", "faithfulness", FINGERPRINT, "worst-answers --param metric=faithfulness --param project=next --param since_ms="),
        ("score_drift", "latency_p95", "answer", "slowest-answers --param project=next"),
        ("score_drift", "latency_p95", "search", "slowest-retrievals --param project=next"),
        ("retrieval_drift", "top_1", "model", "retrieval-scores --param project=next"),
    ],
)  # fmt: skip
def test_the_next_command_shows_the_rows_behind_an_episode(
    migrated: StoreServer, kind: str, metric: str, series: str, wanted: str
) -> None:
    identity, rows = episode(kind, "next", metric, series)
    stored(migrated, alerts=rows)
    with connect(migrated.settings("sre").store) as store:
        assert next_command(store, identity).startswith(f"assay query {wanted}")


def moments(random: Random, before: int, after: int) -> list[tuple[float, bool]]:
    """Days ago, and whether that is since the change."""
    return [(AGO + random.uniform(0.01, 9.9), False) for _ in range(before)] + [
        (AGO - random.uniform(0.01, 0.9), True) for _ in range(after)
    ]


def slow_answers(
    seed: int, project: str, *, worse: str = "", api: float = 0.5, before: int = 900, after: int = 500
) -> list[Json]:
    """Answers of two services: api is slow in 40 of 100, web in 10; since the change the worse one twice as often. `api` is api's share."""
    random, rows = Random(seed), []
    for number, (days_old, late) in enumerate(moments(random, before, after)):
        service = "api" if random.random() < (api if late else 0.5) else "web"
        slow = random.random() < (0.4 if service == "api" else 0.1) * (2 if late and service == worse else 1)
        rows.append(
            answer(number % 97, days_old=days_old, project=project, service=service, model=random.choice(["a", "b"]),
                   latency_ms=900.0 if slow else 100.0)
        )  # fmt: skip
    return rows


SUMMARY = "latency of answers rose, since 2026-01-05 00:00 UTC: 25.0% of them were above 500 ms, now 40.0% (n = 500)"


def test_a_slower_service_is_named_with_its_share_above_the_limit(migrated: StoreServer) -> None:
    identity, alerts = episode("score_drift", "slower", "latency_p50", "answer", summary=SUMMARY)
    stored(migrated, answers=slow_answers(1, "slower", worse="api"), alerts=alerts)
    first, *parts = told(migrated, identity)
    assert first.startswith("latency_p50 of slower (answer), above 500 ms: 2")
    assert first.endswith("% of the answers since the change")
    assert len(parts) == 1
    assert parts[0].startswith("  service api: ")


def test_more_traffic_of_a_slow_service_is_told_as_mix(migrated: StoreServer) -> None:
    identity, alerts = episode("score_drift", "busier", "latency_p50", "answer", summary=SUMMARY)
    stored(migrated, answers=slow_answers(2, "busier", api=0.95), alerts=alerts)
    _, part = told(migrated, identity)
    assert part.startswith("  mix of services: ")


def test_models_that_are_too_many_to_read_by_name_count_in_all_shares(migrated: StoreServer) -> None:
    rows = slow_answers(11, "many", before=500, after=300)
    for number, row in enumerate(rows):
        late = number >= 500
        row["model"] = "new" if late and number % 2 else f"model-{number}"
        row["latency_ms"] = 900.0 if row["model"] == "new" else 100.0
    identity, alerts = episode("score_drift", "many", "latency_p50", "answer", summary=SUMMARY)
    stored(migrated, answers=rows, alerts=alerts)
    _, *parts = told(migrated, identity)
    assert "  mix of models: new from 0% to 50% of the traffic, 100% of the change" in parts


def test_a_limit_that_no_alert_names_is_worked_out_again(migrated: StoreServer) -> None:
    identity, alerts = episode("score_drift", "unnamed", "latency_p50", "answer", summary="it rose")
    stored(migrated, answers=slow_answers(3, "unnamed", worse="api"), alerts=alerts)
    first, part = told(migrated, identity)
    assert "above 110 ms, a limit recomputed" in first  # a tenth above the median
    assert part.startswith("  service api: ")


def test_a_limit_that_nothing_stored_gives_is_said(migrated: StoreServer) -> None:
    identity, alerts = episode("score_drift", "forgotten", "latency_p50", "answer", summary="it rose")
    stored(migrated, answers=slow_answers(3, "forgotten", before=20), alerts=alerts)
    [line] = told(migrated, identity)
    assert "names no limit, and too little is stored" in line


def test_dearer_answers_are_named_by_their_model(migrated: StoreServer) -> None:
    random, rows = Random(4), []
    for number, (days_old, late) in enumerate(moments(random, 600, 300)):
        model = random.choice(["large", "small"])
        long = random.random() < (0.7 if late and model == "large" else 0.05)
        text = "word " * (100 if long else 10)
        rows.append(answer(number % 97, days_old=days_old, project="dearer", model=model, answer=text))
    summary = "cost of answers rose, since now: 5.0% of them were above 300 characters, now 30.0% (n = 300)"
    identity, alerts = episode("score_drift", "dearer", "cost_p95", "answer", summary=summary)
    stored(migrated, answers=rows, alerts=alerts)
    first, part = told(migrated, identity)
    assert "above 300 characters" in first
    assert part.startswith("  model large: ")


def test_slower_searches_are_named_by_what_was_searched(migrated: StoreServer) -> None:
    random, rows = Random(5), []
    for number, (days_old, late) in enumerate(moments(random, 600, 300)):
        source, tool = random.choice(["docs", "tickets"]), random.choice(["search", "query"])
        slow = random.random() < (0.6 if late and source == "tickets" and tool == "search" else 0.05)
        rows.append(
            candidate(number % 97, days_old=days_old, project="searches", source_ids=[source], tool_name=tool,
                      expand_enabled=None if tool == "search" else True, latency_ms=90.0 if slow else 9.0)
        )  # fmt: skip
    summary = "latency of searches rose: 5.0% of them were above 50 ms, now 30.0% (n = 300)"
    identity, alerts = episode("score_drift", "searches", "latency_p95", "search", summary=summary)
    stored(migrated, candidates=rows, alerts=alerts)
    first, part = told(migrated, identity)
    assert "% of the retrievals since the change" in first
    assert part.startswith("  source tickets: ")


def retrievals(seed: int, project: str, *, worse: str = "", n: tuple[int, int] = (700, 400)) -> list[Json]:
    """Retrievals of three sources, whose scores fall since the change where they come from the worse one."""
    random, rows = Random(seed), []
    for number, (days_old, late) in enumerate(moments(random, *n)):
        source = random.choice(["docs", "tickets", "wiki"])
        top = random.gauss(20, 3) - (5 if late and source == worse else 0)
        rows.append(
            candidate(number % 97, days_old=days_old, project=project, source_ids=[source],
                      retrieved_scores=[top, top - 1], service=random.choice(["web", "api"]))
        )  # fmt: skip
    return rows


@pytest.mark.parametrize("metric", ["top_1", "mean_of_k"])
def test_a_source_whose_scores_fell_is_named(migrated: StoreServer, metric: str) -> None:
    project = f"fell-{metric}"
    identity, alerts = episode("retrieval_drift", project, metric, "embed-3")
    stored(migrated, candidates=retrievals(6, project, worse="wiki"), alerts=alerts)
    first, part = told(migrated, identity)
    assert first.startswith(f"{metric} of {project} (embed-3): mean place 0.5 to 0.3")
    assert part.startswith("  source wiki: 0.5")


def test_judge_errors_are_named_by_the_model_they_are_of(migrated: StoreServer) -> None:
    random, answers, scores = Random(8), [], []
    for number in range(1_000):
        late = number >= 600
        days_old = random.uniform(0.1, 1.9) if late else random.uniform(2.1, 9)  # the day before it opened counts
        made = answer(number % 97, days_old=days_old, project="errors", model=random.choice(["large", "small"]))
        failed = random.random() < (0.4 if late and made["model"] == "small" else 0.01)
        judged = score(status="judge_error" if failed else "scored", days_old=days_old, project="errors")
        answers.append(made)
        scores.append(judged | {"event_id": made["event_id"]})
    identity, alerts = episode("judge_errors", "errors", None, None)
    stored(migrated, answers=answers, scores=scores, alerts=alerts)
    first, part = told(migrated, identity)
    assert first.startswith("answers of errors on which the judge failed: ")
    assert part.startswith("  model small: ")


OLD = ["rotate the signing key", "renew a certificate", "restore a backup", "grow the disk of the database"]
NEW = "cancel my subscription and refund the money"


def queries(seed: int, project: str, *, asks: str = "", share: float = 0.0) -> list[Json]:
    """Questions of two services on usual topics; since the change one asks of another thing as well."""
    random, rows = Random(seed), []
    for number, (days_old, late) in enumerate(moments(random, 1_400, 700)):
        service = random.choice(["web", "api"])
        new = late and service == asks and random.random() < share
        text = f"{random.choice(['how do I', 'please', 'help to'])} {NEW if new else random.choice(OLD)}"
        rows.append(candidate(number % 97, days_old=days_old, project=project, service=service, query=text))
    return rows


def test_questions_of_a_new_kind_are_told_by_who_asks_them(migrated: StoreServer) -> None:
    identity, alerts = episode("query_drift", "asked", "queries", embedder()[0])
    rows = queries(9, "asked", asks="web", share=0.5)
    stored(migrated, candidates=rows, alerts=alerts)
    lines_told = told(migrated, identity)
    clusters = [line for line in lines_told if line.startswith("  a cluster grew: 0.0% to ")]
    assert clusters
    named = {identity for line in clusters for identity in line.rpartition("for example ")[2].split(", ")}
    asked = {row["event_id"]: row["query"] for row in rows}
    assert all(NEW in asked[each] for each in named)
    parts = [line.strip() for line in lines_told if line.startswith("    ")]
    assert parts[0].startswith("service web: 0.0% to ")
    assert not any(part.startswith("service api") for part in parts)
    assert not any(word in line for line in lines_told for word in ("signing", "refund"))
    assert "the alert used" not in lines_told[0]
    elsewhere, alerts = episode("query_drift", "asked", "queries", "another-model")
    stored(migrated, alerts=alerts)
    assert (
        f"({embedder()[0]}; the alert used another-model, which can form other clusters)"
        in told(migrated, elsewhere)[0]
    )


def test_parts_are_named_of_nothing_but_by_rare_chance(migrated: StoreServer) -> None:
    """Twenty episodes of each kind in which nothing moved: of all of them one may name something."""
    answers, candidates, alerts, identities = [], [], [], []
    for seed in range(20):
        slow, fell, asks = f"still-slow-{seed}", f"still-found-{seed}", f"still-asked-{seed}"
        answers += slow_answers(100 + seed, slow, before=300, after=150)
        candidates += retrievals(100 + seed, fell, n=(300, 150))
        candidates += queries(100 + seed, asks)
        for each in (
            episode("score_drift", slow, "latency_p50", "answer", summary=SUMMARY),
            episode("retrieval_drift", fell, "top_1", "embed-3"),
            episode("query_drift", asks, "queries", embedder()[0]),
        ):
            identities.append(each[0])
            alerts += each[1]
    stored(migrated, answers=answers, candidates=candidates, alerts=alerts)
    claims = [
        line
        for identity in identities
        for line in told(migrated, identity)[1:]
        if not line.startswith(("  no ", "  in no "))
    ]
    assert len(claims) <= 1, claims


@pytest.mark.parametrize("kind", ["silence", "failures", "lag", "watermark_age", "budget", "judge_drift"])
def test_episodes_without_parts_are_refused(migrated: StoreServer, kind: str) -> None:
    identity, alerts = episode(kind, f"refused-{kind.replace('_', '-')}", None, None)
    stored(migrated, alerts=alerts)
    with pytest.raises(OperationError, match="no parts to compare; its alert"):
        told(migrated, identity)


def test_an_evaluation_has_no_traffic_to_explain(migrated: StoreServer) -> None:
    identity, alerts = episode("score_drift", "nightly", "faithfulness", FINGERPRINT, alert_id=handed_in(uuid4()))
    stored(migrated, alerts=alerts)
    with pytest.raises(OperationError, match="no parts"):
        told(migrated, identity)


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("retrieval_drift", "faithfulness"),
        ("retrieval_drift", None),
        ("score_drift", "top_1"),
        ("score_drift", "cost_p95"),
    ],
)
def test_an_alert_that_names_what_its_kind_does_not_measure_breaks_nothing(
    migrated: StoreServer, kind: str, metric: str | None
) -> None:
    identity, alerts = episode(kind, "strange", metric, "somewhere")
    stored(migrated, alerts=alerts)
    try:
        lines_told = told(migrated, identity)
    except OperationError as error:
        lines_told = [str(error)]
    assert any("too few" in line or "too little" in line or "is not measured" in line for line in lines_told), (
        lines_told
    )
