"""Names that are stored as they are hold no credential."""

from typing import Any

import orjson
import pytest

from assay_runtime.entries import Entry, Outcome
from assay_schema.failures import Reason
from assay_schema.validation import InvalidEvent
from assay_scrubber.engine import Scrubber
from assay_scrubber.own_names import CREDENTIAL_IN_NAME, credential_in, refuse_credentials
from assay_scrubber.policy import Policy
from assay_scrubber.process import Processor

# In pieces, so that nobody's scanner of secrets stumbles over this file.
URL = "postgres://ann:" + "horse-battery-9" + "@db.internal/shop"
API_KEY = "AKIA" + "QYLPMN5HFIQR7XYA"
TOKEN = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiJhbm4ifQ" + ".c2lnbmF0dXJlc2lnbmF0dXJl"
PEM = "-----BEGIN PRIVATE KEY-----MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj-----END PRIVATE KEY-----"
PASSWORD, BEARER = "password=" + "h7Xk2pQz9wLm", "Bearer " + "h7Xk2pQz9wLmB4tR"
CREDENTIALS = {
    "secret": PASSWORD,
    "bearer_token": BEARER,
    "connection_url": URL,
    "api_key": API_KEY,
    "jwt": TOKEN,
    "private_key": PEM,
}
RETRIEVAL = {
    "tool_name": "query",
    "query": "q",
    "retrieved_slugs": ["a", "b"],
    "retrieved_chunk_ids": [1],
    "latency_ms": 1,
}
ANSWER = {"query": "q", "answer": "a", "model": "m", "latency_ms": 1}
FEEDBACK = {"target_event_id": "01a20000-0000-7000-8000-000000000000", "verdict": "positive"}


def process(kind: str, payload: dict[str, Any], scrubber: Scrubber | None = None, **envelope: Any) -> Outcome:
    document = {
        "schema_version": 1, "event_id": "01a20000-0000-7000-8000-000000000000", "kind": kind, "project": "shop",
        "service": "search", "occurred_at": "2026-11-21T00:00:00Z", "payload": payload,
    } | envelope  # fmt: skip
    [outcome] = Processor(scrubber or Scrubber()).process(iter([Entry("1795300000000-0", orjson.dumps(document))]))
    return outcome


@pytest.mark.parametrize("family", CREDENTIALS)
@pytest.mark.parametrize(
    ("field", "kind", "payload"),
    [
        ("payload.embedding_model", "retrieval", RETRIEVAL | {"embedding_model": "HERE"}),
        ("payload.retrieved_slugs.1", "retrieval", RETRIEVAL | {"retrieved_slugs": ["fine", "HERE", "fine too"]}),
        ("payload.source_ids.0", "retrieval", RETRIEVAL | {"source_ids": ["HERE"]}),
        ("payload.retrieved_ids.1", "retrieval", RETRIEVAL | {"retrieved_ids": ["kb#1", "HERE"]}),
        ("payload.passages.0.id", "retrieval", RETRIEVAL | {"passages": [{"id": "HERE", "text": "t"}]}),
        ("payload.passages.0.source_id", "retrieval",
         RETRIEVAL | {"passages": [{"id": "1", "text": "t", "source_id": "HERE"}]}),
        ("payload.model", "answer", ANSWER | {"model": "HERE"}),
        ("payload.contexts.0.id", "answer", ANSWER | {"contexts": [{"id": "HERE", "text": "t"}]}),
        ("payload.contexts.1.source_id", "answer",
         ANSWER | {"contexts": [{"id": "1", "text": "t"}, {"id": "2", "text": "t", "source_id": "HERE"}]}),
        ("payload.citations.0.context_id", "answer", ANSWER | {"citations": [{"context_id": "HERE"}]}),
        ("payload.params, a key", "retrieval", RETRIEVAL | {"params": {"a": [{"b": 1}, {"HERE": 2}]}}),
        ("payload.user_hash", "feedback", FEEDBACK | {"user_hash": "HERE"}),
    ],
)  # fmt: skip
def test_an_event_with_a_credential_for_a_name_becomes_a_failure_that_does_not_repeat_it(
    field: str, kind: str, payload: dict[str, Any], family: str
) -> None:
    value = CREDENTIALS[family]
    outcome = process(kind, orjson.loads(orjson.dumps(payload).replace(b"HERE", value.encode())))
    assert outcome.event is None
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.error_class) == (Reason.CHECK_VIOLATION, CREDENTIAL_IN_NAME)
    assert (
        outcome.failure.detail
        == f"{field}: holds a credential ({family}); refused, since names are stored unchanged; use another"
    )
    assert value not in outcome.failure.model_dump_json()


