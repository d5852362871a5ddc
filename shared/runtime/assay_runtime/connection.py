"""Connections to Redis: address, credentials, TLS, time-outs and reconnecting in one place."""

import re
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from assay_runtime.config import secret
from assay_runtime.master_discovery import Cluster, ClusterClient, Sentinels, master_pool
from assay_schema.settings import RedisSettings
from assay_schema.topology import address_of, slot_of

#: A client. redis-py annotates every reply with the union of all protocols and modes; `connect` creates clients that
#: return bytes.
Client = Any
#: Transient errors of a Redis that is away, starting, or a replica about to be promoted: wait and retry.
PASSING_ERRORS = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.BusyLoadingError,
)
_CODE = re.compile(r"[A-Z]{2,20}")


def refusal_of(error: Exception) -> str:
    """Return the code of a refusal, such as `BUSY` or `NOPERM`. The rest of its text may quote an entry."""
    code = _CODE.match(str(error))
    return code[0] if code else type(error).__name__


#: Oldest Redis with all required features.
OLDEST_REDIS = (7, 0)


def address(settings: RedisSettings) -> str:
    """Return the full address of the first host, with credentials and TLS files.

    It contains a secret: never log it.
    """
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
    """Return the common options of redis-py and FastStream's broker. `attempts` -1 retries without limit."""
    return {
        "socket_connect_timeout": settings.connect_timeout_s,
        "socket_timeout": settings.command_timeout_s,
        "health_check_interval": 15,
        "retry": Retry(ExponentialBackoff(cap=1, base=0.05), attempts),
        "retry_on_error": list(PASSING_ERRORS),
        "max_connections": 300,
    }


def connect(settings: RedisSettings, *, attempts: int = 2) -> Client:
    """Return a client that returns bytes and gives up after `attempts` retries.

    With few retries, interactive commands fail within seconds. For a cluster, the client sends each command to the
    master of its keys' shard, so all keys of a command must be of one shard.
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
    """Return a client for each server: one, or the master of each shard of a cluster."""
    return client.shards if isinstance(client, ClusterClient) else [client]


def server_of(client: Client, shard: int) -> Client:
    """Return a client for the server of a shard."""
    return client.shards[shard] if isinstance(client, ClusterClient) else client


async def refuse_unfit(client: Client) -> None:
    """Raise `RuntimeError` if Redis is too old or evicts keys when its memory is full.

    Redis works without append-only files, but then loses events in a crash.
    """
    for one in servers(client):
        server = await one.info("server")
        version = tuple(int(part) for part in server["redis_version"].split(".")[:2])
        if version < OLDEST_REDIS:
            raise RuntimeError(
                f"Redis {server['redis_version']} is too old: Assay needs Redis 7.0 or newer, or Valkey; "
                "upgrade the server at redis.url (ASSAY_REDIS_URL)"
            )
    if problem := await evicts(client):
        raise RuntimeError(problem)


async def evicts(client: Client) -> str:
    """Describe the problem if Redis evicts streams when its memory is full; else return ''.

    It uses `INFO`, which a managed Redis answers too; `CONFIG GET` may be refused.
    """
    for one in servers(client):
        policy = (await one.info("memory"))["maxmemory_policy"]
        if policy != "noeviction":
            return (
                f"redis would evict events when its memory is full: its maxmemory-policy is {policy}; set maxmemory-policy "
                "noeviction in redis.conf, or in your provider's settings"
            )
    return ""


async def evicted_keys(client: Client) -> int:
    """Return the number of keys evicted since the start of Redis, on all servers together."""
    return sum([int((await one.info("stats"))["evicted_keys"]) for one in servers(client)])


async def appends_to_disk(client: Client) -> bool:
    """True if Redis writes an append-only file. Without it, a crash of Redis loses events."""
    return all([(await one.info("persistence"))["aof_enabled"] for one in servers(client)])
