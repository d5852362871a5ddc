"""From the capture stream to the audit log through scrubber, writer and auditor: refusals, losses, the policy of each event."""

import contextlib
from pathlib import Path
from typing import Any

import orjson

from assay_operations.audit_log import AuditLog
from assay_operations.audit_proofs import disclosed, whole_rows
from assay_operations.audit_verification import Result, verify
from assay_runtime.store import connect
from assay_schema.ids import new_event_id
from assay_schema.settings import AuditorSettings
from assay_schema.streams import CAPTURE, FIELD
from tests.integration.test_traces import running
from tests.support.audited import ORIGIN
from tests.support.ports import free_port
from tests.support.redis import RedisServer
from tests.support.store import PASSWORD, StoreServer
from tests.support.wait import until

WITHIN_S = 120


def call(project: str, **fields: Any) -> bytes:
    """Return a tool call with an e-mail address in its arguments, as a producer sends it."""
    payload = {
        "timestamp": "2026-01-02T03:04:05Z",
        "server_session_id": "run-1",
        "kind": "tool_call",
        "tool_name": "lookup",
        "args_summary": {"q": "ann@example.com"},
        "status": "success",
        "duration_ms": 1.5,
        "agent_name": "helper",
    }
    event = {
        "schema_version": 1,
        "event_id": new_event_id(),
        "kind": "tool_call",
        "project": project,
        "service": "search",
    }
    return orjson.dumps(event | {"occurred_at": "2026-01-02T03:04:05Z", "payload": payload | fields})


def test_a_refused_call_and_a_lost_one_are_rows_with_what_was_found_and_why(
    redis_server: RedisServer, migrated: StoreServer, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[projects.clinic.actions]\ncontact = 'refuse'\n[projects.lab.actions]\ncontact = 'label'\n")
    ports = {f"ASSAY_{name}_PORT": str(free_port()) for name in ("SCRUBBER", "WRITER", "AUDITOR")}
    common = {
        "ASSAY_REDIS_URL": redis_server.url,
        "ASSAY_STORE_URL": migrated.url,
        "ASSAY_STORE_PASSWORD": PASSWORD,
        **ports,
    }
    own = {
        "ASSAY_AUDITOR_ORIGIN": ORIGIN,
        "ASSAY_AUDITOR_DIRECTORY": str(tmp_path / "log"),
        "ASSAY_AUDITOR_CHECKPOINT_S": "0.5",
    }
    writing = common | {"ASSAY_STORE_USER": "writer", "ASSAY_SCRUBBER_POLICY_FILE": str(policy)}
    settings = AuditorSettings.model_validate({"origin": ORIGIN, "directory": tmp_path / "log"})
    with (
        contextlib.closing(connect(migrated.settings("sre").store)) as reader,
        running(("scrubber", "writer"), writing),
        running(("auditor",), common | own | {"ASSAY_STORE_USER": "auditor"}),
    ):
        with redis_server.client() as client:
            for event in (call("shop", status="refused", error_kind="pii_blocked"), call("clinic"), call("lab")):
                client.xadd(CAPTURE.key(0), {FIELD: event})
        log = AuditLog(reader, settings)
        until(lambda: len(whole_rows(log, range(9))) == 3, "the three events are not in the log", WITHIN_S)
        until(lambda: log.newest_notes(above=2), "no checkpoint covers the log", WITHIN_S)
        rows = {row["project"]: row for row in whole_rows(log, range(9)).values()}
        opened = {project: disclosed(log, row) for project, row in rows.items()}
        policies = dict(reader.query("SELECT project, policy FROM tool_calls").result_rows)
        result = Result()
        assert list(verify(log, result)) == []
    refused, lost, kept = rows["shop"], rows["clinic"], rows["lab"]
    assert (refused["status"], refused["refusal_reason"], refused["cost_class"]) == (
        "refused",
        "pii_blocked",
        "refused",
    )
    assert (refused["pii_attempted"], refused["pii_blocked"]) == (["contact"], ["contact"])
    assert (lost["kind"], lost["status"], lost["tool_name"]) == ("lost", "lost", "scrubber")
    assert (lost["pii_attempted"], lost["pii_blocked"]) == (["contact"], ["contact"])
    assert (lost["error_kind"], opened["clinic"]["error_class"]) == ("check_violation", "pii_refused")
    assert (kept["status"], kept["pii_attempted"], opened["lab"]["caller_id"]) == ("success", ["contact"], "helper")
    assert {project: opened[project]["policy"] for project in policies} == policies
    assert policies["lab"] != policies["shop"]
    assert "ann@" not in repr((rows, opened))
    assert (result.leaves, result.anchored) == (3, 3)
