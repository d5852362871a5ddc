"""What an event may leave out, what rejects it, and that its bytes stay as they are."""

import gc
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest

from assay_access.api_keys import KeyKind, KeyRecord
from assay_gateway import events
from assay_gateway.events import LISTED_MAX, PARTS_MAX, Batch
from assay_schema.ids import event_ms
from assay_schema.limits import ENTRY_MAX_BYTES
from assay_schema.published import examples
from assay_schema.validation import InvalidEvent, parse_event
from tests.support.gateway import event

NOW_MS = 2_000_000_000_000
RECORD = KeyRecord(
    id="A" * 10, sha256="0" * 64, kind=KeyKind.INGEST, project="shop", created_at=datetime.now(UTC), service="web"
)


def encoded(**changes: Any) -> bytes:
    return orjson.dumps(event(**changes))


def without(*names: str, **changes: Any) -> bytes:
    return orjson.dumps({name: value for name, value in event(**changes).items() if name not in names})


def accepted(item: bytes, record: KeyRecord, now_ms: int) -> bytes:
    batch = Batch(record, now_ms)
    batch.add(item)
    if batch.rejected:
        raise InvalidEvent(batch.rejected[0]["rule"], batch.rejected[0]["detail"])
    (entry,) = batch.entries
    return entry


def rule_of(item: bytes, record: KeyRecord = RECORD) -> str:
    with pytest.raises(InvalidEvent) as rejected:
        accepted(item, record, NOW_MS)
    return rejected.value.rule


def test_a_complete_event_of_the_keys_project_keeps_every_byte() -> None:
    item = encoded(project="shop", origin="sdk").replace(b'"latency_ms":12.5', b'"latency_ms":   1.25e1')
    assert accepted(item, RECORD, NOW_MS) == item


@pytest.mark.parametrize("end", [b"", b" \r\n"])
@pytest.mark.parametrize("said", [{}, {"origin": None}])
def test_an_event_that_does_not_say_how_it_was_sent_came_by_http(said: dict[str, None], end: bytes) -> None:
    item = encoded(project="shop", **said)
    entry = accepted(item + end, RECORD, NOW_MS)
    assert parse_event(entry).origin == "http"
    assert entry.startswith(item[:-1])


@pytest.mark.parametrize("origin", ["sdk", "http", "otlp"])
def test_an_event_that_says_how_it_was_sent_keeps_that(origin: str) -> None:
    assert parse_event(accepted(encoded(project="shop", origin=origin), RECORD, NOW_MS)).origin == origin


def test_an_event_that_is_too_large_with_the_project_of_its_key_is_rejected() -> None:
    item = encoded(padding="")
    item = item.replace(b'"padding":""', b'"padding":"%b"' % (b"x" * (ENTRY_MAX_BYTES - len(item))))
    assert rule_of(item) == "entry_too_large"


def test_an_event_of_the_largest_size_stays_within_it() -> None:
    item = encoded(project="shop", padding="")
    item = item.replace(b'"padding":""', b'"padding":"%b"' % (b"x" * (ENTRY_MAX_BYTES - len(item))))
    assert len(accepted(item, RECORD, NOW_MS)) == ENTRY_MAX_BYTES


@pytest.mark.parametrize(
    ("missing", "filled"),
    [("project", "shop"), ("service", "web"), ("schema_version", 1)],
)
def test_what_an_event_lacks_comes_from_the_key(missing: str, filled: object) -> None:
    entry = accepted(without(missing), RECORD, NOW_MS)
    assert orjson.loads(entry)[missing] == filled
    assert parse_event(entry).project == "shop"


def test_an_event_without_an_id_gets_the_same_one_whenever_the_same_bytes_are_sent() -> None:
    item = without("event_id", occurred_at="2026-05-01T12:00:00.250Z")
    first, later = (json.loads(accepted(item, RECORD, NOW_MS + wait)) for wait in (0, 5_000))
    assert first["event_id"] == later["event_id"]
    assert event_ms(UUID(first["event_id"])) == 1_777_636_800_250
    other = RECORD.model_copy(update={"project": "docs"})
    assert json.loads(accepted(item, other, NOW_MS))["event_id"] != first["event_id"]
    assert json.loads(accepted(item.replace(b"4101", b"4102"), RECORD, NOW_MS))["event_id"] != first["event_id"]


def test_an_event_without_a_time_has_that_of_the_request() -> None:
    entry = parse_event(accepted(without("occurred_at", "event_id"), RECORD, NOW_MS))
    assert entry.occurred_at.timestamp() * 1000 == NOW_MS
    assert event_ms(entry.event_id) == NOW_MS


def test_only_members_that_are_missing_are_added_and_other_bytes_stay() -> None:
    item = b" { " + without("event_id", "project")[1:].replace(b'"latency_ms":12.5', b'"latency_ms":1.25e1')
    entry = accepted(item, RECORD, NOW_MS)
    assert entry.endswith(item.lstrip()[1:-1] + b',"origin":"http"}')
    assert sorted(json.loads(entry)) == sorted({*event(), "project", "origin"})


