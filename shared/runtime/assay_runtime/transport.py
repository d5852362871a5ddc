"""Secrets that would cross a network in clear. Pure, but for the files that hold passwords being named."""

import ipaddress
from urllib.parse import urlsplit

from assay_schema.settings import RedisSettings, Settings, StoreSettings

#: Schemes without TLS.
_CLEAR = ("http", "redis")


def host_in_clear(url: str) -> str | None:
    """The host that reads what is sent to this address, and so may everybody between; None with TLS, on loopback and for a socket."""
    try:
        parts = urlsplit(url)
        hosts = [part.rpartition("@")[2] for part in parts.netloc.split(",")]
    except ValueError:
        return None  # no address: whoever connects says so
    if parts.scheme.lower() not in _CLEAR:
        return None
    names = (urlsplit(f"//{host}").hostname or "" for host in hosts)
    return next((name for name in names if name and not _is_loopback(name)), None)


def passwords_in_clear(settings: Settings) -> list[str]:
    """A sentence for each password of Redis and the store that is sent without TLS to another host, with what mends it."""
    found = []
    if (host := host_in_clear(settings.redis.url.get_secret_value())) and _redis_password(settings.redis):
        found.append(
            f"the password of Redis goes to {host} unencrypted; use rediss:// in redis.url (ASSAY_REDIS_URL) and redis.tls_ca_file"
        )
    if (host := host_in_clear(settings.store.url)) and _store_password(settings.store):
        found.append(
            f"the password of the store goes to {host} unencrypted; use https:// in store.url (ASSAY_STORE_URL) and store.tls_ca_file"
        )
    return found


def _redis_password(redis: RedisSettings) -> bool:
    return bool(redis.password_file or urlsplit(redis.url.get_secret_value()).password)


def _store_password(store: StoreSettings) -> bool:
    return bool(store.password_file or store.password.get_secret_value())


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
