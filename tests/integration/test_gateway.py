"""The gateway's process against a real Redis in which it has its own user: what clients are answered, and what is in the stream."""

import base64
import concurrent.futures
import gzip
import json
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from assay_access.api_keys import KeyKind
from assay_operations.doctor import host_checks
from assay_operations.doctor.probes import state_of
from assay_schema.ids import new_event_id
from assay_schema.streams import CAPTURE
from assay_schema.validation import parse_event
from tests.support.certificates import Authority
from tests.support.gateway import Gateway, event, redis_with_identities, running_gateway
from tests.support.ports import free_port
from tests.support.wait import until

ORIGIN = "https://app.example.com"
SECRET = "jane.doe@example.com"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def fresh(gateway: Gateway) -> Gateway:
    """The gateway, with an empty stream."""
    with gateway.redis.client() as client:
        client.delete(CAPTURE.key())
    return gateway


def ids(gateway: Gateway) -> list[str]:
    return [each["event_id"] for each in gateway.stored()]


@pytest.mark.parametrize("form", ["array", "object", "ndjson"])
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_events_of_each_form_are_in_the_stream_in_their_order_under_the_keys_project(
    fresh: Gateway, form: str, encoding: str
) -> None:
    events = [event() for _ in range(30)]
    body = {
        "array": orjson.dumps(events),
        "object": orjson.dumps({"events": events}),
        "ndjson": b"\n".join(map(orjson.dumps, events)) + b"\n",
    }[form]
    media_type = "application/x-ndjson" if form == "ndjson" else "application/json; charset=utf-8"
    answer = fresh.post(
        gzip.compress(body) if encoding else body, fresh.key(), Content_Type=media_type, Content_Encoding=encoding
    )
    assert (answer.status, answer.json["accepted"], answer.json["rejected"]) == (200, 30, [])
    assert ids(fresh) == [each["event_id"] for each in events]
    assert {each["project"] for each in fresh.stored()} == {"shop"}
    for each in fresh.stored():
        parse_event(orjson.dumps(each))


def test_good_events_of_a_batch_are_stored_and_bad_ones_are_named(fresh: Gateway) -> None:
    good, bad, foreign = event(), event(kind=SECRET), event(project="docs")
    answer = fresh.post([bad, good, foreign, 7], fresh.key())
    assert answer.status == 200
    assert answer.json["accepted"] == 1
    assert [(each["index"], each["rule"]) for each in answer.json["rejected"]] == [
        (0, "unknown_kind"), (2, "project_forbidden"), (3, "not_an_object"),
    ]  # fmt: skip
    assert answer.json["rejected_total"] == 3
    assert ids(fresh) == [good["event_id"]]
    assert SECRET not in answer.body.decode()


def test_a_batch_of_which_nothing_is_accepted_is_a_400_with_the_same_body(fresh: Gateway) -> None:
    answer = fresh.post([event(kind="other")], fresh.key())
    assert (answer.status, answer.json["accepted"], answer.json["rejected_total"]) == (400, 0, 1)
    assert fresh.stored() == []