#: Events that break the contract, made when a test runs: their ids and times are new.
BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "another project": (lambda: encoded(project="docs"), "project_forbidden"),
    "the default project": (lambda: encoded(project="default"), "project_forbidden"),
    "no project": (lambda: encoded(project=None), "string_type"),
    "unknown kind": (lambda: encoded(kind="other"), "unknown_kind"),
    "short id": (lambda: encoded(event_id="7"), "not_uuid7"),
    "later version": (lambda: encoded(schema_version=2), "schema_version"),
    "no time": (lambda: encoded(occurred_at=None), "not_rfc3339"),
    "id of the future": (lambda: encoded(event_id="ffffffff-ffff-7fff-bfff-ffffffffffff"), "event_id_ahead"),
    "too large": (lambda: b'{"a":[' + b"1," * ENTRY_MAX_BYTES + b"1]}", "entry_too_large"),
    "empty object": (lambda: b"{}", "unknown_kind"),
    "number": (lambda: b"3", "not_an_object"),
    "nothing": (lambda: b"", "invalid_json"),
    "half": (lambda: b"{", "invalid_json"),
    "wrong bracket": (lambda: b'{"a":1]', "invalid_json"),
    "not UTF-8": (lambda: b'"\xff"', "invalid_utf8"),
    "deep": (lambda: b'{"a":' * 300 + b"1" + b"}" * 300, "nested_too_deep"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_an_event_that_breaks_the_contract_is_rejected_by_its_rule(broken: str) -> None:
    made, rule = BROKEN[broken]
    assert rule_of(made()) == rule


def test_a_key_of_the_default_project_also_refuses_another_project() -> None:
    default = RECORD.model_copy(update={"project": "default"})
    assert rule_of(encoded(project="shop"), default) == "project_forbidden"
    assert parse_event(accepted(without("project"), default, NOW_MS)).project == "default"


def test_an_event_without_a_service_needs_a_key_that_has_one() -> None:
    assert rule_of(without("service"), RECORD.model_copy(update={"service": None})) == "missing"


def test_a_member_that_is_given_twice_counts_as_the_scrubber_counts_it() -> None:
    item = encoded(project="shop")[:-1] + b',"project":"docs"}'
    assert parse_event(item).project == "docs"
    assert rule_of(item) == "project_forbidden"


@pytest.mark.parametrize("example", examples("capture"), ids=lambda example: str(example.name))
def test_every_example_of_the_contract_is_accepted_by_a_key_of_its_project(example: Any) -> None:
    document = example.document_bytes
    project = json.loads(document).get("project", "default")
    record = RECORD.model_copy(update={"project": project})
    sent = parse_event(document)
    assert parse_event(accepted(document, record, NOW_MS)) == sent.model_copy(update={"origin": sent.origin or "http"})


def test_rejections_name_index_id_and_rule_and_nothing_of_the_content() -> None:
    batch = Batch(RECORD, NOW_MS)
    secret = "jane.doe@example.com"
    bad = event(kind=secret, service=secret)
    for item in (encoded(), orjson.dumps(bad), orjson.dumps({secret: secret})):
        batch.add(item)
    assert len(batch.entries) == 1
    assert [(each["index"], each["event_id"], each["rule"]) for each in batch.rejected] == [
        (1, bad["event_id"], "unknown_kind"),
        (2, None, "unknown_kind"),
    ]
    assert secret not in str(batch.rejected)


def test_at_most_a_hundred_rejections_are_listed_and_all_are_counted() -> None:
    batch = Batch(RECORD, NOW_MS)
    for _ in range(LISTED_MAX + 50):
        batch.add(b"{}")
    assert (len(batch.rejected), batch.rejected_total) == (LISTED_MAX, LISTED_MAX + 50)


@pytest.mark.parametrize(
    "inner",
    [
        b"[" + b"[]," * 40_000 + b"[]]",
        b"{" + b",".join(b'"%d":{}' % number for number in range(40_000)) + b"}",
        b"[" + b"0," * PARTS_MAX + b"0]",
    ],
)
def test_an_event_of_too_many_parts_is_rejected_without_decoding_it(
    monkeypatch: pytest.MonkeyPatch, inner: bytes
) -> None:
    item = encoded(payload={"args_summary": "INNER"}).replace(b'"INNER"', inner)
    for decoder in ("parse_event", "from_json", "identity_of"):
        monkeypatch.setattr(events, decoder, None)
    assert rule_of(item) == "too_complex"


def test_commas_and_brackets_in_texts_count_for_nothing() -> None:
    payload = {**event()["payload"], "query": '[{,\\"' * 8_000, "params": {"csv": "1,2,3,[" * 60_000}}
    item = encoded(project="shop", origin="sdk", payload=payload)
    assert len(item) > PARTS_MAX
    assert accepted(item, RECORD, NOW_MS) == item


def test_as_many_parts_as_full_lists_have_are_accepted() -> None:
    payload = {
        **event()["payload"],
        "retrieved_slugs": [str(number) for number in range(10_000)],
        "source_ids": [str(number) for number in range(10_000)],
        "retrieved_ids": [str(number) for number in range(10_000)],
        "retrieved_chunk_ids": [1] * 10_000,
        "retrieved_scores": [0.5] * 10_000,
    }
    assert accepted(encoded(project="shop", payload=payload), RECORD, NOW_MS)


@pytest.mark.parametrize("item", [b"{}", b"{", b'{"kind":"answer"}', b'{"kind":"retrieval","payload":{}}'])
def test_a_rejected_event_is_forgotten_without_a_garbage_collection(item: bytes) -> None:
    Batch(RECORD, NOW_MS).add(item)
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):
            Batch(RECORD, NOW_MS).add(item)
        assert gc.collect() == 0
    finally:
        gc.enable()