@pytest.mark.parametrize("value", [URL, f"search {API_KEY}"])
def test_a_service_may_not_be_one_either(value: str) -> None:
    failure = process("answer", ANSWER, service=value).failure
    assert failure is not None
    assert failure.detail.startswith("service: holds a credential (")
    assert value not in failure.model_dump_json()


def test_nor_may_a_project() -> None:
    failure = process("answer", ANSWER, project=API_KEY).failure
    assert failure is not None
    assert failure.detail.startswith("project: holds a credential (api_key)")


def test_a_name_that_passed_once_does_not_let_others_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay_scrubber.own_names._MOST_PASSED", 3)
    for number in range(6):
        assert process("retrieval", RETRIEVAL | {"retrieved_slugs": [f"slug-{number}", "slug-0"]}).event is not None
        failure = process("retrieval", RETRIEVAL | {"retrieved_slugs": [f"slug-{number}", API_KEY, "slug-0"]}).failure
        assert failure is not None
        assert failure.detail.startswith("payload.retrieved_slugs.1: ")


def test_where_slugs_are_scrubbed_they_are_not_refused() -> None:
    scrubber = Scrubber(Policy(scrub_slugs=True))
    stored = process("retrieval", RETRIEVAL | {"retrieved_slugs": [URL, "fine"]}, scrubber).event
    assert stored is not None
    assert orjson.loads(stored)["payload"]["retrieved_slugs"] == ["[REDACTED]", "fine"]


def test_a_producers_ordinary_names_pass() -> None:
    names = [
        "boots/alpine", "https://docs.example.com/a?b=c#d", "postgres://db.internal/shop", "s3://bucket/key.pdf", "ann@example.com",
        "sk-learn-guide", "text-embedding-3-small", "gpt-5-mini-2025-08-07", "01a20000-0000-7000-8000-000000000000",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "user:4711", "handbook#section-2.1", "claude-sonnet-4-5",
        "docs/reset-password/step-2", "how-to-use-api-keys", "auth/login?next=/a", "api_key", "token:4711", "guide:v2.1.0",
        "password=optional",
        "arn:aws:bedrock:eu-west-1::foundation-model/amazon.titan-embed-text-v2:0", "ghp/readme", "glossary/jwt",
    ]  # fmt: skip
    assert {name: credential_in(name) for name in names} == dict.fromkeys(names, "")
    assert process("retrieval", RETRIEVAL | {"retrieved_slugs": names, "source_ids": names}).event is not None


def test_ordinary_keys_pass() -> None:
    params = {
        "password": 1,
        "api_key": {"token": None, "max_tokens": 5},
        "boost^2": [{"filter:lang": "de"}],
        "https://a.example/b?c": 0,
    }
    assert process("retrieval", RETRIEVAL | {"params": params}).event is not None


def test_names_that_look_like_a_credential_only_together_pass() -> None:
    assert process("retrieval", RETRIEVAL | {"retrieved_slugs": ["password:", "h7Xk2pQz9wLm"]}).event is not None


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("tool_call", {"args_summary": {"x": [[{URL: 1}]]}}),
        ("server_event", {"result_summary": {URL: None}}),
        ("session", {"session_id": "s", "request": {"contents": {URL: 1}}}),
    ],
)
def test_keys_of_other_documents_hold_none_either(kind: str, payload: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent, match=r", a key: holds a credential \(connection_url\)"):
        refuse_credentials(kind, payload, "search", "shop")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("tool_call", "tool_name"),
        ("tool_call", "error_kind"),
        ("tool_call", "server_session_id"),
        ("server_event", "agent_name"),
        ("session", "session_id"),
        ("session", "model"),
    ],
)
def test_nor_may_a_name_of_a_tool_or_session(kind: str, name: str) -> None:
    with pytest.raises(InvalidEvent, match=rf"payload\.{name}: holds a credential \(connection_url\)"):
        refuse_credentials(kind, {name: URL}, "search", "shop")
    refuse_credentials(kind, {name: None}, "search", "shop")


def test_nor_may_the_path_of_a_continuation() -> None:
    part = {"continues": ["function_call", URL], "text": "x"}
    payload = {"request": {"contents": []}, "response": {"candidates": []}, "intermediate_events": [part]}
    with pytest.raises(InvalidEvent, match=r"payload\.intermediate_events, a key: holds a credential"):
        refuse_credentials("session", payload, "search", "shop")


def test_nor_may_the_session_of_an_event() -> None:
    with pytest.raises(InvalidEvent, match=r"^[^:]+: session_id: holds a credential"):
        refuse_credentials("feedback", {}, "search", "shop", URL)
