"""What of a dead letter may be shown, and how it goes on its way again."""

import json
from collections import Counter
from datetime import timedelta

import pytest

from assay_operations.dead_letters.letters import (
    DeadLetter,
    Filter,
    Name,
    NotRequeueableError,
    filter_of,
    name_of,
    tally,
)
from assay_operations.errors import OperationError
from assay_schema.ids import new_event_id
from assay_schema.streams import ALERTS, CAPTURE, EVENTS, FAILURES, SCORES, SPANS, STREAMS, Stream
from assay_schema.validation import parse_event, parse_scrubbed
from tests.support.alert_samples import episode

SECRET = "reach me at jane.doe@example.com"
EVENT = {
    "schema_version": 1,
    "event_id": new_event_id(),
    "kind": "feedback",
    "project": "shop",
    "service": "search-api",
    "occurred_at": "2026-01-01T00:00:00.123456Z",
    "traceparent": None,
    "payload": {"target_event_id": new_event_id(), "verdict": "positive", "text": SECRET, "user_hash": None},
}
SCRUBBED = EVENT | {"id": 5, "created_at": "2026-01-01T00:00:00Z", "pii_families": {"email": 1}, "policy": "p1"}
FAILURE = {
    "schema_version": 1,
    "failure_id": "5746c5d7-f8a7-54c4-8429-ee66982d578a",
    "stage": "scrubber",
    "reason": "check_violation",
    "error_class": "rule",
    "created_at": "2026-01-01T00:00:00Z",
}


def letter(
    stream: Stream | str = CAPTURE, data: object = EVENT, *, ms: int = 1_790_000_000_000, **fields: str
) -> DeadLetter:
    told = {
        "stream": stream.key() if isinstance(stream, Stream) else stream,
        "entry_id": "1790000000000-3",
        "stage": "scrubber",
        "reason": "other",
        "error_class": "TooManyDeliveries",
        "deliveries": "5",
        **fields,
    }
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return DeadLetter.of(
        0, f"{ms}-0".encode(), {b"data": raw} | {key.encode(): value.encode() for key, value in told.items()}
    )


def test_metadata_says_whose_event_it_was_and_nothing_of_what_it_said() -> None:
    facts = letter().metadata(timedelta(days=7))
    assert facts == {
        "id": "1790000000000-0",
        "shard": 0,
        "buried_at": "2026-09-21T14:13:20.000Z",
        "expires_at": "2026-09-28T14:13:20.000Z",
        "stream": "capture",
        "entry_id": "1790000000000-3",
        "stage": "scrubber",
        "reason": "other",
        "error_class": "TooManyDeliveries",
        "deliveries": 5,
        "bytes": len(json.dumps(EVENT)),
        "scrubbed": False,
        "event_id": EVENT["event_id"],
        "project": "shop",
        "service": "search-api",
    }


@pytest.mark.parametrize("data", [b"", b"\xff\x00{", b"[1]", b'{"event_id": "jane.doe@example.com", "project": "a b"}'])
def test_metadata_of_what_is_broken_says_unknown(data: bytes) -> None:
    facts = letter(data=data).metadata(timedelta(days=7))
    assert (facts["event_id"], facts["service"]) == (None, "unknown")
    assert "jane" not in json.dumps(facts)


def test_a_letter_without_its_fields_is_listed_all_the_same() -> None:
    bare = DeadLetter.of(0, b"1790000000000-0", {})
    assert (bare.stream, bare.stage, bare.deliveries, bare.data) == ("", "", 0, b"")
    assert bare.metadata(timedelta(days=1))["event_id"] is None


@pytest.mark.parametrize(
    ("stream", "data", "scrubbed"),
    [
        (CAPTURE, EVENT, False),
        (CAPTURE, SCRUBBED, False),  # whatever a producer calls it, nobody scrubbed it
        (EVENTS, SCRUBBED, True),
        (EVENTS, SCRUBBED | {"policy": "off"}, False),  # scrubbing was off
        (EVENTS, EVENT, False),
        (EVENTS, SCRUBBED | {"policy": 5}, False),
        (EVENTS, b'{"policy": "p1", "broken', False),
        (EVENTS, b'["p1"]', False),
        (FAILURES, FAILURE, True),
        (FAILURES, FAILURE | {"reason": SECRET}, False),
        (FAILURES, EVENT, False),
        ("assay:{0}:elsewhere", SCRUBBED, False),
    ],
)
def test_only_what_is_surely_scrubbed_may_be_shown(stream: Stream | str, data: object, scrubbed: bool) -> None:
    assert letter(stream, data).scrubbed is scrubbed


