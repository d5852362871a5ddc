"""Every way to be refused by the gateway, at every route, with the exact answer; and key material is nowhere but in the request."""

import base64
import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from assay_access.api_keys import KeyKind
from assay_schema.ids import new_event_id
from assay_schema.span_entry import parse_span_entry
from assay_schema.streams import CAPTURE, FIELD, SPANS
from tests.support.gateway import Answer, Gateway, event, running_gateway
from tests.support.spans import request, span
from tests.support.wait import until

ORIGIN, FORGED = "https://app.example.com", "https://evil.example"
PROTOBUF, JSON = "application/x-protobuf", "application/json"
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": "[]", "assay.project": "docs"}


class Route(NamedTuple):
    path: str
    media_type: str
    body: bytes


def _span_in_json() -> bytes:
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in CHAT.items()]
    made = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "chat", "attributes": attributes}
    return orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [made]}]}]})


ROUTES = {
    "events": Route("/v1/events", JSON, b"[]"),
    "events as lines": Route("/v1/events", "application/x-ndjson", b""),
    "traces": Route("/v1/traces", JSON, _span_in_json()),
    "traces in protobuf": Route("/v1/traces", PROTOBUF, request(span(CHAT)).SerializeToString()),
    "traces of Langfuse": Route("/api/public/otel/v1/traces", PROTOBUF, request(span(CHAT)).SerializeToString()),
    "logs": Route("/v1/logs", JSON, b"{}"),
    "logs in protobuf": Route("/v1/logs", PROTOBUF, b""),
    "metrics": Route("/v1/metrics", JSON, b"{}"),
    "metrics in protobuf": Route("/v1/metrics", PROTOBUF, b""),
    "feedback": Route(
        "/v1/feedback", JSON, orjson.dumps({"target": {"event_id": new_event_id()}, "verdict": "negative"})
    ),
}
UNAUTHORIZED, FORBIDDEN = (401, "unauthorized"), (403, "forbidden_kind")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("keys"), ASSAY_GATEWAY_FEEDBACK_PER_MINUTE="0") as running:
        yield running


