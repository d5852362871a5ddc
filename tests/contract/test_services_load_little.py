"""What a service loads when it starts, which every start of a system pays for once for each service."""

import subprocess
import sys

SERVICES = ("assembler", "drift", "gateway", "judge", "notifier", "scrubber", "writer")


def test_importing_a_service_starts_nothing_and_loads_no_exporter_of_spans() -> None:
    modules = ", ".join(f"assay_{service}.__main__" for service in SERVICES)
    done = subprocess.run(
        [sys.executable, "-c", f"import {modules}, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    loaded = set(done.stdout.split())
    assert {f"assay_{service}.app" for service in SERVICES} <= loaded
    assert not {"opentelemetry.exporter.otlp.proto.http.trace_exporter", "anthropic", "chdb", "scipy"} & loaded
