"""Who may do what. Pure: the Redis users, the store's users and each identity's settings follow from the one table below.

An identity holds only what its work needs: a stolen producer's password reads nothing, a stolen scrubber's password shows nothing stored.

In Redis each grant pairs commands with keys. Redis keeps the pairs apart as selectors, and checks scripts' inner commands against them
too; read and write key permissions would not do, because `EVALSHA` needs both on every key it names. Two limits of Redis itself: `XADD`
cannot be had without its trimming options, and a consumer group's reader may also read the stream without the group.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from assay_schema.settings import Settings
from assay_schema.streams import (
    ALERTS,
    CAPTURE,
    DEAD,
    EVENTS,
    FAILURES,
    PREFIX,
    SCORES,
    acknowledged_key,
    alert_inbox_key,
    calibration_key,
    drift_key,
    drift_seen_key,
    episodes_key,
    low_key,
    notices_key,
    numbered_key,
    overflow_key,
    watermark_key,
)

#: Key patterns of shards 0 to 15, the most a stream can have. No `*` but for the judge: an identity cannot make up keys of its own.
_SHARDS = ("{[0-9]}", "{1[0-5]}")
#: What a client says when it connects.
#: `CLUSTER SLOTS` says which server of a Redis Cluster has a shard.
_CONNECT = ("auth", "hello", "ping", "client|id", "client|getname", "client|setname", "cluster|slots")
#: Known to the server since 7.2. Redis 7.0 refuses to load a line that names it.
_CONNECT_SINCE_7_2 = ("client|setinfo",)
_READ_AS_GROUP = (
    "xreadgroup", "xack", "xlen", "xrange", "xrevrange", "xpending", "xclaim", "xautoclaim",
    "xinfo|stream", "xinfo|groups", "xinfo|consumers", "xgroup|create", "xgroup|createconsumer", "xgroup|delconsumer", "xgroup|setid",
)  # fmt: skip
#: For the service that a stream is emptied by: the others only read it.
_READ_AND_EMPTY = (*_READ_AS_GROUP, "xdel", "xtrim")
_SERVICE = ("time", "info", "script|load", "script|exists")
_RUN_SCRIPTS = ("eval", "evalsha")
_OF_JUDGE = (
    "get", "set", "del", "incrby", "decrby", "pexpire", "hget", "hset", "hmget", "hgetall", "hdel", "hincrby", "hlen", "hscan",
    "zadd", "zcard", "zrem", "zscore", "zrange", "zrangebyscore",
)  # fmt: skip
#: Not `XINFO STREAM`: it shows the first and last entry.
_WATCH = ("xlen", "xpending", "xinfo|groups", "xinfo|consumers")

#: The default user is off and has no password, so nobody can be it; yet it may do everything. Redis replays its append-only file
#: as this user and asks for its rights inside MULTI and EXEC, which is how a script's effects are written: without rights all that the
#: scripts had moved would be missing after a restart, with no error but lines in Redis's own log.
_NOBODY = "user default off resetpass ~* &* +@all"

_capture, _events, _failures, _dead, _scores = (stream.key() for stream in (CAPTURE, EVENTS, FAILURES, DEAD, SCORES))
_alerts, _alert_inbox = ALERTS.key(), alert_inbox_key()
_low, _watermark, _overflow, _numbered = low_key(), watermark_key(), overflow_key(), numbered_key()
_notices, _episodes = notices_key(), episodes_key()
_drift, _drift_seen, _acknowledged, _calibration = drift_key(), drift_seen_key(), acknowledged_key(), calibration_key()
#: The judge's own: spend, records of its calls, traffic. Their names hold projects and events.
_judge = f"{PREFIX}:{{0}}:judge:*"


@dataclass(frozen=True)
class Grant:
    """These commands on these keys (named as of shard 0). Without keys: commands that touch none."""

    commands: tuple[str, ...]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Identity:
    """One holder of credentials. No grants: no user in Redis. No `store_role`: no user in the store."""

    name: str
    purpose: str
    grants: tuple[Grant, ...] = ()
    store_role: str | None = None


_watch = Grant(_WATCH, (_capture, _events, _failures, _dead, _scores, _alerts))
_owner = (Grant(("time", "info")), _watch, Grant(("memory|usage",), (_dead,)), Grant(("get",), (_low, _watermark)))

IDENTITIES = (
    Identity(
        "producer",
        "Hands events in; reads nothing.",
        (Grant(("wait",)), Grant(("xadd", "xlen", "memory|usage"), (_capture,))),
    ),
    Identity(
        "scrubber",
        "Reads what producers handed in, passes scrubbed events and failures on.",
        (
            Grant(_SERVICE),
            Grant((*_READ_AND_EMPTY, "xsetid", "del"), (_capture,)),
            Grant(("xadd", "xlen", "xinfo|groups", "memory|usage"), (_events, _failures)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(("get", "set"), (_low, _overflow, _numbered)),
            Grant(("get",), (_watermark,)),
            Grant(_RUN_SCRIPTS, (_capture, _events, _failures, _dead, _low, _overflow, _numbered)),
        ),
    ),
    Identity(
        "writer",
        "Reads scrubbed events, failures, scores and alerts, writes them to the store.",
        (
            Grant((*_SERVICE, "wait")),
            Grant(_READ_AND_EMPTY, (_events, _failures, _scores, _alerts)),
            Grant(("xadd",), (_failures, _alerts)),
            Grant(("lindex", "lpop"), (_alert_inbox,)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(("get", "set"), (_low, _watermark)),
            Grant(_RUN_SCRIPTS, (_events, _failures, _dead, _scores, _alerts, _alert_inbox, _low, _watermark)),
        ),
        store_role="writer",
    ),
    Identity(
        "judge",
        "Reads scrubbed events, publishes scores of answers; sees no raw event and no row.",
        (
            Grant(_SERVICE),
            Grant(_READ_AS_GROUP, (_events,)),
            Grant(("xadd",), (_scores, _alerts, _failures)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(_OF_JUDGE, (_judge,)),
            Grant(("hset",), (_calibration,)),
            Grant(_RUN_SCRIPTS, (_events, _scores, _alerts, _dead, _failures, _judge)),
        ),
    ),
    Identity(
        "drift",
        "Reads scrubbed events, scores and failures, publishes alerts; sees no raw event and no row.",
        (
            Grant(_SERVICE),
            Grant(_READ_AS_GROUP, (_events, _scores, _failures)),
            Grant(("xlen", "xinfo|groups"), (_capture,)),
            Grant(("get",), (_low, _watermark)),
            Grant(("xadd",), (_alerts, _failures)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(("hget", "hset", "hmget", "hgetall", "hdel", "hincrby", "hkeys"), (_drift,)),
            Grant(("zadd", "zmscore", "zremrangebyrank", "zcard"), (_drift_seen,)),
            Grant(("hgetall", "hkeys", "hdel"), (_acknowledged,)),
            Grant(("hgetall",), (_calibration,)),
            Grant(
                _RUN_SCRIPTS,
                (
                    *(_events, _scores, _failures, _alerts, _dead),
                    *(_drift, _drift_seen, _acknowledged, _calibration, _watermark),
                ),
            ),
        ),
    ),
    Identity(
        "notifier",
        "Reads alerts, tells people and machines of them; sees no event and no row.",
        (
            Grant(_SERVICE),
            Grant(_READ_AS_GROUP, (_alerts,)),
            Grant(("xadd",), (_failures,)),
            Grant(("xadd", "xlen", "xtrim", "memory|usage"), (_dead,)),
            Grant(("zadd", "zmscore", "zremrangebyscore"), (_notices,)),
            Grant(("hget", "hset", "hmget", "hgetall", "hdel"), (_episodes,)),
            Grant(_RUN_SCRIPTS, (_alerts, _dead, _failures, _episodes)),
        ),
    ),
    Identity(
        "sre",
        "A person who looks: live tail of scrubbed events, queries, what drift and judge stand at.",
        (
            Grant(("xread", "xrange", "xrevrange", "xlen", "xinfo|stream"), (_events,)),
            Grant(("hgetall", "hkeys"), (_drift, _acknowledged, _calibration)),
        ),
        store_role="sre",
    ),
    Identity("exporter", "Exports from the store; not known to Redis.", store_role="exporter"),
    Identity(
        "evaluator",
        "Stores evaluation runs and how nightly ones ended, reads these again, hands alerts in; sees nothing that was captured.",
        # Not `XADD`: it could trim away the alerts of others. A list knows no such option.
        (Grant(("rpush",), (_alert_inbox,)),),
        store_role="evaluator",
    ),
    Identity(
        "operator",
        "A person who sends dead letters on their way again, or drops them, and acknowledges alerts; reads no other stream.",
        (
            Grant(("hset", "hexists", "hgetall", "hkeys"), (_acknowledged,)),
            Grant(("hgetall", "hkeys"), (_drift,)),
            Grant(("hset",), (_calibration,)),
            Grant(("xlen", "xrange", "xrevrange", "xdel"), (_dead,)),
            Grant(("xadd",), (_capture, _failures, _alerts)),
            Grant(("eval",), (_dead, _capture, _failures, _alerts)),
        ),
    ),
    Identity("owner", "Creates tables, prunes, examines the system; sees no entry of a stream.", _owner, "owner"),
    Identity(
        "admin",
        "Starts and watches the embedded Redis; sees no entry of a stream.",
        (*_owner, Grant(("config|get", "script|kill"))),
    ),
)
REDIS_IDENTITIES = tuple(identity for identity in IDENTITIES if identity.grants)
STORE_IDENTITIES = tuple(identity for identity in IDENTITIES if identity.store_role)
#: Those with a settings file of their own.
SETTINGS_IDENTITIES = tuple(identity for identity in IDENTITIES if identity.name != "admin")


@dataclass(frozen=True)
class Ports:
    """The ports of the embedded default, all on loopback."""

    redis: int
    store: int
    scrubber: int
    writer: int
    judge: int
    drift: int
    notifier: int
    #: A real Alertmanager, where a scenario starts one.
    alertmanager: int

    @classmethod
    def from_base(cls, base: int) -> "Ports":
        """Consecutive ports from `base`."""
        return cls(*range(base, base + len(fields(cls))))


def password_hash(password: str) -> str:
    """SHA-256 in hex: how ACL files name a password without holding it."""
    return hashlib.sha256(password.encode()).hexdigest()


def acl_file(hashes: Mapping[str, str], version: tuple[int, int]) -> str:
    """Text of a Redis ACL file, given each identity's `password_hash` (or a placeholder for it) and the server's version."""
    return "".join(
        f"{line}\n"
        for line in (
            _NOBODY,
            *(acl_line(identity, hashes[identity.name], version) for identity in REDIS_IDENTITIES),
        )
    )


def acl_line(identity: Identity, hashed: str, version: tuple[int, int]) -> str:
    """One user of an ACL file."""
    connect = _CONNECT + (_CONNECT_SINCE_7_2 if version >= (7, 2) else ())
    keyless = [*connect, *(command for grant in identity.grants if not grant.keys for command in grant.commands)]
    keyed = [grant for grant in identity.grants if grant.keys]
    head = f"user {identity.name} on #{hashed} resetchannels -@all"
    selectors = (f"({' '.join([*_allow(grant.commands), *_patterns(grant.keys)])})" for grant in keyed)
    return " ".join([head, *_allow(keyless), *selectors])


def acl_template() -> str:
    """`deploy/redis/users.acl.template`: the users for Redis or Valkey 7.0 and newer, with `${..._SHA256}` where hashes go."""
    return acl_file({identity.name: f"${{{identity.name.upper()}_SHA256}}" for identity in REDIS_IDENTITIES}, (7, 0))


def settings_text(
    identity: Identity,
    *,
    ports: Ports,
    redis_password: str | None,
    store_password: str | None,
    spool: Path,
    base: Mapping[str, Any] | None = None,
) -> str:
    """One identity's settings file. `base` holds a person's own settings; addresses and credentials replace what it says of them.

    A secret of a section, such as the address of a chat, is only in the file of the service that the section is for.
    """
    theirs = {place for place in secret_settings() if place[0] != identity.name}
    sections: dict[str, dict[str, Any]] = {
        section: {name: value for name, value in values.items() if (section, name) not in theirs}
        for section, values in (base or {}).items()
    }
    for section, kept in (("redis", ("shards", "connect_timeout_s", "command_timeout_s")), ("store", ("timeout_s",))):
        sections[section] = {name: value for name, value in sections.get(section, {}).items() if name in kept}
    if redis_password is not None:
        sections["redis"]["url"] = f"redis://{identity.name}:{redis_password}@127.0.0.1:{ports.redis}/0"
    if store_password is not None:
        sections["store"] |= {
            "url": f"http://127.0.0.1:{ports.store}",
            "user": identity.name,
            "password": store_password,
        }
    capture = sections.get("capture", {})
    # In its own directory, all is for its own Redis, whatever port that had before.
    sections["capture"] = ({} if "spool_dir" in capture else {"spool_dir": str(spool), "spool_adopt": "all"}) | capture
    for service in (field.name for field in fields(Ports) if field.name in Settings.model_fields):
        if service in ("redis", "store"):
            continue
        sections[service] = sections.get(service, {}) | {"port": getattr(ports, service)}
    sections["telemetry"] = {"log_format": "text"} | sections.get("telemetry", {}) | {"host": "127.0.0.1"}
    head = f"# {identity.name}: {identity.purpose}\n# Written by `assay up` at every start; put settings of your own in assay.toml.\n"
    return head + "".join(_toml_section(name, values) for name, values in sections.items() if values)


def secret_settings() -> set[tuple[str, str]]:
    """Section and name of every setting that is a secret."""
    found = set()
    for section, field in Settings.model_fields.items():
        model = field.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        found |= {(section, name) for name, inner in model.model_fields.items() if inner.annotation is SecretStr}
    return found


def _toml_section(name: str, values: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = [f"\n[{name}]", *(f"{_toml(key)} = {_toml(value)}" for key, value in plain.items())]
    return (
        "\n".join(lines) + "\n" + "".join(_toml_section(f"{name}.{_toml(key)}", table) for key, table in tables.items())
    )


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _allow(commands: Iterable[str]) -> list[str]:
    return [f"+{command}" for command in dict.fromkeys(commands)]


def _patterns(keys: Iterable[str]) -> list[str]:
    return [f"~{key.replace('{0}', shard)}" for key in dict.fromkeys(keys) for shard in _SHARDS]


if __name__ == "__main__":
    print(acl_template(), end="")
