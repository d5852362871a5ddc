"""From raw entry to outcome: scrubbed, or refused without a word of its content."""

from typing import Any

import orjson
import pytest

from assay_runtime.entries import Entry, Outcome
from assay_schema.failures import Reason
from assay_schema.ids import new_event_id
from assay_schema.limits import QUERY_MAX_CHARS
from assay_schema.validation import parse_scrubbed
from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy
from assay_scrubber.process import UNSCRUBBED, Processor

NOW_ID = "1795300000000-0"


def event(**payload: Any) -> dict[str, Any]:
    base = {
        "tool_name": "query",
        "query": "plain",
        "retrieved_slugs": ["a"],
        "retrieved_chunk_ids": [1],
        "latency_ms": 1,
    }
    return {
        "schema_version": 1,
        "event_id": "01a20000-0000-7000-8000-000000000000",
        "kind": "retrieval",
        "project": "shop",
        "service": "search",
        "occurred_at": "2026-11-21T00:00:00Z",
        "payload": base | payload,
    }


def process(document: dict[str, Any], processor: Processor | None = None) -> Outcome:
    [outcome] = (processor or Processor(Scrubber(Policy()))).process(iter([Entry(NOW_ID, orjson.dumps(document))]))
    return outcome


def test_text_from_outside_is_scrubbed_wherever_it_stands() -> None:
    outcome = process(event(query="ask bob@example.com", params={"user": {"mail": ["bob@example.com"]}}))
    assert outcome.event is not None
    assert b"bob@example.com" not in outcome.event
    document = orjson.loads(outcome.event)
    assert document["payload"]["query"] == "ask [REDACTED]"
    assert document["pii_families"] == {"email": 2}


def test_the_policys_fingerprint_is_on_every_event() -> None:
    outcome = process(event())
    assert outcome.event is not None
    assert orjson.loads(outcome.event)["policy"] == Policy().fingerprint


def test_switched_off_scrubbing_says_so_on_every_event() -> None:
    outcome = process(event(query="bob@example.com"), Processor(None))
    assert outcome.event is not None
    document = orjson.loads(outcome.event)
    assert (document["payload"]["query"], document["policy"]) == ("bob@example.com", UNSCRUBBED)


def test_created_at_is_the_time_of_the_entry_in_the_log() -> None:
    outcome = process(event())
    assert outcome.event is not None
    assert orjson.loads(outcome.event)["created_at"] == "2026-11-21T22:26:40Z"


def test_a_scrubber_that_breaks_stores_nothing_of_the_text() -> None:
    class Broken(Scrubber):
        def scrub(self, text: str, **_: Any) -> Any:
            raise ZeroDivisionError(text)

    outcome = process(event(query="my secret"), Processor(Broken(Policy())))
    assert outcome.event is None
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.error_class) == (Reason.SCRUBBER_EXCEPTION, "ZeroDivisionError")
    assert "secret" not in outcome.failure.model_dump_json()


@pytest.mark.parametrize(("length", "stored"), [(QUERY_MAX_CHARS, True), (QUERY_MAX_CHARS + 1, False)])
def test_a_query_over_its_limit_is_refused_whole_and_never_cut(length: int, stored: bool) -> None:
    outcome = process(event(query="x" * length))
    assert (outcome.event is not None) == stored
    if outcome.failure:
        assert outcome.failure.reason is Reason.CHECK_VIOLATION
        assert str(QUERY_MAX_CHARS) in outcome.failure.detail


def test_a_query_that_grows_over_its_limit_by_scrubbing_is_refused_whole() -> None:
    query = "a@b.co " + "x" * (QUERY_MAX_CHARS - 7)
    failure = process(event(query=query)).failure
    assert failure is not None
    assert (failure.reason, failure.error_class) == (Reason.CHECK_VIOLATION, "string_too_long")


def test_an_event_from_more_than_a_day_ahead_of_the_log_is_refused() -> None:
    ahead = event() | {"event_id": "01b20000-0000-7000-8000-000000000000"}
    failure = process(ahead).failure
    assert failure is not None
    assert failure.error_class == "event_id_ahead"


def test_one_broken_entry_does_not_touch_its_neighbours() -> None:
    good = orjson.dumps(event())
    entries = [Entry(f"1795300000000-{n}", data) for n, data in enumerate((good, b"{", good))]
    outcomes = Processor(Scrubber(Policy())).process(iter(entries))
    assert [outcome.event is not None for outcome in outcomes] == [True, False, True]


def test_the_same_broken_event_gets_the_same_failure_at_every_delivery() -> None:
    broken = event(latency_ms="soon") | {"event_id": new_event_id()}
    first, second = (process(broken).failure for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first.failure_id, first.project, first.service) == (second.failure_id, "shop", "search")


def with_projects(**projects: dict[str, Any]) -> Processor:
    processor = Processor(Scrubber(Policy()))
    made = {name: Scrubber(Policy.from_mapping(values)) for name, values in projects.items()}
    processor.use(Scrubber(Policy()), made)
    return processor


def test_each_event_is_scrubbed_by_its_projects_policy_and_names_it() -> None:
    processor = with_projects(clinic={"actions": {"contact": "label"}})
    documents = [event(query="bob@example.com") | {"project": name} for name in ("shop", "clinic")]
    stored = [orjson.loads(process(document, processor).event or b"") for document in documents]
    assert [document["payload"]["query"] for document in stored] == ["[REDACTED]", "[EMAIL]"]
    assert stored[0]["policy"] == Policy().fingerprint != stored[1]["policy"]


def test_a_refused_event_is_a_failure_that_says_which_categories_were_found_and_which_refused_it() -> None:
    processor = with_projects(shop={"actions": {"payment_card": "refuse"}})
    outcome = process(event(query="bob@example.com 4111 1111 1111 1111", params={"n": 4111111111111111}), processor)
    assert outcome.event is None
    failure = outcome.failure
    assert failure is not None
    assert (failure.reason, failure.error_class) == (Reason.CHECK_VIOLATION, "pii_refused")
    assert (failure.pii_attempted, failure.pii_blocked) == (["contact", "payment_card"], ["payment_card"])
    assert failure.detail == "the policy of this project refuses payment_card"
    assert "bob" not in failure.model_dump_json()
    assert "4111" not in failure.model_dump_json()
    assert (dict(processor.refusals), dict(processor.findings)) == ({"payment_card": 1}, {})


def test_a_stored_event_says_what_was_found_and_what_was_kept_out() -> None:
    processor = with_projects(shop={"families": {"email": "allow"}})
    outcome = process(event(query="bob@example.com 4111 1111 1111 1111"), processor)
    document = orjson.loads(outcome.event or b"")
    assert document["payload"]["query"] == "bob@example.com [REDACTED]"
    assert document["pii_families"] == {"payment_card": 1}
    assert (document["pii_attempted"], document["pii_blocked"]) == (["contact", "payment_card"], ["payment_card"])


def test_an_event_without_findings_has_empty_sets() -> None:
    scrubbed = parse_scrubbed(b'{"id":0,' + (process(event()).event or b"")[1:])
    assert (scrubbed.pii_families, scrubbed.pii_attempted, scrubbed.pii_blocked) == ({}, [], [])


def test_a_policy_changed_between_batches_counts_for_the_next_one() -> None:
    processor = Processor(Scrubber(Policy()))
    first = process(event(query="bob@example.com"), processor)
    processor.use(Scrubber(Policy.from_mapping({"actions": {"contact": "refuse"}})))
    second = process(event(query="bob@example.com"), processor)
    assert (first.event is not None, second.event is None) == (True, True)
