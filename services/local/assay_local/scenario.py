"""Scenarios of the demo: what they need of the system. Pure but for the search on PATH."""

import shutil
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

#: A "day" of the drift service lasts twelve seconds here, so that a baseline is learnt and a fall is noticed within a minute. Every
#: answer is judged, and the judge's alerts may be critical although nobody calibrated it.
_SETTINGS: dict[str, dict[str, Any]] = {
    "drift": {
        "day_minutes": 0.2,
        "learning_samples": 60,
        "learning_days": 1,
        "critical_samples": 20,
        "run_length_days": 30,
        "page_uncalibrated": True,
        "silence_ratio": 0.01,
    },
    "judge": {"base_rate": 1.0},
    "notifier": {"group_wait_s": 0.5},
}


class Scenario(StrEnum):
    """What happens half-way through the demo: the retriever breaks, or the service refuses most questions."""

    REGRESSION = "regression"
    ABSTAINING = "abstaining"


def settings_of(scenario: Scenario | None, alertmanager_port: int | None) -> dict[str, dict[str, Any]]:
    """What a scenario sets, over a person's own settings."""
    if scenario is None:
        return {}
    sections = {name: dict(values) for name, values in _SETTINGS.items()}
    if alertmanager_port is not None:
        sections["notifier"]["alertmanager_urls"] = f"http://127.0.0.1:{alertmanager_port}"
    return sections


def over(base: Mapping[str, Any], changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Sections with some of their settings replaced."""
    return {name: {**base.get(name, {}), **changes.get(name, {})} for name in {**base, **changes}}


def alertmanager() -> str | None:
    """An Alertmanager on PATH, by upstream's name or Debian's."""
    return shutil.which("alertmanager") or shutil.which("prometheus-alertmanager")
