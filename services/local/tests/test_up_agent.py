"""The demo's agent in the launcher: the import of its log, and its part of the summary."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from assay_access.identities import REDIS_IDENTITIES, STORE_IDENTITIES
from assay_access.secrets import Passwords
from assay_access.settings_files import Ports
from assay_local.agent_run import AgentRun, Imported, agent_summary, import_log
from assay_local.demo_report import Report
from assay_local.preflight import RedisBinary
from assay_local.probes import Sessions
from assay_local.processes import LocalStack
from assay_local.supervisor import Spec, Supervisor
from tests.support.ports import free_port
from tests.support.rendered import shown

AGENT = AgentRun("demo-1-", {"success": 1200, "error": 3}, {"answered": 7, "open": 1})
CALLS = {"success": 1200, "error": 3}
SESSIONS = Sessions({"answered": 7, "open": 1})
DONE = Imported(True, "7 sessions found (7 stdlib-agent): 7 new or changed, 0 already stored")


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    made = Supervisor([], on_line=lambda *_: None, announce=lambda _: None, on_change=lambda _: None)
    yield made
    await made.stop()


def stack(data: Path) -> LocalStack:
    passwords = Passwords(
        {identity.name: "x" for identity in REDIS_IDENTITIES}, {identity.name: "x" for identity in STORE_IDENTITIES}
    )
    return LocalStack(data, Ports.from_base(free_port()), RedisBinary("redis-server", (7, 0)), passwords)


def test_the_summary_has_calls_and_sessions_by_status() -> None:
    text = shown(agent_summary(AGENT, CALLS, SESSIONS, DONE))
    for row in (
        "tool calls: success     │        1,200 │  1,200",
        "tool calls: error       │            3 │      3",
        "sessions: answered      │            7 │      7",
        "sessions: open          │            1 │      1",
        f"import  {DONE.outcome}",
    ):
        assert row in text
    assert "incomplete" not in text


def test_a_status_that_only_one_side_has_is_shown_and_so_are_incomplete_sessions() -> None:
    text = shown(agent_summary(AGENT, {"success": 1200, "refused": 3}, Sessions({"answered": 7}, 2), DONE))
    for row in (
        "tool calls: error       │            3 │      0",
        "tool calls: refused     │            0 │      3",
        "sessions: open          │            1 │      0",
        "incomplete  2 sessions have parts that are not stored",
    ):
        assert row in text


def test_the_demos_report_has_the_agent_or_none() -> None:
    line = '{"captured": {}, "planted": {}, "questions": 0, "seconds": 1.0, "agent": %s}'
    without = Report.parse(line % "null")
    assert without
    assert without.agent is None
    found = Report.parse(line % '{"prefix": "demo-1-", "tool_calls": {"error": 3}, "sessions": {}}')
    assert found
    assert found.agent == AgentRun("demo-1-", {"error": 3}, {})


async def test_an_import_that_fails_is_described_and_raises_nothing(tmp_path: Path, supervisor: Supervisor) -> None:
    """There is a log, but neither Redis nor a store."""
    system = stack(tmp_path)
    system.agent_log.parent.mkdir()
    system.agent_log.write_text(
        '{"session_id": "s", "messages": [{"role": "user", "content": "mail ada@example.com"}]}\n'
    )
    imported = await import_log(system, supervisor, os.environ)
    outcome = imported.outcome
    assert not imported.succeeded
    assert outcome.startswith("failed: assay sessions import --from jsonl sessions.jsonl: exit code 2; its last lines:")
    assert "secrets" in outcome, "it names what is missing"
    assert "ada@example.com" not in outcome
    assert "failed: assay sessions import" in shown(agent_summary(AGENT, CALLS, SESSIONS, imported))


async def test_an_import_that_cannot_be_started_is_described(
    tmp_path: Path, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "gone"))
    imported = await import_log(stack(tmp_path), supervisor, os.environ)
    assert not imported.succeeded
    assert imported.outcome.startswith("failed: cannot start import")


async def test_the_import_runs_where_no_settings_file_points_it_elsewhere(
    tmp_path: Path, supervisor: Supervisor
) -> None:
    spec = stack(tmp_path).session_import(
        os.environ | {"ASSAY_CONFIG": "x.toml", "ASSAY_REDIS_URL": "redis://elsewhere"}
    )
    assert not {"ASSAY_CONFIG", "ASSAY_REDIS_URL"} & spec.env.keys()
    shows = Spec("where", ("pwd",), os.environ, once=True, stdout_is_log=False, directory=spec.directory)
    assert (await supervisor.run(shows)).answer == str(tmp_path.resolve())  # noqa: ASYNC240
