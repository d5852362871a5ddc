"""`assay tail --file` as people run it, beside a producer that writes the file."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from assay_capture import Capture
from assay_schema.settings import Settings
from tests.support.cli import Cli, Output, stop


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bus" / "events.jsonl"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def writing(path: Path, **settings: Any) -> Capture:
    capture = {"sink": "file", "file_path": path} | settings
    return Capture(Settings.model_validate({"capture": capture}), service="tests", enabled=True)


def called(capture: Capture, *names: str, **fields: Any) -> None:
    for name in names:
        capture.tool_call(tool_name=name, duration_ms=1, **fields)
    assert capture.flush(60)


def test_history_is_printed_for_programs_and_for_people(path: Path, cli: Cli) -> None:
    capture = writing(path)
    called(capture, "find", args_summary={"query": "for ada@example.com"})
    called(capture, "drop", status="refused", error_kind="pii_blocked")
    found = cli.run("tail", "--file", str(path), "--no-follow", "--json", role="sre")
    assert found.returncode == 0
    assert found.stdout == path.read_bytes()
    shown = cli.run("tail", "--file", str(path), "--no-follow", "--status", "refused", role="sre").stdout.decode()
    assert "find" not in shown
    assert "→ REFUSED pii_blocked in 1ms" in shown
    capture.close()


def test_live_lines_through_many_rotations_are_each_shown_once(path: Path, cli: Cli) -> None:
    tail = cli.start("tail", "--file", str(path), "--json", role="sre")
    output = Output(tail.stdout)
    capture = writing(path, file_bytes=2048, file_keep=1000)
    for number in range(300):
        called(capture, f"t{number}")
    output.wait_for(lambda lines: any(b'"t299"' in line for line in lines))
    assert [json.loads(line)["tool_name"] for line in output.lines] == [f"t{number}" for number in range(300)]
    assert len(list(path.parent.glob("events.jsonl.*"))) > 50
    tail.send_signal(signal.SIGINT)
    assert tail.wait(120) == 0
    stop(tail)
    capture.close()


def test_a_missing_file_is_no_error_without_following(path: Path, cli: Cli) -> None:
    found = cli.run("tail", "--file", str(path), "--no-follow", role="sre")
    assert (found.returncode, found.stdout) == (0, b"")
    assert found.stderr.decode() == f"{path} does not exist; see capture.sink and capture.file_path\n"


def test_head_ends_it_with_success(path: Path, cli: Cli) -> None:
    capture = writing(path)
    called(capture, *(f"t{number}" for number in range(50)))
    tail = cli.start("tail", "--file", str(path), "--json", role="sre")
    head = subprocess.run(["head", "-n", "3"], stdin=tail.stdout, capture_output=True, timeout=120)
    assert tail.stdout is not None
    tail.stdout.close()
    assert head.stdout.count(b"\n") == 3
    assert tail.wait(120) == 0
    assert tail.stderr is not None
    assert tail.stderr.read() == b""
    stop(tail)
    capture.close()


def test_auto_follows_the_file_that_the_environment_names(path: Path) -> None:
    capture = writing(path)
    called(capture, "find")
    assay = str(Path(sys.executable).parent / "assay")
    environment = {**os.environ, "ASSAY_CAPTURE_FILE_PATH": str(path)}
    found = subprocess.run(
        [assay, "tail", "--file", "auto", "--no-follow", "--json"],
        env=environment, capture_output=True, cwd=path.parent, timeout=120,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (0, path.read_bytes())
    capture.close()
