"""Finds the master of a shard, in a Redis Cluster or behind Sentinels, at every connect.

If a server answers that it is not, or no longer, the master, the connection ends like a broken one. The retry then
connects to the current master; there is no other step for a failover or a moved slot. Redirections for a slot that is
being moved (`ASK`) are not followed: its keys move one by one, and scripts need them together.
"""

import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.asyncio import Connection, ConnectionPool, Redis, SSLConnection
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    ClusterDownError,
    ConnectionError,  # noqa: A004  # redis-py's own
    ReadOnlyError,
    ResponseError,
    TimeoutError,  # noqa: A004
    TryAgainError,
)

from assay_runtime.config import secret
from assay_schema.settings import RedisSettings
from assay_schema.streams import PREFIX
from assay_schema.topology import Address, hosts, master_named, master_of_slot, nodes_in

#: Answers of a server that is not the master of a key, or not yet, or only of some keys of its slot. MOVED is a
#: subclass of ASK here.
NOT_THE_MASTER = (AskError, ClusterDownError, TryAgainError, ReadOnlyError)
#: Prefix of a master's answer if it has too few replicas: it may be cut off from them, and replaced by one of them.
TOO_FEW_REPLICAS = "NOREPLICAS"
_KEY = re.compile(rf"{PREFIX}:\{{(\d+)\}}:")


class MasterConnection(Connection):
    """A connection that looks up the master before it connects."""

    def __init__(self, *, locate: Callable[[], Awaitable[Address]], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._locate = locate

    async def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> None:  # noqa: ARG002
        """Connect to the current master; every connect uses this step.

        Raises `ConnectionError` if there is none.

        It makes one attempt: a second one would go to the same server. The caller's retry comes back here.
        """
        if not self.is_connected:
            self.host, self.port = await self._locate()
            await super().connect_check_health(check_health, retry_socket_connect=False)

    async def read_response(self, *arguments: Any, **named: Any) -> Any:
        """Read a reply of the master. `NOT_THE_MASTER` and `TOO_FEW_REPLICAS` end the connection."""
        try:
            return await super().read_response(*arguments, **named)
        except NOT_THE_MASTER as error:
            why = type(error).__name__
        except ResponseError as error:
            if not str(error).startswith(TOO_FEW_REPLICAS):
                raise
            why = TOO_FEW_REPLICAS
        await self.disconnect()
        raise ConnectionError(f"{self.host}:{self.port} is not the master ({why})")


class MasterTLSConnection(MasterConnection, SSLConnection):
    """A connection to the master over TLS."""


def master_pool(url: str, options: dict[str, Any], locate: Callable[[], Awaitable[Address]]) -> Any:
    """Return a pool of connections to the master found by `locate`, with an address's credentials."""
    arguments: dict[str, Any] = {**parse_url(url)}
    kind = MasterTLSConnection if arguments.pop("connection_class", None) is SSLConnection else MasterConnection
    return ConnectionPool(connection_class=kind, locate=locate, **{**arguments, **options})


class _Asked:
    """Nodes that know where a master is; one that does not answer is asked last the next time."""

    def __init__(self, settings: RedisSettings, url: str) -> None:
        arguments: dict[str, Any] = {**parse_url(url)}
        self._kind = arguments.pop("connection_class", Connection)
        patience = {"socket_timeout": settings.connect_timeout_s, "socket_connect_timeout": settings.connect_timeout_s}
        self._arguments = arguments | patience | {"retry": Retry(NoBackoff(), 0), "protocol": 2}
        self._nodes: deque[Address] = deque(hosts(settings))

    async def _first(self, read: Callable[[Any, str], Address | None], *command: str) -> Address:
        passing: Exception | None = None
        for node in list(self._nodes):
            try:
                address = read(await self._ask(node, command), node[0])
            except (ConnectionError, TimeoutError) as error:
                passing, address = error, None
            if address:
                return address
            if self._nodes[0] == node:
                self._nodes.rotate(-1)
        raise ConnectionError("no node knows the master" if passing is None else f"no node answered: {passing}")

    async def _ask(self, node: Address, command: Sequence[str]) -> Any:
        connection = self._kind(**{**self._arguments, "host": node[0], "port": node[1]})
        try:
            await connection.connect()
            await connection.send_command(*command)
            return await connection.read_response()
        finally:
            await connection.disconnect(nowait=True)


class Cluster(_Asked):
    """The nodes of a Redis Cluster: those in the settings, and those they named."""

    async def master(self, slot: int) -> Address:
        """Return the master of a slot.

        Raises `ConnectionError` if no node answers or none has the slot; `RedisError` if one refuses.
        """

        def read(slots: Any, asked: str) -> Address | None:
            self._nodes.extend(node for node in nodes_in(slots, asked) if node not in self._nodes)
            return master_of_slot(slots, slot, asked)

        return await self._first(read, "CLUSTER", "SLOTS")


class Sentinels(_Asked):
    """Sentinels that monitor one master."""

    def __init__(self, settings: RedisSettings, url: str) -> None:
        super().__init__(settings, url)
        self._name = settings.sentinel_master
        self._arguments |= {"username": settings.sentinel_user, "password": None, "db": 0}
        if settings.sentinel_password_file:
            file = settings.sentinel_password_file
            self._arguments["password"] = secret(settings.url, file, "ASSAY_REDIS_SENTINEL_PASSWORD_FILE")

    async def master(self) -> Address:
        """Return the master. Raises `ConnectionError` if no Sentinel answers or none knows the name."""
        return await self._first(
            lambda answer, _: master_named(answer), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name
        )


class ClusterClient(Redis):
    """Sends each command to the master of its first key's shard; without keys, of shard 0."""

    def __init__(self, shards: list[Any]) -> None:
        super().__init__(connection_pool=shards[0].connection_pool)
        #: A client of each shard's master.
        self.shards = shards

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run one command. Raises redis-py's errors."""
        return await self.shards[shard_named(args)].execute_command(*args, **options)

    def register_script(self, script: Any) -> Any:
        """Register a script that runs on the server of its keys."""
        scripts = [shard.register_script(script) for shard in self.shards]

        async def run(keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
            return await scripts[shard_named(keys)](keys=keys, args=args)

        return run

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        """Return a pipeline; `shard_hint` is any key of the shard of all its commands."""
        return self.shards[shard_named([shard_hint or ""])].pipeline(transaction)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close every connection."""
        for shard in self.shards:
            await shard.aclose(close_connection_pool)


def shard_named(arguments: Sequence[Any]) -> int:
    """Return the shard of the first key in a command; 0 without a key. Pure."""
    for word in arguments:
        if isinstance(word, str | bytes) and (
            found := _KEY.match(word if isinstance(word, str) else word[:16].decode("latin-1"))
        ):
            return int(found[1])
    return 0
