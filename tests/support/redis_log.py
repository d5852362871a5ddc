"""Run a Redis that loses the end of its log, and can then reuse the IDs of lost entries."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from assay_runtime.connection import Client, connect
from assay_schema.settings import RedisSettings
from tests.support.redis import RedisServer


class Log:
    """A Redis whose append-only file can be restored to an earlier state: the end of the log is lost, as after a power failure."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.kept = directory / "redis", directory / "kept"
        self.directory.mkdir()
        self.server = RedisServer(self.directory, "--stream-node-max-entries", "1").start()

    def keep(self) -> None:
        """Save the log's state for `lose`."""
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.directory / "appendonlydir", self.kept)

    def lose(self) -> None:
        """Lose all entries since `keep`."""
        self.server.kill()
        shutil.rmtree(self.directory / "appendonlydir")
        shutil.copytree(self.kept, self.directory / "appendonlydir")
        self.server.start()

    def restart(self) -> None:
        """Restart without losing entries."""
        self.server.kill()
        self.server.start()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Return a client as services have it."""
        client = connect(RedisSettings.model_validate({"url": self.server.url}))
        try:
            yield client
        finally:
            await client.aclose()
