"""Locate the Redis of a shard: hosts in an address, and replies of a cluster or a Sentinel. Pure.

Services and the SDK ask in the same way, each with its own kind of connection, whenever they connect. They therefore
find the master after a failover, and after a slot has moved.
"""

import hashlib
import re
from binascii import crc_hqx
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from assay_schema.settings import RedisSettings, SettingsError

#: Slots of a Redis Cluster.
SLOTS = 16_384
#: A host and a port.
Address = tuple[str, int]

_PORTS = {"standalone": 6379, "cluster": 6379, "sentinel": 26_379}


def slot_of(shard: int) -> int:
    """Return the slot of all keys of a shard: CRC-16 (XMODEM) of the part in braces, modulo the slots.

    See the Redis Cluster specification.
    """
    return crc_hqx(str(shard).encode(), 0) % SLOTS


def hosts(settings: RedisSettings) -> list[Address]:
    """Return every host in `redis.url`, in order. Raises `SettingsError`."""
    parts = urlsplit(settings.url.get_secret_value())
    if parts.scheme == "unix" and settings.mode == "standalone":
        return []
    places = parts.netloc.rpartition("@")[2].split(",")
    addresses = [_host(place or "localhost" * (len(places) == 1), _PORTS[settings.mode]) for place in places]
    if (
        parts.scheme not in ("redis", "rediss")
        or None in addresses
        or (len(addresses) > 1 and settings.mode == "standalone")
    ):
        raise SettingsError(
            "redis.url (or ASSAY_REDIS_URL) must look like redis://user:password@host:6379/0, rediss:// for TLS; "
            "with redis.mode cluster or sentinel it may name several: redis://user:password@host-1:6379,host-2:6379"
        )
    return [address for address in addresses if address]


def _host(place: str, default_port: int) -> Address | None:
    try:
        parts = urlsplit(f"//{place}")
        port = parts.port
    except ValueError:
        return None
    return (parts.hostname, port or default_port) if parts.hostname and port != 0 else None


def address_of(settings: RedisSettings) -> str:
    """Return `redis.url` with its first host only, for client libraries.

    It may contain a secret: never log it.
    """
    named = hosts(settings)
    text = settings.url.get_secret_value()
    netloc = urlsplit(text).netloc
    if not named or "," not in netloc:
        return text
    user, at, _ = netloc.rpartition("@")
    host, port = named[0]
    return text.replace(netloc, f"{user}{at}{f'[{host}]' if ':' in host else host}:{port}", 1)


def destination(settings: RedisSettings) -> str:
    """Return a name for the Redis at an address: equal for equal servers, and valid for a directory.

    It depends on the hosts in any order, ports, the database number, a socket's path and the Sentinels' name for the
    master. It does not depend on user, password, TLS, `redis.mode`, shards and time-outs.
    """
    parts = urlsplit(settings.url.get_secret_value())
    places = sorted({f"{host}:{port}" for host, port in hosts(settings)}) or [parts.path]
    database = _database(parts)
    master = settings.sentinel_master if settings.mode == "sentinel" else ""
    digest = hashlib.sha256("\n".join([*places, database, master]).encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", places[0]).strip("-.")[:80]
    return f"{readable}-{database}-{digest}"


def _database(parts: SplitResult) -> str:
    """Return the database number of an address, as redis-py parses it."""
    named = parse_qs(parts.query).get("db", [""])[0] or ("" if parts.scheme == "unix" else parts.path.strip("/"))
    return str(int(named)) if named.isascii() and named.isdigit() else "0"


def master_of_slot(slots: Any, slot: int, asked: str) -> Address | None:
    """Return the master of a slot in a reply to `CLUSTER SLOTS`; None if no node has it.

    A node that does not know its own name is the one that was asked.
    """
    for first, last, master, *_ in slots:
        if first <= slot <= last:
            return _text(master[0]) or asked, int(master[1])
    return None


def nodes_in(slots: Any, asked: str) -> list[Address]:
    """Return all nodes in a reply to `CLUSTER SLOTS`, masters and replicas, without duplicates."""
    return list(dict.fromkeys((_text(node[0]) or asked, int(node[1])) for _, _, *nodes in slots for node in nodes))


def master_named(answer: Any) -> Address | None:
    """Return the address in a reply to `SENTINEL GET-MASTER-ADDR-BY-NAME`; None for an unknown name."""
    return (_text(answer[0]), int(answer[1])) if answer else None


def _text(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else value or ""
    return "" if text == "?" else str(text)
