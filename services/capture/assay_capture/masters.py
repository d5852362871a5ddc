"""Finds the master of a shard, in a Redis Cluster or behind Sentinels.

The lookup is repeated for every connection, so a failover needs no other step.
"""

from collections import deque
from pathlib import Path
from typing import Any

from assay_schema.settings import RedisSettings
from assay_schema.topology import Address, hosts, master_named, master_of_slot, nodes_in, slot_of


class PasswordFileError(Exception):
    """A file with a password cannot be read. The message names the setting, the file and the reason."""


def password_in(file: Path, setting: str) -> str:
    """Read a password at each connection, so that it may be rotated or created while the program runs.

    Raises `PasswordFileError`.
    """
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__
        raise PasswordFileError(f"{setting} names {file}: {reason}") from None


class Masters:
    """Asks the nodes in `redis.url`, and the nodes they name.

    Blocks up to `redis.connect_timeout_s` for each node; not thread-safe.
    """

    def __init__(self, settings: RedisSettings, connection_class: Any, arguments: dict[str, Any]) -> None:
        self._settings = settings
        self._connection_class = connection_class
        self._arguments = arguments | {"socket_timeout": settings.connect_timeout_s}
        self._nodes: deque[Address] = deque(hosts(settings))

    def of(self, shard: int, password: str | None) -> Address:
        """Return the master of a shard.

        Raises redis-py's `ConnectionError` if no node knows it, and the error of a node that refuses.
        """
        from redis.exceptions import ConnectionError as RedisConnectionError
        from redis.exceptions import TimeoutError as RedisTimeoutError

        problem = "no node knows the master"
        for node in list(self._nodes):
            try:
                master = self._asked(node, shard, password)
            except (RedisConnectionError, RedisTimeoutError) as error:
                problem, master = f"no node answered: {error}", None
            if master:
                return master
            self._nodes.rotate(-1)
        raise RedisConnectionError(problem)

    def _asked(self, node: Address, shard: int, password: str | None) -> Address | None:
        credentials = {"password": password} if self._settings.mode == "cluster" else self._sentinel_credentials()
        connection = self._connection_class(**{**self._arguments, **credentials, "host": node[0], "port": node[1]})
        try:
            connection.connect()
            if self._settings.mode == "sentinel":
                connection.send_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._settings.sentinel_master)
                return master_named(connection.read_response())
            connection.send_command("CLUSTER", "SLOTS")
            slots = connection.read_response()
        finally:
            connection.disconnect()
        self._nodes.extend(other for other in nodes_in(slots, node[0]) if other not in self._nodes)
        return master_of_slot(slots, slot_of(shard), node[0])

    def _sentinel_credentials(self) -> dict[str, Any]:
        file = self._settings.sentinel_password_file
        password = password_in(file, "redis.sentinel_password_file") if file else None
        return {"username": self._settings.sentinel_user, "password": password, "db": 0}