@pytest.fixture(scope="module")
def keys(gateway: Gateway) -> dict[str, str]:
    """One key of each sort; all are known to the gateway."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    good = gateway.key()
    made = {
        "": "",
        "malformed": "assay_ingest_" + "b" * 43,
        "unknown": "assay_ingest_" + "A" * 10 + "_" + "b" * 32,
        "wrong secret": good[:-1] + ("a" if good[-1] != "a" else "b"),
        "secret in front": good + "x",
        "kind changed": good.replace("ingest", "feedback"),
        "expired": gateway.key(expires_at=past),
        "expired feedback": gateway.key(KeyKind.FEEDBACK, expires_at=past),
        "revoked": gateway.key(revoked_at=past),
        "revoked feedback": gateway.key(KeyKind.FEEDBACK, revoked_at=past),
        "read": gateway.key(KeyKind.READ),
        "feedback": gateway.key(KeyKind.FEEDBACK),
        "feedback of a page": gateway.key(KeyKind.FEEDBACK, origins=(ORIGIN,)),
        "ingest": good,
    }
    until(lambda: gateway.post([], good).status == 200, "the keys are not known")
    return made


def send(gateway: Gateway, route: Route, key: str, **headers: str) -> Answer:
    return gateway.send(route.path, route.body, key or None, Content_Type=route.media_type, **headers)


def code_of(answer: Answer) -> str:
    if answer.headers["content-type"] == PROTOBUF:  # a google.rpc.Status: its message begins with the code
        return answer.body[2:].partition(b":")[0].decode()
    return str(answer.json["error"]["code"])


def lengths(gateway: Gateway) -> tuple[int, int]:
    with gateway.redis.client() as client:
        return client.xlen(CAPTURE.key()), client.xlen(SPANS.key())


@pytest.mark.parametrize("name", ROUTES)
def test_a_key_of_each_sort_gets_its_answer_and_only_a_right_one_stores(
    gateway: Gateway, keys: dict[str, str], name: str
) -> None:
    route, before = ROUTES[name], lengths(gateway)
    refused = {sort: key for sort, key in keys.items() if sort not in ("ingest", "feedback", "feedback of a page")}
    if name != "feedback":
        refused |= {sort: keys[sort] for sort in ("feedback", "feedback of a page")}
    answers = {sort: send(gateway, route, key) for sort, key in refused.items()}
    assert {sort: (answer.status, code_of(answer)) for sort, answer in answers.items()} == {
        sort: FORBIDDEN if sort in ("read", "feedback", "feedback of a page") else UNAUTHORIZED for sort in refused
    }
    strangers = [answer for answer in answers.values() if answer.status == 401]
    assert {answer.headers["www-authenticate"] for answer in strangers} == {"Bearer"}
    assert len({answer.body.replace(answer.headers["x-request-id"].encode(), b"") for answer in strangers}) == 1
    assert lengths(gateway) == before
    assert send(gateway, route, keys["ingest"]).status == (202 if name == "feedback" else 200)
    assert (lengths(gateway) != before) == ("traces" in name or name == "feedback")


@pytest.mark.parametrize("name", ROUTES)
def test_a_revoked_key_is_refused_at_every_route_within_five_seconds(gateway: Gateway, name: str) -> None:
    route, key = ROUTES[name], gateway.key(KeyKind.FEEDBACK if name == "feedback" else KeyKind.INGEST)
    assert send(gateway, route, key).status in (200, 202)
    gateway.revoke(key)
    revoked = time.monotonic()
    answer = until(lambda: (found := send(gateway, route, key)).status == 401 and found, "the key is still valid")
    assert time.monotonic() - revoked < 5
    assert code_of(answer) == "unauthorized"


@pytest.mark.parametrize(
    ("sort", "origin", "expected"),
    [
        ("feedback of a page", ORIGIN, (202, "")),
        ("feedback of a page", FORGED, (403, "forbidden_origin")),
        ("feedback of a page", "null", (403, "forbidden_origin")),
        ("feedback of a page", f"{ORIGIN}.evil.example", (403, "forbidden_origin")),
        ("feedback of a page", "", (403, "forbidden_origin")),
        ("feedback", FORGED, (403, "forbidden_origin")),
        ("feedback", "", (202, "")),
        ("ingest", FORGED, (202, "")),
        ("revoked feedback", ORIGIN, UNAUTHORIZED),
        ("expired feedback", ORIGIN, UNAUTHORIZED),
        ("read", ORIGIN, FORBIDDEN),
    ],
)
def test_feedback_is_taken_from_listed_pages_only(
    gateway: Gateway, keys: dict[str, str], sort: str, origin: str, expected: tuple[int, str]
) -> None:
    before = lengths(gateway)
    answer = send(gateway, ROUTES["feedback"], keys[sort], Origin=origin)
    assert (answer.status, code_of(answer) if answer.status != 202 else "") == expected
    assert answer.headers.get("access-control-allow-origin") == (
        ORIGIN if sort == "feedback of a page" and origin == ORIGIN else None
    )
    assert (lengths(gateway) != before) == (answer.status == 202)


@pytest.mark.parametrize("name", [name for name in ROUTES if name != "feedback"])
def test_a_page_is_never_allowed_to_read_the_answers_of_other_routes(
    gateway: Gateway, keys: dict[str, str], name: str
) -> None:
    route = ROUTES[name]
    answers = [send(gateway, route, keys[sort], Origin=ORIGIN) for sort in ("ingest", "feedback of a page", "")]
    answers.append(gateway.send(route.path, None, None, method="OPTIONS", Origin=ORIGIN))
    assert [answer.status for answer in answers] == [200, 403, 401, 405]
    assert not [header for answer in answers for header in answer.headers if header.startswith("access-control")]


def test_a_key_writes_into_its_own_project_only(gateway: Gateway, keys: dict[str, str]) -> None:
    foreign = gateway.post([event(project="docs")], keys["ingest"])
    assert (foreign.status, foreign.json["rejected"][0]["rule"]) == (400, "project_forbidden")
    for name in ("traces", "traces in protobuf", "traces of Langfuse"):
        assert send(gateway, ROUTES[name], keys["ingest"]).status == 200
    assert send(gateway, ROUTES["feedback"], keys["ingest"]).status == 202
    with gateway.redis.client() as client:
        spans = [parse_span_entry(fields[FIELD.encode()]).project for _, fields in client.xrange(SPANS.key())]
    assert set(spans) == {each["project"] for each in gateway.stored()} == {"shop"}


@pytest.mark.parametrize("way", ["Bearer", "Basic", "x-api-key", "address"])
def test_key_material_is_in_no_answer_log_metric_stream_or_list_of_processes(
    gateway: Gateway, keys: dict[str, str], way: str
) -> None:
    said: list[Any] = []
    sent = [keys[sort] for sort in ("ingest", "feedback", "read", "wrong secret", "revoked", "expired")]
    for route in ROUTES.values():
        for key in sent:
            headers = {
                "Bearer": {"Authorization": f"Bearer {key}"},
                "Basic": {"Authorization": "Basic " + base64.b64encode(f"pk:{key}".encode()).decode()},
                "x-api-key": {"x_api_key": key},
                "address": {},
            }[way]
            path = f"{route.path}?key={key}" if way == "address" else route.path
            answer = gateway.send(path, route.body, Content_Type=route.media_type, **headers)
            said += [answer.headers, answer.body]
    said += [gateway.log(), gateway.health("/metrics")[1]]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has ended
            said.append(path.read_bytes())
    with gateway.redis.client() as client:
        names = list(client.scan_iter())
        said += [client.hgetall(name) if client.type(name) == b"hash" else client.xrange(name) for name in names]
    everything = repr(said)
    for key in sent:
        assert key.rpartition("_")[2] not in everything
        assert base64.b64encode(f"pk:{key}".encode()).decode() not in everything
