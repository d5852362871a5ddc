"""Labels of metrics."""

import ast
from pathlib import Path

import pytest

from assay_runtime import metrics

ROOT = Path(__file__).parents[3]


def test_projects_that_producers_make_up_cost_a_bounded_number_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_projects", set())
    seen = {metrics.project_label(f"project-{number}") for number in range(10 * metrics.PROJECTS_MOST)}
    assert len(seen) == metrics.PROJECTS_MOST + 1
    assert metrics.project_label("project-0") == "project-0", "who had a label keeps it"
    assert len(metrics.labelled_projects()) == metrics.PROJECTS_MOST


def test_no_metric_has_a_project_as_a_label_that_is_not_bounded() -> None:
    found = []
    for path in [*ROOT.glob("services/*/assay_*/*.py"), *ROOT.glob("shared/*/assay_*/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr="labels"), args=[first, *_]):
                    given = ast.unparse(first)
                    # A bare `project` is one of `labelled_projects`.
                    if "project" in given and given != "project" and not given.startswith("metrics.project_label("):
                        found.append(f"{path.name}:{node.lineno}: {given}")
    assert found == []
