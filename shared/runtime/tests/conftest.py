"""Fixtures of the runtime's tests."""

from collections.abc import AsyncIterator

import pytest

from assay_runtime.connection import Client, connect
from assay_schema.settings import RedisSettings
from tests.support.redis import RedisServer


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Client]:
    """A client as services have it."""
    client = connect(RedisSettings.model_validate({"url": redis_server.url}))
    yield client
    await client.aclose()
