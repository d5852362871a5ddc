"""A run's budget for judging holds over every process that works on the run, and more money judges what was left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.anthropic_server import KEY, AnthropicServer
from tests.support.assay_command import Assay, assay_in

CASES = 30
BUDGET = 0.0055
TARGET = """\
def find(query, limit=10):
    context = {"id": query, "text": f"The valve {query} opens at noon."}
    return {"results": [query], "answer": context["text"], "contexts": [context], "latency_ms": 1.0}
"""
RUN = (
    "eval", "run", "--dataset", "golden.json", "--target", "budget_target:find", "--name", "night", "--progress", "none",
    "--judge", "anthropic",
)  # fmt: skip


@pytest.fixture
def api() -> Iterator[AnthropicServer]:
    with AnthropicServer() as server:
        yield server


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: AnthropicServer) -> Assay:
    (tmp_path / "budget_target.py").write_text(TARGET)
    cases = [{"id": f"q{n}", "query": f"v{n}", "expected_ids": [f"v{n}"]} for n in range(CASES)]
    (tmp_path / "golden.json").write_text(json.dumps({"version": "1", "cases": cases}))
    (tmp_path / "judge.toml").write_text(f'[judge]\napi_key = "{KEY}"\nbase_url = "{api.url}"\n')
    (tmp_path / "judge.toml").chmod(0o600)
    monkeypatch.setenv("ASSAY_CONFIG", str(tmp_path / "judge.toml"))
    return assay_in(tmp_path, monkeypatch)


def judged() -> int:
    """Cases with a verdict, each counted once."""
    lines = [json.loads(line) for line in Path("runs/night/results.ndjson").read_text().splitlines()]
    latest: dict[str, Any] = {line["case_id"]: line["metrics"] for line in lines}
    return sum(metrics.get("faithfulness") is not None for metrics in latest.values())


def test_a_run_that_goes_on_never_spends_more_than_its_budget_and_more_money_judges_the_rest(
    assay: Assay, api: AnthropicServer
) -> None:
    first = assay(*RUN, "--judge-budget", str(BUDGET))
    before, asked = judged(), api.nano
    assert 0 < before < CASES
    assert 0 < asked <= BUDGET * 1e9
    assert f"{CASES - before} skipped by the budget" in first.output
    for _ in range(2):
        again = assay(*RUN, "--judge-budget", str(BUDGET), "--resume")
        assert api.nano == asked, "the same budget is used up"
        assert f"{CASES - before} skipped by the budget" in again.output
    assay(*RUN, "--judge-budget", "1", "--resume")
    assert judged() == CASES
    assert sorted(api.billed.values()) == [1] * CASES, "no answer is paid for twice"
    shown = json.loads(assay("eval", "show", "night", "--json").stdout)
    assert shown["metrics"]["faithfulness"]["n"] == CASES
    assert shown["metrics"]["coverage"]["mean"] == 1.0


def test_a_run_that_is_killed_has_its_budget_all_the_same(assay: Assay, api: AnthropicServer, tmp_path: Path) -> None:
    api.latency_s = 0.05
    command = [str(Path(sys.executable).parent / "assay"), *RUN, "--judge-budget", str(BUDGET)]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    for kills in range(1, 4):
        resume = ["--resume"] if kills > 1 else []
        process = subprocess.Popen(
            [*command, *resume], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline, asked = time.monotonic() + 60, sum(api.billed.values())
        while process.poll() is None and sum(api.billed.values()) < asked + 2:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with (tmp_path / "runs/night/judge.ndjson").open("ab") as file:
        file.write(b'{"nano": 12')  # what a kill in the middle of a write leaves
    assay(*RUN, "--judge-budget", str(BUDGET), "--resume")
    assert 0 < api.nano <= BUDGET * 1e9
    assay(*RUN, "--judge-budget", "1", "--resume")
    assert judged() == CASES


def test_what_cannot_be_read_of_the_spending_stops_the_run(assay: Assay) -> None:
    assay(*RUN, "--judge-budget", str(BUDGET))
    for damaged in ("{]\n", "7\n", '{"nano": "x"}\n', '{"skipped": "q1"}\n'):
        Path("runs/night/judge.ndjson").write_text(damaged)
        assert "is damaged" in assay(*RUN, "--judge-budget", "1", "--resume", code=2).output