def test_an_empty_batch_is_fine(fresh: Gateway) -> None:
    assert fresh.post([], fresh.key()).status == 200


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"{", {}, 400, "invalid_body"),
        (b"[{}", {}, 400, "invalid_json"),
        (b"[" + b"{}," * 10_000 + b"{}]", {}, 400, "too_many_events"),
        (b"[]", {"Content_Type": ""}, 415, "unsupported_type"),
        (b"[]", {"Content_Type": "text/csv"}, 415, "unsupported_type"),
        (b"[]", {"Content_Type": "application/json; charset=latin-1"}, 415, "unsupported_type"),
        (b"[]", {"Content_Encoding": "br"}, 415, "unsupported_encoding"),
        (b"[]", {"Content_Encoding": "gzip"}, 400, "invalid_encoding"),
        (gzip.compress(bytes(17 << 20), mtime=0), {"Content_Encoding": "gzip"}, 413, "too_large"),
        (b" " * (17 << 20), {}, 413, "too_large"),
    ],
    ids=lambda value: value.decode(errors="replace")[:12] if isinstance(value, bytes) else None,
)
def test_a_body_that_cannot_be_read_is_refused_as_a_whole(
    fresh: Gateway, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    answer = fresh.post(body, fresh.key(), **headers)
    assert (answer.status, answer.json["error"]["code"]) == (status, code)
    assert answer.json["request_id"] == answer.headers["x-request-id"]
    assert (answer.headers.get("connection") == "close") == (status == 413)
    assert ("accept-post" in answer.headers) == (code == "unsupported_type")
    assert fresh.stored() == []


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/v1/events", 405, "POST"),
        ("PUT", "/v1/events", 405, "POST"),
        ("GET", "/v1/feedback", 405, "POST, OPTIONS"),
        ("GET", "/v1/metrics", 405, "POST"),
        ("POST", "/", 404, None),
        ("POST", "/v1/events/", 404, None),
        ("GET", "/healthz", 404, None),
        ("GET", "/metrics", 404, None),
    ],
)
def test_other_methods_and_paths_are_refused(
    gateway: Gateway, method: str, path: str, status: int, allow: str | None
) -> None:
    answer = gateway.send(path, None, gateway.key(), method=method)
    assert (answer.status, answer.headers.get("allow")) == (status, allow)


def refused_keys(gateway: Gateway) -> dict[str, str | None]:
    """Keys that are not valid, each for another reason."""
    good, past = gateway.key(), datetime.now(UTC) - timedelta(seconds=1)
    return {
        "none": None,
        "empty": "",
        "no key": "password",
        "unknown": "assay_ingest_" + "A" * 10 + "_" + "b" * 32,
        "wrong secret": good[:-1] + ("a" if good[-1] != "a" else "b"),
        "kind changed": good.replace("ingest", "read"),
        "expired": gateway.key(expires_at=past),
        "revoked": gateway.key(revoked_at=past),
    }


def test_every_key_that_is_not_valid_gets_the_same_answer(fresh: Gateway) -> None:
    answers = {why: fresh.post([event()], key) for why, key in refused_keys(fresh).items()}
    assert {answer.status for answer in answers.values()} == {401}
    assert {answer.headers["www-authenticate"] for answer in answers.values()} == {"Bearer"}
    assert len({answer.json["error"]["message"] for answer in answers.values()}) == 1
    assert fresh.stored() == []


@pytest.mark.parametrize("kind", [KeyKind.FEEDBACK, KeyKind.READ])
@pytest.mark.parametrize("path", ["/v1/events", "/v1/metrics"])
def test_a_key_of_another_kind_may_not_send_events(gateway: Gateway, kind: KeyKind, path: str) -> None:
    answer = gateway.send(path, b"[]", gateway.key(kind))
    assert (answer.status, answer.json["error"]["code"]) == (403, "forbidden_kind")


def test_a_key_is_taken_from_each_header_and_from_the_address_only_for_feedback(gateway: Gateway) -> None:
    key = gateway.key()
    basic = base64.b64encode(f"pk:{key}".encode()).decode()
    assert gateway.post([], None, Authorization=f"bearer {key}").status == 200
    assert gateway.post([], None, Authorization=f"Basic {basic}").status == 200
    assert gateway.post([], None, x_api_key=key).status == 200
    assert gateway.send(f"/v1/events?key={key}", b"[]").status == 401
    assert gateway.post([], None, Authorization="Basic ???").status == 401


def test_several_keys_of_a_project_are_valid_at_once_and_one_is_revoked_within_five_seconds(gateway: Gateway) -> None:
    old, new = gateway.key(), gateway.key()
    assert [gateway.post([], key).status for key in (old, new)] == [200, 200]
    gateway.revoke(old)
    revoked = time.monotonic()
    until(lambda: gateway.post([], old).status == 401, "the key is still valid")
    assert time.monotonic() - revoked < 5
    assert gateway.post([], new).status == 200


