"""Connections to Redis: one place for address, credentials, TLS, time-outs and reconnecting."""

from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from assay_runtime.config import secret
from assay_schema.settings import RedisSettings, SettingsError

#: A client. redis-py annotates every answer with the union of all protocols and modes; `connect` makes clients that answer bytes.
Client = Any
#: Errors of a Redis that is away, starting, or a replica about to be promoted: wait and try again.
PASSING_ERRORS = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.BusyLoadingError,
)
#: Oldest Redis with everything the streams need.
OLDEST_REDIS = (6, 2)


def address(settings: RedisSettings) -> str:
    """The whole address: credentials and TLS files included. It holds a secret; never log it."""
    parts = urlsplit(settings.url.get_secret_value())
    try:
        known = parts.scheme in ("redis", "rediss", "unix") and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known:
        raise SettingsError(
            "redis.url (or ASSAY_REDIS_URL) must look like redis://user:password@host:6379/0, rediss:// for TLS"
        )
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
    """A client that answers bytes. It gives up after `attempts` retries, so that commands for people fail within seconds."""
    return Redis.from_url(address(settings), **options(settings, attempts=attempts))


async def refuse_unfit(client: Client) -> None:
    """Raise `RuntimeError` when Redis is too old. Without append-only files it works, but a crash of Redis loses events."""
    server = await client.info("server")
    version = tuple(int(part) for part in server["redis_version"].split(".")[:2])
    if version < OLDEST_REDIS:
        raise RuntimeError(f"Redis {server['redis_version']} is too old: Assay needs 6.2 or newer")


async def appends_to_disk(client: Client) -> bool:
    """Whether Redis writes an append-only file, without which a crash of Redis loses events."""
    return bool((await client.info("persistence"))["aof_enabled"])
