"""Run the demo's producer as `assay up --demo` does, in its own process."""

import json
import os
import re
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


def planted_in(log: Path) -> list[str]:
    """The personal data that users of the agent wrote: e-mail address, card and connection URL of each planted session."""
    documents = map(json.loads, log.read_text().splitlines())
    texts = (each["request"]["contents"][0]["parts"][0]["text"] for each in documents)
    found = (re.match(r"I am (\S+), my card is ([\d -]+) and our database is (\S+)\. ", text) for text in texts)
    return [value for match in found if match for value in match.groups()]
