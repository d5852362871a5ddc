"""Synthetic cases against Anthropic's API on loopback: written, criticised, found again, unlike one another, within a budget."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from assay_cli.main import app
from assay_evals.dataset.file_format import read_dataset
from tests.support.anthropic_server import KEY, AnthropicServer

pytestmark = pytest.mark.xdist_group("evaluation")

Assay = Callable[..., Result]
TOPICS = ("keys", "disks", "users", "logs", "mail", "queues")
#: Documents: one whose question the critic turns down, one that the target never finds, and one that is written about as another is.
PASSAGES = [{"id": f"doc-{topic}", "text": f"All about {topic}."} for topic in TOPICS]


def reply(document: dict[str, Any]) -> str:
    topic = document["passage"]["text"].split()[-1].strip(".")
    if "claimed_ids" not in document:
        query = "how do keys rotate" if topic == "users" else f"how do {topic} rotate"
        return json.dumps(
            {"query": query, "query_type": "technical", "complexity": "simple", "expected_answer": f"{topic} rotate"}
        )
    assert set(document) == {"passage", "question", "claimed_ids"}, "the critic sees nothing else of the writer's"
    return json.dumps({"naturalness": 5, "relevance": 2 if topic == "disks" else 3, "feasibility": 4})


@pytest.fixture
def assay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assay:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "passages.ndjson").write_text("\n".join(map(json.dumps, PASSAGES)))
    (tmp_path / "finding_target.py").write_text(
        "def find(query, limit=10):\n"
        "    assert limit == 50\n"
        f"    return [f'doc-{{topic}}' for topic in {TOPICS!r} if topic != 'logs']\n"
    )

    def run(*arguments: str, code: int = 0) -> Result:
        common = ("dataset", "generate", "--from", "passages.ndjson", "--target", "finding_target:find")
        found = CliRunner().invoke(app, [*common, *arguments])
        assert found.exit_code == code, found.output
        return found

    return run


def settings(tmp_path: Path, url: str, key: str = KEY) -> str:
    path = tmp_path / "judge.toml"
    path.write_text(f'[judge]\napi_key = "{key}"\nbase_url = "{url}"\n')
    path.chmod(0o600)
    return str(path)


def test_cases_that_hold_are_kept_and_the_others_are_counted(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AnthropicServer(reply=reply) as server:
        monkeypatch.setenv("ASSAY_CONFIG", settings(tmp_path, server.url))
        made = assay()
    dataset = read_dataset(made.stdout)
    found = {case.expected_ids[0] for case in dataset.cases}
    assert found - {"doc-keys", "doc-users"} == {"doc-mail", "doc-queues"}
    assert len(found & {"doc-keys", "doc-users"}) == 1, "of two that are alike one is kept"
    assert {(case.source, (case.notes or "")[:11]) for case in dataset.cases} == {("synthetic", "Unreviewed:")}
    for words in ("1 turned down by the critic", "1 not found by the target", "1 alike to another"):
        assert words in made.stderr
    assert len(server.bodies) == 12


def test_nothing_is_spent_above_the_budget(assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer(reply=reply) as server:
        monkeypatch.setenv("ASSAY_CONFIG", settings(tmp_path, server.url))
        assert "no case was kept" in assay("--budget", "0", code=2).output
        assert server.bodies == []
        assay("--budget", "0.06", "--count", "6")
        assert 0 < server.nano <= 60_000_000


@pytest.mark.parametrize("wrong", [("--known", "none.ndjson"), ("--target", "nowhere:find"), ("--from", "none.ndjson")])
def test_nothing_is_spent_on_what_could_not_be_kept(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: tuple[str, str]
) -> None:
    with AnthropicServer(reply=reply) as server:
        monkeypatch.setenv("ASSAY_CONFIG", settings(tmp_path, server.url))
        assert wrong[0] in assay(*wrong, code=2).output
        assert server.bodies == []


def test_a_refused_key_ends_it_at_once(assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer(reply=reply) as server:
        monkeypatch.setenv("ASSAY_CONFIG", settings(tmp_path, server.url, "wrong"))
        assert "judge.api_key" in assay(code=2).output


def test_without_a_key_it_says_what_is_missing_and_what_works_without(assay: Assay) -> None:
    assert "assay dataset mine" in assay(code=2).output
