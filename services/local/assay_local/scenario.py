"""Settings of the system for each scenario of the demo. Pure, except for the search on PATH."""

import shutil
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from assay_operations.clients import DEFAULT_DATA

#: A "day" of the drift service lasts twelve seconds here, so that it learns a baseline and detects a drop within a minute. Every
#: answer is judged, and alerts can be critical although the judge was not calibrated. The end of the traffic raises no alert.
_SETTINGS: dict[str, dict[str, Any]] = {
    "drift": {
        "day_minutes": 0.2,
        "learning_samples": 60,
        "learning_days": 1,
        "critical_samples": 20,
        "run_length_days": 30,
        "page_uncalibrated": True,
        "silence_ratio": 0.0,
    },
    "judge": {"base_rate": 1.0},
    "notifier": {"group_wait_s": 0.5},
}


class Scenario(StrEnum):
    """Fault half-way through the demo: the retriever breaks, or the service refuses most questions."""

    REGRESSION = "regression"
    ABSTAINING = "abstaining"


def settings_of(scenario: Scenario | None, alertmanager_port: int | None) -> dict[str, dict[str, Any]]:
    """Return the settings of a scenario, which replace the operator's."""
    if scenario is None:
        return {}
    sections = {name: dict(values) for name, values in _SETTINGS.items()}
    if alertmanager_port is not None:
        address = f"http://127.0.0.1:{alertmanager_port}"
        sections["notifier"]["alertmanager_urls"] = address
        sections["console"] = {"alertmanager_url": address}
    return sections


def directory_of(data: Path) -> dict[str, dict[str, Any]]:
    """Return the setting with which commands in notices name the data directory; empty by default."""
    return {} if data == DEFAULT_DATA else {"notifier": {"data_directory": str(data)}}


def over(base: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sections with the changed settings replaced."""
    return {name: {**base.get(name, {}), **changes.get(name, {})} for name in {**base, **changes}}


def alertmanager() -> str | None:
    """Return the path of an Alertmanager on PATH, by the name of upstream or of Debian; None without one."""
    return shutil.which("alertmanager") or shutil.which("prometheus-alertmanager")