def test_an_event_that_is_sent_again_has_the_same_id_so_that_it_is_stored_once(fresh: Gateway) -> None:
    key = fresh.key()
    sent = {name: value for name, value in event().items() if name not in ("event_id", "schema_version")}
    for _ in range(3):
        assert fresh.post([sent], key).status == 200
    assert len(set(ids(fresh))) == 1
    assert fresh.stored()[0] == {
        **sent,
        "project": "shop",
        "event_id": ids(fresh)[0],
        "schema_version": 1,
        "origin": "http",
    }


@pytest.mark.parametrize(("given", "kept"), [("abc.DEF-1_2", True), ("a" * 65, False), ("with blank", False)])
def test_a_request_id_is_returned_and_logged(gateway: Gateway, given: str, kept: bool) -> None:
    answer = gateway.post([], gateway.key(), X_Request_Id=given)
    found = answer.headers["x-request-id"]
    assert (found == given) == kept
    assert found == answer.json["request_id"]
    until(lambda: found in gateway.log(), "the request is not in the log")


def test_a_key_that_sends_too_fast_is_asked_to_wait_and_others_are_not(gateway: Gateway) -> None:
    slow, other = gateway.key(events_per_s=0.01), gateway.key()
    assert gateway.post([event()], slow).status == 200
    answer = gateway.post([event()], slow)
    assert (answer.status, answer.headers["retry-after"]) == (429, "5")
    assert answer.headers["ratelimit"].startswith('"events";r=0')
    assert gateway.post([event()], other).status == 200


def test_metrics_are_taken_and_said_not_to_be_stored(gateway: Gateway) -> None:
    key = gateway.key()
    as_json = gateway.send("/v1/metrics", b"{}", key)
    assert as_json.json["partialSuccess"]["errorMessage"] == "metrics are not stored"
    binary = gateway.send("/v1/metrics", b"\x0a\x00", key, Content_Type="application/x-protobuf")
    assert binary.headers["content-type"] == "application/x-protobuf"
    assert (
        ExportMetricsServiceResponse.FromString(binary.body).partial_success.error_message == "metrics are not stored"
    )


def verdict(**changes: Any) -> bytes:
    return orjson.dumps({"target": {"event_id": new_event_id()}, "verdict": "negative"} | changes)


def test_a_verdict_of_a_page_becomes_a_feedback_event(fresh: Gateway) -> None:
    key, target = fresh.key(KeyKind.FEEDBACK, origins=(ORIGIN,)), new_event_id()
    body = verdict(target={"event_id": target}, text="wrong price", user_hash="9f86d081" * 4)
    answer = fresh.send("/v1/feedback", body, key, Origin=ORIGIN)
    assert answer.status == 202
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["vary"] == "Origin"
    (stored,) = fresh.stored()
    assert stored["payload"] == {
        "target_event_id": target, "verdict": "negative", "text": "wrong price", "user_hash": "9f86d081" * 4,
    }  # fmt: skip
    assert (stored["event_id"], stored["project"], stored["kind"]) == (answer.json["event_id"], "shop", "feedback")
    assert stored["origin"] == "http"


def test_a_beacon_has_its_key_in_the_address_and_needs_no_preflight(fresh: Gateway) -> None:
    key = fresh.key(KeyKind.FEEDBACK, origins=(ORIGIN,))
    path = f"/v1/feedback?key={key}"
    assert fresh.send(path, verdict(), Content_Type="text/plain;charset=UTF-8", Origin=ORIGIN).status == 202
    assert key.rpartition("_")[2] not in fresh.log()


