"""Run the `assay` command in its own folder with a small system to evaluate, for tests of the evaluation commands."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app

Assay = Callable[..., Result]
#: A system that answers from `answers.json`: answers by question; None for a missing answer.
TARGET = """\
import json
from pathlib import Path
def ask(query, limit=10):
    answer = json.loads(Path("answers.json").read_text()).get(query)
    return {"results": ["a"], "answer": answer, "contexts": [{"id": "a", "text": "a text"}], "latency_ms": 20.0}
"""


def assay_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """Run the command in a folder; `code` is the expected exit code.

    The folder's own modules can be named as targets.
    """
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))

    def run(*arguments: str, code: int = 0) -> Result:
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == code, found.output
        assert "Traceback" not in found.output
        return found

    return run


def write_cases(path: Path, cases: Iterable[Mapping[str, Any]]) -> str:
    """Write a dataset of these cases, each of which expects `a` by default. Returns its name."""
    lines = [
        {"id": f"c{place}", "query": f"q{place}", "expected_ids": ["a"]} | dict(case)
        for place, case in enumerate(cases)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path.name


def write_target(folder: Path, answers: Mapping[str, str | None], name: str) -> str:
    """Write a system with these answers as a target in its own module, because modules are loaded once."""
    (folder / f"{name}.json").write_text(json.dumps(answers))
    (folder / f"{name}.py").write_text(TARGET.replace("answers.json", str(folder / f"{name}.json")))
    return f"{name}:ask"
