"""The Redis ACL file of the identities.

Pure. Run as a program, it prints the template for deployments.
"""

import hashlib
from collections.abc import Iterable, Mapping

from assay_access.identities import REDIS_IDENTITIES, Identity

#: Key patterns of shards 0 to 15, the maximum. No `*` except for the judge: an identity cannot create keys of its choice.
_SHARDS = ("{[0-9]}", "{1[0-5]}")
#: Commands of a connecting client. `CLUSTER SLOTS` returns the server of a shard in a Redis Cluster.
_CONNECT = ("auth", "hello", "ping", "client|id", "client|getname", "client|setname", "cluster|slots")
#: Known to the server since 7.2. Redis 7.0 refuses to load a line that names it.
_CONNECT_SINCE_7_2 = ("client|setinfo",)

#: The default user is off and has no password, so no client can use it, but it has all rights. Redis replays its append-only file
#: as this user and checks its rights within MULTI and EXEC, which is how the effects of scripts are written: without rights all that
#: scripts had moved would be missing after a restart, with no error except lines in Redis's log.
_NOBODY = "user default off resetpass ~* &* +@all"


def password_hash(password: str) -> str:
    """Return the SHA-256 of a password in hex, which ACL files contain instead of the password."""
    return hashlib.sha256(password.encode()).hexdigest()


def acl_file(hashes: Mapping[str, str], version: tuple[int, int]) -> str:
    """Return a Redis ACL file, given each `password_hash` (or a placeholder) and the server version."""
    return "".join(
        f"{line}\n"
        for line in (
            _NOBODY,
            *(acl_line(identity, hashes[identity.name], version) for identity in REDIS_IDENTITIES),
        )
    )


def acl_line(identity: Identity, hashed: str, version: tuple[int, int]) -> str:
    """Return the line of one user of an ACL file."""
    connect = _CONNECT + (_CONNECT_SINCE_7_2 if version >= (7, 2) else ())
    keyless = [*connect, *(command for grant in identity.grants if not grant.keys for command in grant.commands)]
    keyed = [grant for grant in identity.grants if grant.keys]
    head = f"user {identity.name} on #{hashed} resetchannels -@all"
    selectors = (f"({' '.join([*_allow(grant.commands), *_patterns(grant.keys)])})" for grant in keyed)
    return " ".join([head, *_allow(keyless), *selectors])


def acl_template() -> str:
    """Return the ACL template for Redis or Valkey 7.0 and newer, with `${..._SHA256}` for hashes."""
    return acl_file({identity.name: f"${{{identity.name.upper()}_SHA256}}" for identity in REDIS_IDENTITIES}, (7, 0))


def _allow(commands: Iterable[str]) -> list[str]:
    return [f"+{command}" for command in dict.fromkeys(commands)]


def _patterns(keys: Iterable[str]) -> list[str]:
    return [f"~{key.replace('{0}', shard)}" for key in dict.fromkeys(keys) for shard in _SHARDS]


if __name__ == "__main__":
    print(acl_template(), end="")
