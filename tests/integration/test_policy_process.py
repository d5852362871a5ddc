"""A scrubber's process with a policy file: refused at the start, changed while it runs, spoilt while it runs."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import orjson

from assay_operations.doctor.policy import examine
from assay_schema.ids import new_event_id
from assay_schema.settings import ScrubberSettings, Settings
from assay_schema.streams import CAPTURE, EVENTS, FAILURES, FIELD, scrubbed_low_watermark_key
from tests.integration.test_service_process import refusal, started, until_status
from tests.support.ports import free_port
from tests.support.redis import RedisServer
from tests.support.wait import until


def event(project: str) -> bytes:
    return orjson.dumps(
        {
            "schema_version": 1,
            "event_id": new_event_id(),
            "kind": "retrieval",
            "project": project,
            "service": "search",
            "occurred_at": "2026-01-02T03:04:05Z",
            "payload": {
                "tool_name": "query",
                "query": "to ann@example.com",
                "retrieved_slugs": [],
                "retrieved_chunk_ids": [],
                "latency_ms": 1,
            },
        }
    )


def write(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def doctors(settings: Settings, data: Path) -> list[tuple[str, str]]:
    return [(found.status, found.summary) for found in examine(settings, data)]


def test_a_policy_that_cannot_be_used_stops_the_start_and_lists_what_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("[actions]\ncredential = 'allow'\n")
    said = refusal(ASSAY_SCRUBBER_POLICY_FILE=str(path), ASSAY_SCRUBBER_PORT=str(free_port()))
    assert "policy.toml: line 2: category credential can never be allowed" in said
    path.write_text("[families]\nemail = 'hash'\n")
    said = refusal(ASSAY_SCRUBBER_POLICY_FILE=str(path), ASSAY_SCRUBBER_PORT=str(free_port()))
    assert "ASSAY_SCRUBBER_HASH_KEY_FILE" in said


def test_a_changed_policy_is_followed_without_a_restart_and_a_spoilt_one_only_noted(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    path, port = tmp_path / "policy.toml", free_port()
    write(path, "[projects.lab.actions]\ncontact = 'label'\n")
    with (
        redis_server.client() as client,
        started(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(port), ASSAY_SCRUBBER_POLICY_FILE=str(path)),
    ):
        address = f"http://127.0.0.1:{port}"

        def documents(key: str) -> list[dict[str, Any]]:
            return [orjson.loads(fields[FIELD.encode()]) for _, fields in client.xrange(key)]

        def get(place: str) -> str:
            return urllib.request.urlopen(f"{address}{place}", timeout=60).read().decode()

        until_status(port, "/readyz", 200)
        settings = Settings(scrubber=ScrubberSettings(port=port, policy_file=path))
        assert doctors(settings, tmp_path) == [("ok", f"{path} is in use")]
        client.set(scrubbed_low_watermark_key(), 0)  # as a writer does
        for project in ("lab", "shop"):
            client.xadd(CAPTURE.key(0), {FIELD: event(project)})
        until(lambda: len(documents(EVENTS.key(0))) == 2, "the events were not scrubbed")
        lab, shop = documents(EVENTS.key(0))
        assert (lab["payload"]["query"], shop["payload"]["query"]) == ("to [EMAIL]", "to [REDACTED]")
        assert lab["policy"] != shop["policy"]

        write(path, "[projects.lab.actions]\ncontact = 'refuse'\n")
        until(lambda: 'assay_policy_loads_total{outcome="loaded"} 1.0' in get("/metrics"), "the policy was not read")
        client.xadd(CAPTURE.key(0), {FIELD: event("lab")})
        [failure] = until(lambda: documents(FAILURES.key(0)), "the event was not refused")
        assert (failure["error_class"], failure["pii_attempted"], failure["pii_blocked"]) == (
            "pii_refused",
            ["contact"],
            ["contact"],
        )

        write(path, "[projects.lab.actions]\ncontact = 'forget'\n")
        until(lambda: 'assay_policy_current{source="file"} 0.0' in get("/metrics"), "the bad policy was not noticed")
        answer = json.loads(get("/readyz"))
        assert (answer["status"], answer["problems"]) == ("ok", [])
        assert "unknown action 'forget'; valid: allow, hash, label, redact, refuse" in answer["notes"][0]
        [(status, summary)] = doctors(settings, tmp_path)
        assert (status, summary) == ("warn", answer["notes"][0])
        client.xadd(CAPTURE.key(0), {FIELD: event("lab")})
        until(lambda: len(documents(FAILURES.key(0))) == 2, "the earlier policy was not kept")


def test_a_policy_that_the_running_scrubber_was_not_started_with_is_a_warning_of_doctor(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    path, port = tmp_path / "policy.toml", free_port()
    path.write_text("[actions]\ncontact = 'label'\n")
    with started(ASSAY_REDIS_URL=redis_server.url, ASSAY_SCRUBBER_PORT=str(port)):
        until_status(port, "/readyz", 200)
        settings = Settings(scrubber=ScrubberSettings(port=port, policy_file=path))
        assert doctors(settings, tmp_path) == [
            ("warn", f"{path} is not in use: the running scrubber has the default policy")
        ]
        [(status, summary)] = doctors(Settings(scrubber=ScrubberSettings(port=port)), tmp_path)
        assert (status, summary) == (
            "warn",
            f"{path} is not in use: no setting names it, so the default policy applies",
        )
