"""`assay` and `assay up`: what is refused before anything starts, in one line and with exit code 2."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay_local.launcher import _Stopped, _unless


def assay(directory: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_") and name != "PORT_BASE"}
    return subprocess.run(
        [sys.executable, "-m", "assay_cli", *arguments],
        cwd=directory,
        env=env | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_version_is_told(tmp_path: Path) -> None:
    answer = assay(tmp_path, "--version")
    assert (answer.returncode, answer.stdout.split()[0]) == (0, "assay")


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (("up", "--once"), {}, "--once needs --demo"),
        (("up", "--scenario", "regression"), {}, "--scenario needs --demo"),
        (("up",), {"ASSAY_REDIS_URI": "x"}, "did you mean ASSAY_REDIS_URL?"),
        (("up",), {"ASSAY_CONFIG": "missing.toml"}, "no settings file at missing.toml"),
        (("up",), {"ASSAY_NOTIFIER_WEBHOOK_URLS": "https://a.example"}, "notifier.webhook_secret"),
        (("up", "--data", "/proc/nothing"), {}, "choose another with --data"),
        (("migrate",), {"ASSAY_STORE_URL": "http://127.0.0.1:9"}, "correct store.url (ASSAY_STORE_URL)"),
    ],
    ids=[
        "once without demo",
        "scenario without demo",
        "unknown setting",
        "no settings file",
        "a webhook without a secret",
        "data directory",
        "store away",
    ],
)
def test_what_a_person_can_mend_is_one_line_without_a_traceback(
    tmp_path: Path, arguments: tuple[str, ...], environment: dict[str, str], told: str
) -> None:
    answer = assay(tmp_path, *arguments, **environment)
    assert answer.returncode == 2
    assert told in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert "Traceback" not in answer.stderr


def test_a_usage_error_is_exit_code_2(tmp_path: Path) -> None:
    assert assay(tmp_path, "up", "--port-base", "70000").returncode == 2
    assert assay(tmp_path, "nonsense").returncode == 2


async def test_it_stops_even_if_what_it_does_loses_a_cancellation() -> None:
    """As a library does in which a time-out comes at the same moment."""
    stop, lost = asyncio.Event(), 0

    async def work() -> None:
        nonlocal lost
        while True:
            try:
                stop.set()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if lost:
                    raise
                lost += 1

    with pytest.raises(_Stopped):
        await _unless(stop, work())
    assert lost == 1
