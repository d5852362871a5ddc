"""Connections to Redis: one place for address, credentials, TLS, time-outs and reconnecting."""

import re
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from assay_runtime.config import secret
from assay_runtime.masters import Cluster, ClusterClient, Sentinels, master_pool
from assay_schema.settings import RedisSettings
from assay_schema.topology import address_of, slot_of

#: A client. redis-py annotates every answer with the union of all protocols and modes; `connect` makes clients that answer bytes.
Client = Any
#: Errors of a Redis that is away, starting, or a replica about to be promoted: wait and try again.
PASSING_ERRORS = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.BusyLoadingError,
)
_CODE = re.compile(r"[A-Z]{2,20}")


def refusal_of(error: Exception) -> str:
    """A refusal's code, such as `BUSY` or `NOPERM`, where it has one: never the rest of its text, which may quote an entry."""
    code = _CODE.match(str(error))
    return code[0] if code else type(error).__name__


#: Oldest Redis with everything the streams need.
OLDEST_REDIS = (7, 0)


def address(settings: RedisSettings) -> str:
    """The whole address, of the first host: credentials and TLS files included. It holds a secret; never log it."""
    parts = urlsplit(address_of(settings))
    if settings.password_file:
        password = secret(settings.url, settings.password_file, "ASSAY_REDIS_PASSWORD_FILE")
        host = parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{parts.username or ''}:{quote(password, safe='')}@{host}")
    if parts.scheme == "rediss":
        files = {
            "ssl_ca_certs": settings.tls_ca_file,
            "ssl_certfile": settings.tls_cert_file,
            "ssl_keyfile": settings.tls_key_file,
        }
        parts = parts._replace(query=urlencode({name: str(path) for name, path in files.items() if path}))
    return urlunsplit(parts)


def options(settings: RedisSettings, *, attempts: int) -> dict[str, Any]:
    """What redis-py and FastStream's broker both take. `attempts` -1 retries a passing error for ever."""
    return {
        "socket_connect_timeout": settings.connect_timeout_s,
        "socket_timeout": settings.command_timeout_s,
        "health_check_interval": 15,
        "retry": Retry(ExponentialBackoff(cap=1, base=0.05), attempts),
        "retry_on_error": list(PASSING_ERRORS),
        "max_connections": 300,
    }


def connect(settings: RedisSettings, *, attempts: int = 2) -> Client:
    """A client that answers bytes. It gives up after `attempts` retries, so that commands for people fail within seconds.

    Of a cluster, one that sends each command to the master of its keys' shard: so all keys of a command must be of one shard.
    """
    given = options(settings, attempts=attempts)
    if settings.mode == "standalone":
        return Redis.from_url(address(settings), **given)
    url = address(settings)
    if settings.mode == "sentinel":
        return Redis.from_pool(master_pool(url, given, Sentinels(settings, url).master))
    cluster = Cluster(settings, url)
    pools = [master_pool(url, given, partial(cluster.master, slot_of(shard))) for shard in range(settings.shards)]
    return ClusterClient([Redis.from_pool(pool) for pool in pools])


def servers(client: Client) -> list[Client]:
    """A client of each server: one, or of a cluster the master of each shard."""
    return client.shards if isinstance(client, ClusterClient) else [client]


def server_of(client: Client, shard: int) -> Client:
    """A client of the server that has a shard."""
    return client.shards[shard] if isinstance(client, ClusterClient) else client


async def refuse_unfit(client: Client) -> None:
    """Raise `RuntimeError` when Redis is too old, or throws keys away when its memory is full.

    Without append-only files it works, but a crash of Redis loses events.
    """
    for one in servers(client):
        server = await one.info("server")
        version = tuple(int(part) for part in server["redis_version"].split(".")[:2])
        if version < OLDEST_REDIS:
            raise RuntimeError(
                f"Redis {server['redis_version']} is too old: Assay needs Redis 7.0 or newer, or Valkey; "
                "upgrade the server that redis.url (ASSAY_REDIS_URL) names"
            )
    if problem := await evicts(client):
        raise RuntimeError(problem)


async def evicts(client: Client) -> str:
    """What is wrong with a Redis that throws streams away when its memory is full; '' for one that does not.

    By `INFO`, which a managed Redis answers as well; `CONFIG GET` it may refuse.
    """
    for one in servers(client):
        policy = (await one.info("memory"))["maxmemory_policy"]
        if policy != "noeviction":
            return (
                f"redis would throw events away when its memory is full: its maxmemory-policy is {policy}; set maxmemory-policy "
                "noeviction in redis.conf, or where your provider has its settings"
            )
    return ""


async def evicted_keys(client: Client) -> int:
    """How many keys Redis threw away since it started, all servers together."""
    return sum([int((await one.info("stats"))["evicted_keys"]) for one in servers(client)])


async def appends_to_disk(client: Client) -> bool:
    """Whether Redis writes an append-only file, without which a crash of Redis loses events."""
    return all([(await one.info("persistence"))["aof_enabled"] for one in servers(client)])