def test_a_verdict_with_an_id_is_stored_under_one_event_id_however_often_it_is_sent(fresh: Gateway) -> None:
    key = fresh.key(KeyKind.FEEDBACK)
    body, other = verdict(id="v1"), verdict(id="v1")
    first = fresh.send("/v1/feedback", body, key).json["event_id"]
    assert fresh.send("/v1/feedback", body, key).json["event_id"] == first
    assert fresh.send("/v1/feedback", other, key).json["event_id"] != first


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{ORIGIN}.evil.example", "http://app.example.com"])
def test_another_page_is_refused_and_gets_no_cors_headers(fresh: Gateway, origin: str) -> None:
    key = fresh.key(KeyKind.FEEDBACK, origins=(ORIGIN,))
    answer = fresh.send("/v1/feedback", verdict(), key, Origin=origin)
    assert (answer.status, answer.json["error"]["code"]) == (403, "forbidden_origin")
    preflight = fresh.send("/v1/feedback", None, method="OPTIONS", Origin=origin)
    for each in (answer, preflight):
        assert not [name for name in each.headers if name.startswith("access-control")]
    assert fresh.stored() == []


def test_a_preflight_of_a_listed_page_is_allowed_without_credentials(gateway: Gateway) -> None:
    gateway.key(KeyKind.FEEDBACK, origins=(ORIGIN,))
    answer = until(
        lambda: (
            (found := gateway.send("/v1/feedback", None, method="OPTIONS", Origin=ORIGIN))
            and "access-control-allow-origin" in found.headers
            and found
        ),
        "the origin is not known",
    )
    assert answer.headers["access-control-allow-headers"] == "authorization, content-type"
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        verdict(verdict="fine"),
        verdict(target={"span_id": "0" * 16}),
        verdict(target={"event_id": "7"}),
        verdict(target={"event_id": "ffffffff-ffff-7fff-bfff-ffffffffffff"}),
        verdict(text="x" * 4097),
        verdict(text="ä" * 2049),
        verdict(more=SECRET),
    ],
    ids=range(9),
)
def test_a_verdict_that_breaks_the_form_is_refused_without_repeating_it(fresh: Gateway, body: bytes) -> None:
    answer = fresh.send("/v1/feedback", body, fresh.key(KeyKind.FEEDBACK))
    assert answer.status == 400
    assert SECRET not in answer.body.decode()
    assert fresh.stored() == []


def test_health_and_metrics_are_on_the_internal_port(gateway: Gateway) -> None:
    assert gateway.health("/healthz")[0] == gateway.health("/readyz")[0] == 200
    gateway.post([event(), {}], gateway.key(project="counted"))
    assert gateway.metric('assay_gateway_events_total{outcome="accepted",project="counted"}') == 1
    assert gateway.metric('assay_gateway_events_total{outcome="rejected",project="counted"}') == 1
    assert gateway.metric('assay_gateway_rejected_events_total{rule="unknown_kind"}') >= 1
    assert gateway.metric("assay_gateway_in_flight_bytes") == 0


def test_doctor_says_whether_the_gateway_accepts_events(gateway: Gateway) -> None:
    assert state_of("127.0.0.1", gateway.health_port) == ([], [])
    with pytest.raises(OSError, match="refused"):
        state_of("127.0.0.1", free_port())
    assert host_checks.gateway([]).status == "ok"
    found = host_checks.gateway(["redis does not answer"])
    assert (found.status, found.summary) == ("fail", "redis does not answer")


def test_key_material_and_events_are_in_no_log_metric_or_list_of_processes(gateway: Gateway) -> None:
    keys = [key for key in [*refused_keys(gateway).values(), gateway.key()] if key and key.startswith("assay_")]
    for key in keys:
        gateway.post([event(service=SECRET), event(kind=SECRET)], key)
        gateway.send(f"/v1/feedback?key={key}", SECRET.encode(), Origin=SECRET)
    assert gateway.process
    said = gateway.log() + gateway.health("/metrics")[1]
    said += Path(f"/proc/{gateway.process.pid}/cmdline").read_text()
    said += Path(f"/proc/{gateway.process.pid}/environ").read_text()
    assert SECRET not in said
    for key in keys:
        assert key.rpartition("_")[2] not in said


