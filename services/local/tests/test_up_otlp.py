"""The instrumented part of the demo in the launcher: its environment, and its line of the summary."""

from pathlib import Path

import pytest

from assay_access.identities import REDIS_IDENTITIES, STORE_IDENTITIES
from assay_access.secrets import Passwords
from assay_access.settings_files import Ports
from assay_local.otlp_run import OtlpRun, is_complete, otlp_summary
from assay_local.preflight import RedisBinary
from assay_local.probes import Run
from assay_local.processes import LocalStack
from tests.support.rendered import shown

SENT = OtlpRun("assistant", 1400, {"answer": 350, "tool_call": 350}, {"email": 3, "jwt": 2})
STORED = Run({"answer": 350, "tool_call": 350}, families={"email": 9, "jwt": 2, "phone": 1})


def test_the_line_counts_spans_events_contexts_and_findings() -> None:
    assert is_complete(SENT, STORED, 350)
    assert shown(otlp_summary(SENT, STORED, 350)).strip() == (
        "Over OpenTelemetry: 1,400 spans sent, 700 of 700 events stored (350 answers, 350 tool calls); "
        "350 answers with contexts; 5 questions with personal data, 11 findings scrubbed"
    )


@pytest.mark.parametrize(
    ("stored", "with_contexts"),
    [
        (Run({"answer": 350, "tool_call": 349}, families=STORED.families), 350),
        (STORED, 349),
        (Run(STORED.stored, families={"email": 9, "jwt": 1}), 350),
    ],
)
def test_a_missing_event_an_answer_without_contexts_and_a_value_that_was_not_scrubbed_are_incomplete(
    stored: Run, with_contexts: int
) -> None:
    assert not is_complete(SENT, stored, with_contexts)


def test_a_run_that_failed_is_described_and_incomplete() -> None:
    failed = OtlpRun(problem="the instrumented process did not send its spans: exit code 1")
    assert not is_complete(failed, Run(), 0)
    assert "did not send its spans: exit code 1" in shown(otlp_summary(failed, Run(), 0))


@pytest.mark.parametrize("line", ["", "Traceback", "[]", "{}", "3"])
def test_a_line_that_is_no_report_is_none(line: str) -> None:
    assert OtlpRun.parse(line) is None


def test_the_process_gets_the_variables_of_opentelemetry_and_no_secret_or_proxy(tmp_path: Path) -> None:
    passwords = Passwords(
        {identity.name: "x" for identity in REDIS_IDENTITIES}, {identity.name: "x" for identity in STORE_IDENTITIES}
    )
    system = LocalStack(tmp_path, Ports.from_base(9200), RedisBinary("redis-server", (7, 0)), passwords)
    given = {
        "PATH": "/bin",
        "OTEL_SDK_DISABLED": "true",
        "https_proxy": "http://proxy",
        "ASSAY_REDIS_URL": "redis://x:y@z",
    }
    spec = system.instrumented(given, "KEY")
    assert {name: value for name, value in spec.env.items() if name != "PYTHONUNBUFFERED"} == {
        "PATH": "/bin",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9208",
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20KEY",
    }
    assert "KEY" not in " ".join(spec.argv)


@pytest.mark.parametrize("exports_spans", [False, True])
def test_the_exporter_runs_only_if_a_backend_is_set(tmp_path: Path, exports_spans: bool) -> None:
    passwords = Passwords(
        {identity.name: "x" for identity in REDIS_IDENTITIES}, {identity.name: "x" for identity in STORE_IDENTITIES}
    )
    redis = RedisBinary("redis-server", (7, 0))
    system = LocalStack(tmp_path, Ports.from_base(9200), redis, passwords, exports_spans=exports_spans)
    *_, services = system.services({}, None)  # type: ignore[arg-type]  # nothing is started
    assert ("otlp_exporter" in {spec.name for spec in services}) is exports_spans
    assert ("otlp_exporter" in system.ports_used) is exports_spans
