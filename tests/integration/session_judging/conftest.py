"""A store, a Redis, the model's API on a socket and `assay sessions judge` between them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay_runtime.store import Client, connect
from tests.support.anthropic_server import AnthropicServer
from tests.support.cli import Cli
from tests.support.redis import RedisServer
from tests.support.session_judge import SessionJudge, reply
from tests.support.store import StoreServer


@pytest.fixture
def owner(migrated: StoreServer) -> Iterator[Client]:
    with connect(migrated.settings().store) as client:
        for table in ("session_parts", "scores", "calibrations"):
            client.command(f"TRUNCATE TABLE assay_base.{table}")
        yield client


@pytest.fixture
def api() -> Iterator[AnthropicServer]:
    with AnthropicServer(reply=reply) as server:
        yield server


@pytest.fixture
def judge(
    tmp_path: Path, migrated: StoreServer, redis_server: RedisServer, api: AnthropicServer, owner: Client
) -> SessionJudge:
    return SessionJudge(Cli(tmp_path, store_url=migrated.url, redis_url=redis_server.url), api, owner, redis_server)