def test_a_raw_letter_goes_back_byte_for_byte() -> None:
    raw = b'{"not even": json'
    assert letter(CAPTURE, raw).requeued() == (CAPTURE, raw)


def test_spans_come_back_as_they_were() -> None:
    raw = b'{"project":"shop"}\n\x0a\xff'
    assert letter(SPANS, raw).requeued() == (SPANS, raw)


def test_a_failure_goes_back_to_the_failures() -> None:
    raw = json.dumps(FAILURE).encode()
    assert letter(FAILURES, raw).requeued() == (FAILURES, raw)


def test_an_alert_goes_back_to_the_alerts_so_that_who_missed_it_is_told() -> None:
    raw = episode()[0].model_dump_json().encode()
    assert letter(ALERTS, raw).requeued() == (ALERTS, raw)


def test_a_scrubbed_letter_is_turned_back_into_an_event_under_its_own_event_id() -> None:
    parse_scrubbed(json.dumps(SCRUBBED).encode())
    target, data = letter(EVENTS, SCRUBBED).requeued()
    assert target == CAPTURE
    assert json.loads(data) == EVENT
    assert str(parse_event(data).event_id) == EVENT["event_id"]


@pytest.mark.parametrize("stream", [EVENTS, SCORES, "assay:{0}:elsewhere", "assay:{1}:capture", ""])
def test_what_cannot_go_back_is_refused_without_its_content(stream: Stream | str) -> None:
    with pytest.raises(NotRequeueableError) as refused:
        letter(stream, f'{{"{SECRET}'.encode()).requeued()
    assert "jane" not in str(refused.value)


def test_every_stream_an_entry_can_be_given_up_in_is_known() -> None:
    consumed = [stream for stream in STREAMS if stream.groups]
    assert [letter(stream).stream for stream in consumed] == [stream.name for stream in consumed]


@pytest.mark.parametrize(
    ("wanted", "passes"),
    [
        (Filter(), True),
        (Filter(reason="other"), True),
        (Filter(reason="db_down"), False),
        (Filter(stage="scrubber"), True),
        (Filter(stage="writer"), False),
        (Filter(since_ms=1_790_000_000_000), True),
        (Filter(since_ms=1_790_000_000_001), False),
        (Filter(reason="other", stage="scrubber", since_ms=1), True),
        (Filter(reason="other", stage="writer", since_ms=1), False),
    ],
)
def test_a_filter_wants_what_passes_all_its_conditions(wanted: Filter, passes: bool) -> None:
    assert wanted.wants(letter()) is passes


def test_a_filter_without_a_condition_is_none_and_begins_at_the_beginning() -> None:
    assert not Filter()
    assert Filter(stage="writer")
    assert (Filter().first, Filter(since_ms=7).first) == ("-", "7-0")


def test_a_reason_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(OperationError, match="check_violation"):
        Filter(reason="poison")


def test_a_letter_is_named_by_its_id_and_its_shard_if_need_be() -> None:
    assert name_of("1790000000000-0") == Name(None, "1790000000000-0")
    assert name_of("3/1790000000000-0") == Name(3, "1790000000000-0")
    assert [str(name_of(text)) for text in ("1-0", "3/1-0")] == ["1-0", "3/1-0"]


@pytest.mark.parametrize("text", ["", "-", "+", "1790000000000", "(1-0", "1-0;", "a/1-0", "1-0\n"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(OperationError, match="assay dead list"):
        name_of(text)


def test_counts_are_by_stage_and_reason_most_first() -> None:
    assert tally(Counter({("writer", "other"): 1, ("scrubber", "other"): 1_200, ("", ""): 1})) == (
        "scrubber/other 1,200, ?/? 1, writer/other 1"
    )


@pytest.mark.parametrize(("reason", "stage", "says"), [
    (None, "writter", "--stage: 'writter' is not one of scrubber, assembler, writer"),
    ("unknown", None, "--reason: 'unknown' is not one of db_down"),
])  # fmt: skip
def test_an_unknown_stage_or_reason_is_refused(reason: str | None, stage: str | None, says: str) -> None:
    with pytest.raises(OperationError, match=says):
        filter_of(reason, stage, None)
    assert filter_of("other", "notifier", None) == Filter("other", "notifier", None)
