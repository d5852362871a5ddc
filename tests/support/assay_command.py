"""The `assay` command in a folder of its own, and a small system to evaluate: what tests of the evaluation commands begin with."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app

Assay = Callable[..., Result]
#: A system that answers from `answers.json`: its answer by question, one that is missing is None.
TARGET = """\
import json
from pathlib import Path
def ask(query, limit=10):
    answer = json.loads(Path("answers.json").read_text()).get(query)
    return {"results": ["a"], "answer": answer, "contexts": [{"id": "a", "text": "a text"}], "latency_ms": 20.0}
"""


def assay_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    """The command in a folder; `code` is the exit code that is expected. The folder's own modules can be named as targets."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))

    def run(*arguments: str, code: int = 0) -> Result:
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == code, found.output
        assert "Traceback" not in found.output
        return found

    return run


def write_cases(path: Path, cases: Iterable[Mapping[str, Any]]) -> str:
    """A dataset of these cases, each of which expects `a` unless it says otherwise. Returns its name."""
    lines = [
        {"id": f"c{place}", "query": f"q{place}", "expected_ids": ["a"]} | dict(case)
        for place, case in enumerate(cases)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path.name


def write_target(folder: Path, answers: Mapping[str, str | None], name: str) -> str:
    """A system with these answers, as a target of a module of its own, since modules are loaded once."""
    (folder / f"{name}.json").write_text(json.dumps(answers))
    (folder / f"{name}.py").write_text(TARGET.replace("answers.json", str(folder / f"{name}.json")))
    return f"{name}:ask"
