"""What the producer scrubbed passes the service as it is, and nothing else about an event changes."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from assay_runtime.entries import Entry, Outcome
from assay_schema.settings import Settings, SettingsError
from assay_scrubber.policies import read_policies, scrubbers_of
from assay_scrubber.process import Processor
from assay_scrubber.producer import InProducer

WHO = "ann@example.com"
POLICY = """
scrub_keys = ["customer"]
[actions]
contact = "label"
[families]
phone = "hash"
[projects.lab.families]
email = "allow"
"""


def event(kind: str, payload: dict[str, Any], **envelope: Any) -> bytes:
    document = {
        "schema_version": 1, "event_id": "01a20000-0000-7000-8000-000000000000", "kind": kind, "project": "shop",
        "service": "search", "occurred_at": "2026-11-21T00:00:00Z", "payload": payload,
    } | envelope  # fmt: skip
    return orjson.dumps(document)


RETRIEVAL = {
    "tool_name": "query", "query": f"to {WHO}", "retrieved_slugs": ["a"], "retrieved_chunk_ids": [1], "latency_ms": 1,
    "params": {"customer": {"id": 7}, "phone": 5551234567, "deep": [{"mail": WHO}]},
}  # fmt: skip
ANSWER = {"query": WHO, "answer": f"call 555-123-4567 or {WHO}", "model": "m", "latency_ms": 1,
          "contexts": [{"id": "1", "text": WHO}], "citations": [{"context_id": "1", "claim": WHO}]}  # fmt: skip
FEEDBACK = {"target_event_id": "01a20000-0000-7000-8000-000000000000", "verdict": "negative", "text": WHO}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return Settings.model_validate({"scrubber": {"policy_file": path, "hash_key": "0123456789abcdef"}})


def served(settings: Settings, data: bytes) -> Outcome:
    processor = Processor(*scrubbers_of(read_policies(settings.scrubber)))
    [outcome] = processor.process(iter([Entry("1795300000000-0", data)]))
    return outcome


@pytest.mark.parametrize("project", ["shop", "lab"])
@pytest.mark.parametrize(("kind", "payload"), [("retrieval", RETRIEVAL), ("answer", ANSWER), ("feedback", FEEDBACK)])
def test_an_event_is_stored_with_the_same_text_whoever_scrubs_it_first(
    settings: Settings, kind: str, payload: dict[str, Any], project: str
) -> None:
    raw = event(kind, payload, project=project)
    passed = InProducer(settings).scrub(raw)
    assert passed.entry is not None
    alone, again = (served(settings, data).event for data in (raw, passed.entry))
    assert alone is not None
    assert again is not None
    counted = ("pii_families", "pii_attempted", "pii_blocked")
    first, second = orjson.loads(alone), orjson.loads(again)
    assert passed.findings == first["pii_families"]
    assert not second["pii_families"]
    assert {k: v for k, v in first.items() if k not in counted} == {k: v for k, v in second.items() if k not in counted}


def test_fields_that_no_event_has_do_not_leave_the_process(settings: Settings) -> None:
    passed = InProducer(settings).scrub(event("feedback", FEEDBACK | {"more": WHO}, extra=WHO))
    assert passed.entry is not None
    assert WHO.encode() not in passed.entry


@pytest.mark.parametrize(
    ("payload", "envelope"),
    [
        (FEEDBACK | {"verdict": WHO}, {}),
        (FEEDBACK | {"user_hash": [WHO, {"a": WHO}]}, {}),
        ({"text": WHO}, {}),
        (FEEDBACK, {"kind": WHO}),
        (FEEDBACK, {"project": WHO}),
        (FEEDBACK, {"project": {"a": [WHO]}}),
        (FEEDBACK, {"occurred_at": WHO, "service": ""}),
        (FEEDBACK, {"event_id": WHO}),
    ],
)
def test_what_breaks_the_contract_is_scrubbed_in_every_value_and_fails_in_the_service_with_the_same_words(
    settings: Settings, payload: dict[str, Any], envelope: dict[str, Any]
) -> None:
    raw = event("feedback", payload) if not envelope else event(envelope.pop("kind", "feedback"), payload, **envelope)
    passed = InProducer(settings).scrub(raw)
    assert passed.entry is not None
    assert WHO.encode() not in passed.entry
    alone, again = served(settings, raw).failure, served(settings, passed.entry).failure
    assert alone is not None
    assert again is not None
    assert (again.error_class, again.detail, again.event_id) == (alone.error_class, alone.detail, alone.event_id)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"text"', b"\xff"])
def test_what_is_no_event_at_all_raises_or_holds_nothing(settings: Settings, data: bytes) -> None:
    try:
        passed = InProducer(settings).scrub(data)
    except Exception:  # noqa: BLE001  (the SDK drops it then)
        return
    assert passed.entry in (None, data)


def test_a_key_for_hashes_that_is_missing_is_told(settings: Settings) -> None:
    scrubber = settings.scrubber.model_copy(update={"hash_key": None})
    with pytest.raises(SettingsError, match=r"policy\.toml: line 6: phone is to be hashed, and there is no key"):
        InProducer(settings.model_copy(update={"scrubber": scrubber}))