def test_many_clients_at_once_are_all_answered_and_everything_is_stored(fresh: Gateway) -> None:
    key, batches = fresh.key(), [[event() for _ in range(5)] for _ in range(100)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda batch: fresh.post(batch, key), batches))
    assert {answer.status for answer in answers} == {200}
    assert sorted(ids(fresh)) == sorted(each["event_id"] for batch in batches for each in batch)


def test_what_was_answered_200_is_in_redis_and_the_rest_can_be_sent_again_while_redis_is_killed(tmp_path: Path) -> None:
    redis = redis_with_identities(tmp_path)
    gateway = Gateway(tmp_path, redis, ASSAY_REDIS_COMMAND_TIMEOUT_S="2").start()
    try:
        key, confirmed = gateway.key(), set()
        assert gateway.post([], key).status == 200
        for turn in range(3):
            for _ in range(20):
                sent = event()
                if gateway.post([sent], key).status == 200:
                    confirmed.add(sent["event_id"])
            redis.kill()
            lost = event()
            answer = gateway.post([lost], key)
            assert answer.status == 503, turn
            assert 1 <= int(answer.headers["retry-after"]) <= 5
            until(lambda: gateway.health("/readyz")[0] == 503, "still ready without Redis")
            redis.start()
            until(lambda sent=lost: gateway.post([sent], key).status == 200, "redis is not used again")  # type: ignore[misc]
            confirmed.add(lost["event_id"])
        assert confirmed <= set(ids(gateway))
        assert len(confirmed) == 63
        until(lambda: gateway.health("/readyz")[0] == 200, "not ready although Redis answers")
    finally:
        gateway.kill()
        redis.stop()


def test_a_gateway_that_starts_without_redis_asks_clients_to_come_back(tmp_path: Path) -> None:
    redis = redis_with_identities(tmp_path)
    gateway = Gateway(tmp_path, redis)
    key = gateway.key()
    redis.kill()
    try:
        gateway.start(ready=False)
        until(lambda: gateway.health("/healthz")[0] == 200, "not alive")
        assert gateway.health("/readyz")[0] == 503
        assert gateway.post([event()], key).status == 503
        redis.start()
        until(lambda: gateway.post([event()], key).status == 200, "redis is not used")
    finally:
        gateway.kill()
        redis.stop()


def test_a_stream_over_its_high_water_mark_is_backpressure_until_it_is_emptied(tmp_path: Path) -> None:
    redis = redis_with_identities(tmp_path)
    gateway = Gateway(tmp_path, redis, ASSAY_CAPTURE_HIGH_WATER_ENTRIES="50").start()
    try:
        key = gateway.key()
        assert gateway.post([event() for _ in range(60)], key).status == 200
        answer = until(lambda: (found := gateway.post([], key)).status == 503 and found, "no back-pressure")
        assert (answer.json["error"]["code"], answer.headers["retry-after"]) == ("backpressure", "5")
        assert "check that the scrubber runs" in gateway.log()
        with redis.client() as client:
            client.delete(CAPTURE.key())
        until(lambda: gateway.post([event()], key).status == 200, "still back-pressure")
    finally:
        gateway.kill()
        redis.stop()


