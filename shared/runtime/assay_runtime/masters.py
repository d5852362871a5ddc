"""Finding the master of a shard, in a Redis Cluster or behind Sentinels, at every connect.

A connection whose server answers that it is not, or no longer, the master of what was asked ends as a broken one does. What retries after a
broken connection then connects to the master of that moment; there is no other step for a failover or a moved slot.
Redirections for a slot that is being moved (`ASK`) are not followed: its keys move one by one, and scripts need them together.
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

#: Answers of a server that is not the master of a key, or not yet, or only of some of its neighbours. MOVED is a kind of ASK here.
NOT_THE_MASTER = (AskError, ClusterDownError, TryAgainError, ReadOnlyError)
#: How the answer of a master begins that has too few replicas: it may be cut off from them, and replaced by one of them.
TOO_FEW_REPLICAS = "NOREPLICAS"
_KEY = re.compile(rf"{PREFIX}:\{{(\d+)\}}:")


class MasterConnection(Connection):
    """A connection that asks where to go before it goes there."""

    def __init__(self, *, locate: Callable[[], Awaitable[Address]], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._locate = locate

    async def connect_check_health(self, check_health: bool = True, retry_socket_connect: bool = True) -> None:  # noqa: ARG002
        """Connect to the master of this moment: the one step that every way to connect takes. Raises `ConnectionError` if there is none.

        It tries once: a second try would go to the same server. Whoever retries what failed comes here again.
        """
        if not self.is_connected:
            self.host, self.port = await self._locate()
            await super().connect_check_health(check_health, retry_socket_connect=False)

    async def read_response(self, *arguments: Any, **named: Any) -> Any:
        """An answer of the master. Any other's `NOT_THE_MASTER` ends the connection, as does `TOO_FEW_REPLICAS`."""
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
    """The same over TLS."""


def master_pool(url: str, options: dict[str, Any], locate: Callable[[], Awaitable[Address]]) -> Any:
    """Connections to the master that `locate` finds, with the credentials and TLS files of an address."""
    arguments: dict[str, Any] = {**parse_url(url)}
    kind = MasterTLSConnection if arguments.pop("connection_class", None) is SSLConnection else MasterConnection
    return ConnectionPool(connection_class=kind, locate=locate, **{**arguments, **options})


class _Asked:
    """Nodes, one of which is asked where a master is; one that does not answer is asked last the next time."""

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
                found = read(await self._ask(node, command), node[0])
            except (ConnectionError, TimeoutError) as error:
                passing, found = error, None
            if found:
                return found
            if self._nodes[0] == node:
                self._nodes.rotate(-1)
        raise ConnectionError("no node knows the master" if passing is None else f"no node answers: {passing}")

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
        """The master of a slot. Raises `ConnectionError` when no node answers or none has the slot; `RedisError` when one refuses."""

        def read(slots: Any, asked: str) -> Address | None:
            self._nodes.extend(node for node in nodes_in(slots, asked) if node not in self._nodes)
            return master_of_slot(slots, slot, asked)

        return await self._first(read, "CLUSTER", "SLOTS")


class Sentinels(_Asked):
    """Sentinels that watch one master."""

    def __init__(self, settings: RedisSettings, url: str) -> None:
        super().__init__(settings, url)
        self._name = settings.sentinel_master
        self._arguments |= {"username": settings.sentinel_user, "password": None, "db": 0}
        if settings.sentinel_password_file:
            file = settings.sentinel_password_file
            self._arguments["password"] = secret(settings.url, file, "ASSAY_REDIS_SENTINEL_PASSWORD_FILE")

    async def master(self) -> Address:
        """The master. Raises `ConnectionError` when no Sentinel answers or none knows the name."""
        return await self._first(
            lambda answer, _: master_named(answer), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name
        )


class ClusterClient(Redis):
    """Sends each command to the master of the shard that its first key names, and what has no key to that of shard 0."""

    def __init__(self, shards: list[Any]) -> None:
        super().__init__(connection_pool=shards[0].connection_pool)
        #: A client of each shard's master.
        self.shards = shards

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run one command. Raises what redis-py does."""
        return await self.shards[shard_named(args)].execute_command(*args, **options)

    def register_script(self, script: Any) -> Any:
        """A script that runs where its keys are."""
        scripts = [shard.register_script(script) for shard in self.shards]

        async def run(keys: Sequence[str], args: Sequence[Any] = ()) -> Any:
            return await scripts[shard_named(keys)](keys=keys, args=args)

        return run

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Any:
        """Commands in one round trip; `shard_hint` is any key of the shard they are all for."""
        return self.shards[shard_named([shard_hint or ""])].pipeline(transaction)

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close every connection."""
        for shard in self.shards:
            await shard.aclose(close_connection_pool)


def shard_named(arguments: Sequence[Any]) -> int:
    """The shard of the first key among a command's words; 0 if there is none. Pure."""
    for word in arguments:
        if isinstance(word, str | bytes) and (
            found := _KEY.match(word if isinstance(word, str) else word[:16].decode("latin-1"))
        ):
            return int(found[1])
    return 0
