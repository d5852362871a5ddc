"""What a service loads when it starts, which every start of a system pays for once for each service."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The packages of services; not the store, which is the engine.
SERVICES = sorted({path.parent.name for path in ROOT.glob("services/*/assay_*/app.py")} - {"assay_store"})


def test_importing_a_service_starts_nothing_and_loads_no_exporter_of_spans() -> None:
    assert "assay_writer" in SERVICES
    modules = ", ".join(f"{service}.__main__" for service in SERVICES)
    done = subprocess.run(
        [sys.executable, "-c", f"import {modules}, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    loaded = set(done.stdout.split())
    assert {f"{service}.app" for service in SERVICES} <= loaded
    assert not {"opentelemetry.exporter.otlp.proto.http.trace_exporter", "anthropic", "chdb", "scipy"} & loaded
