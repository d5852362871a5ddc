"""The lines of `assay up` about agents, counted in a real store."""

import asyncio
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from assay_access.identities import REDIS_IDENTITIES
from assay_access.secrets import Passwords
from assay_access.settings_files import Ports
from assay_local.preflight import RedisBinary
from assay_local.probes import Sessions, StoreQueries, sessions, tool_calls
from assay_local.processes import LocalStack
from assay_local.status_line import Status
from assay_local.supervisor import Supervisor
from assay_runtime.store import Client, connect, insert_json_rows
from tests.support.ports import free_port
from tests.support.sample_rows import Json, lines, session_part, tool_call
from tests.support.store import PASSWORD, StoreServer


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        for table in ("tool_calls", "session_parts"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        yield client


def store(client: Client, table: str, *rows: Json) -> None:
    insert_json_rows(client, f"assay_base.{table}", lines(list(rows)), len(rows))


def line(server: StoreServer, folder: Path) -> str:
    """The status, where Redis does not answer."""
    passwords = Passwords({identity.name: "x" for identity in REDIS_IDENTITIES}, {"sre": PASSWORD})
    ports = replace(Ports(*[free_port()] * len(fields(Ports))), store=server.port)
    system = LocalStack(folder, ports, RedisBinary("redis-server", (7, 0)), passwords)

    async def shown() -> str:
        admin = system.redis_client("admin")
        supervisor = Supervisor([], on_line=print, announce=print, on_change=print)
        try:
            return await Status(system, supervisor, admin).line()
        finally:
            await admin.aclose()

    return asyncio.run(shown())


def test_tool_calls_and_sessions_have_a_line_of_counts_by_status(
    migrated: StoreServer, owner: Client, tmp_path: Path
) -> None:
    calls = [tool_call(number, session_id=f"ses_{number}") for number in range(3)]
    store(owner, "tool_calls", *calls, tool_call(3, status="error", error_kind="tool_error", session_id="ses_0"))
    incomplete = session_part(1, parts=2)
    store(owner, "session_parts", session_part(0), incomplete)
    first, *rest = line(migrated, tmp_path).splitlines()
    assert "stored 6" in first
    assert rest == ["tool calls: 3 success, 1 error", "sessions: 2 answered, 1 open, 1 incomplete"]


def test_without_agents_the_status_is_one_line(migrated: StoreServer, owner: Client, tmp_path: Path) -> None:
    assert owner.query("SELECT count() FROM assay.sessions").result_rows == [(0,)]
    assert "\n" not in line(migrated, tmp_path)


def test_the_summary_counts_the_sessions_and_calls_of_its_own_run(migrated: StoreServer, owner: Client) -> None:
    store(owner, "tool_calls", tool_call(), tool_call(1, days_old=1), tool_call(2, service="other"))
    mine = [tool_call(number, session_id=session_id, service="x") for number, session_id in enumerate(("me-1", "me_1"))]
    store(owner, "tool_calls", *mine)
    store(owner, "session_parts", session_part(0, session_id="me-2"), session_part(1, session_id="other"))
    queries = StoreQueries(migrated.port, "sre", PASSWORD)
    (hour_ago,) = owner.query("SELECT toUnixTimestamp64Milli(now64(3)) - 3600000").result_rows[0]
    assert asyncio.run(tool_calls(queries, "search", hour_ago)) == {"success": 1}
    assert asyncio.run(sessions(queries, "me-")) == Sessions({"answered": 1, "open": 1})
