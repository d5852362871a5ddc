"""Check addresses and CA bundles, and find secrets that would cross a network unencrypted.

Pure, except for the paths of password files and CA bundles.
"""

import ipaddress
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from assay_schema.settings import RedisSettings, Settings, SettingsError, StoreSettings

#: Schemes without TLS.
_CLEAR = ("http", "redis")


def host_in_clear(url: str) -> str | None:
    """Return the host that would receive data unencrypted; None with TLS, on loopback and for a socket."""
    try:
        parts = urlsplit(url)
        hosts = [part.rpartition("@")[2] for part in parts.netloc.split(",")]
    except ValueError:
        return None  # an invalid address; the connection will report it
    if parts.scheme.lower() not in _CLEAR:
        return None
    names = (urlsplit(f"//{host}").hostname or "" for host in hosts)
    return next((name for name in names if name and not _is_loopback(name)), None)


def is_http(url: str) -> bool:
    """Return True for an address with http:// or https://, a host, and no port 0."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def trust_of(file: Path | None, setting: str) -> ssl.SSLContext:
    """Return the context that trusts a CA bundle; None: those of the system. Raises `SettingsError`."""
    try:
        return ssl.create_default_context(cafile=str(file) if file else None)
    except OSError as error:
        raise SettingsError(f"{setting}: cannot read {file}: {type(error).__name__}") from None


def passwords_in_clear(settings: Settings) -> list[str]:
    """List each password of Redis and the store that is sent to another host without TLS, with the fix."""
    warnings = []
    if (host := host_in_clear(settings.redis.url.get_secret_value())) and _redis_password(settings.redis):
        warnings.append(
            f"the password of Redis is sent to {host} unencrypted; use rediss:// in redis.url (ASSAY_REDIS_URL) and redis.tls_ca_file"
        )
    if (host := host_in_clear(settings.store.url)) and _store_password(settings.store):
        warnings.append(
            f"the password of the store is sent to {host} unencrypted; use https:// in store.url (ASSAY_STORE_URL) and store.tls_ca_file"
        )
    return warnings


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
