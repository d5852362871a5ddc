"""Run the demo's producer as `assay up --demo` does, in its own process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("deploy/demo", "services/capture", "shared/schema")


def run_demo(folder: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it in a folder, with no other settings than `environment`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    path = os.pathsep.join(str(REPOSITORY / package) for package in PACKAGES)
    return subprocess.run(
        [sys.executable, "-m", "assay_demo", *arguments],
        cwd=folder,
        env={**clean, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=200,
    )