def test_a_stop_lets_requests_end_that_have_begun_and_refuses_others(tmp_path: Path) -> None:
    redis = redis_with_identities(tmp_path)
    gateway = Gateway(tmp_path, redis).start()
    try:
        key, body = gateway.key(), orjson.dumps([event()])
        assert gateway.post([], key).status == 200
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", gateway.port)) as begun:
            begun.sendall(head.encode() + body[:10])
            until(lambda: gateway.metric("assay_gateway_in_flight_bytes") == 10, "the request has not begun")
            gateway.terminate()
            until(lambda: _refused(gateway.port), "the port is still open")
            begun.sendall(body[10:])
            answer = b"".join(iter(lambda: begun.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"connection: close" in answer
        assert gateway.process
        assert gateway.process.wait(60) == 0
        assert len(gateway.stored()) == 1
    finally:
        gateway.kill()
        redis.stop()


def _refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


def test_with_a_certificate_the_gateway_speaks_https_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    certificate, key_file = authority.issue("gateway")
    redis = redis_with_identities(tmp_path)
    settings = {"ASSAY_GATEWAY_TLS_CERT_FILE": str(certificate), "ASSAY_GATEWAY_TLS_KEY_FILE": str(key_file)}
    gateway = Gateway(tmp_path, redis, **settings).start()
    try:
        context = ssl.create_default_context(cafile=str(authority.ca))
        answer = gateway.send("/v1/events", orjson.dumps([event()]), gateway.key(), context=context)
        assert answer.json["accepted"] == 1
        with pytest.raises(ssl.SSLCertVerificationError):
            gateway.send("/v1/events", b"[]", gateway.key(), context=ssl.create_default_context())
    finally:
        gateway.kill()
        redis.stop()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"ASSAY_GATEWAY_TLS_CERT_FILE": "/nowhere.pem"}, "gateway.tls_key_file"),
        (
            {"ASSAY_GATEWAY_TLS_CERT_FILE": "/nowhere.pem", "ASSAY_GATEWAY_TLS_KEY_FILE": "/nowhere.key"},
            "gateway.tls_cert_file",
        ),
        ({"ASSAY_GATEWAY_BODY_BYTES": "1"}, "gateway.body_bytes"),
    ],
)
def test_a_setting_that_cannot_work_stops_the_start_and_is_named(
    gateway: Gateway, tmp_path: Path, settings: dict[str, str], named: str
) -> None:
    broken = Gateway(tmp_path, gateway.redis, **settings).start(ready=False)
    assert broken.process
    assert broken.process.wait(60) == 2
    assert named in broken.log()


def test_the_log_is_json_and_says_which_key_was_used(gateway: Gateway) -> None:
    key = gateway.key()
    wrong = key[:-1] + ("a" if key[-1] != "a" else "b")
    gateway.post([event(kind="other")], key)
    gateway.post([event()], wrong)

    def logged(status: int, code: str | None) -> bool:
        whole, _, _ = gateway.log().rpartition("\n")
        lines = [json.loads(line) for line in whole.splitlines()]
        named = [line for line in lines if line.get("key_id") == key.split("_")[2]]
        return any((line.get("status"), line.get("code")) == (status, code) for line in named)

    # A request is logged after its answer.
    until(lambda: logged(400, None), "the log does not name the key of a refused batch")
    until(lambda: logged(401, "unauthorized"), "the log does not name the id of a wrong key")
    assert key.split("_")[3][:20] not in gateway.log()


def test_a_refusal_says_what_to_change(gateway: Gateway) -> None:
    key, page = gateway.key(), gateway.key(KeyKind.FEEDBACK, origins=(ORIGIN,))
    refused = {
        "Origin": gateway.send("/v1/feedback", verdict(), page),
        "a key of the kind ingest": gateway.send("/v1/events", b"[]", page),
        "/v1/feedback": gateway.send("/v1/event", b"[]", key),
        "16384 bytes that this path takes": gateway.send("/v1/feedback", b" " * (17 << 10), key),
        "gzip or deflate": gateway.send("/v1/events", b"[]", key, Content_Encoding="br"),
        "no other members": gateway.send("/v1/events", b'{"events": [], "x": 1}', key),
    }
    missing = {text: answer.body for text, answer in refused.items() if text not in answer.json["error"]["message"]}
    assert not missing
    assert refused["gzip or deflate"].headers["accept-encoding"] == "gzip, deflate"
