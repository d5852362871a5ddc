"""The Redis ACL file that follows from the table of identities. Pure. Run as a program it prints the template for deployments."""

import hashlib
from collections.abc import Iterable, Mapping

from assay_access.identities import REDIS_IDENTITIES, Identity

#: Key patterns of shards 0 to 15, the most a stream can have. No `*` but for the judge: an identity cannot make up keys of its own.
_SHARDS = ("{[0-9]}", "{1[0-5]}")
#: What a client says when it connects.
#: `CLUSTER SLOTS` says which server of a Redis Cluster has a shard.
_CONNECT = ("auth", "hello", "ping", "client|id", "client|getname", "client|setname", "cluster|slots")
#: Known to the server since 7.2. Redis 7.0 refuses to load a line that names it.
_CONNECT_SINCE_7_2 = ("client|setinfo",)

#: The default user is off and has no password, so nobody can be it; yet it may do everything. Redis replays its append-only file
#: as this user and asks for its rights inside MULTI and EXEC, which is how a script's effects are written: without rights all that the
#: scripts had moved would be missing after a restart, with no error but lines in Redis's own log.
_NOBODY = "user default off resetpass ~* &* +@all"


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


def _allow(commands: Iterable[str]) -> list[str]:
    return [f"+{command}" for command in dict.fromkeys(commands)]


def _patterns(keys: Iterable[str]) -> list[str]:
    return [f"~{key.replace('{0}', shard)}" for key in dict.fromkeys(keys) for shard in _SHARDS]


if __name__ == "__main__":
    print(acl_template(), end="")
