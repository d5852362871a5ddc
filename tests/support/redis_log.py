"""A Redis that loses the end of its log, and may give the ids that stood there again."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from assay_runtime.connection import Client, connect
from assay_schema.settings import RedisSettings
from tests.support.redis import RedisServer


class Log:
    """A Redis whose append-only file can be put back to what it was: the end of the log is lost, as in a loss of power."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.kept = directory / "redis", directory / "kept"
        self.directory.mkdir()
        self.server = RedisServer(self.directory, "--stream-node-max-entries", "1").start()

    def keep(self) -> None:
        """What `lose` goes back to is what the log holds now."""
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.directory / "appendonlydir", self.kept)

    def lose(self) -> None:
        """Everything since `keep`."""
        self.server.kill()
        shutil.rmtree(self.directory / "appendonlydir")
        shutil.copytree(self.kept, self.directory / "appendonlydir")
        self.server.start()

    def restart(self) -> None:
        """Nothing is lost."""
        self.server.kill()
        self.server.start()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client as services have it."""
        client = connect(RedisSettings.model_validate({"url": self.server.url}))
        try:
            yield client
        finally:
            await client.aclose()
