"""Secrets of a data directory, generated once in `<data>/secrets` (0700, files 0600).

`passwords.json` is the source. The ACL file, the store's users and the settings files are generated from it at every start, because
ports, the Redis version and the table of identities may have changed since.
"""

import json
import os
import secrets
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay_access.acl_file import acl_file, password_hash
from assay_access.errors import AccessError
from assay_access.identities import REDIS_IDENTITIES, SETTINGS_IDENTITIES, STORE_IDENTITIES
from assay_access.settings_files import Ports, settings_text

_PASSWORDS = "passwords.json"
#: The key that signs links and sessions of the console.
CONSOLE_KEY = "console.key"
#: Random bytes of a password.
_PASSWORD_BYTES = 32


@dataclass(frozen=True)
class Passwords:
    """Passwords of each identity, by name: one for Redis, another for the store."""

    redis: Mapping[str, str]
    store: Mapping[str, str]

    def __repr__(self) -> str:
        return "Passwords(...)"


def load_or_create(directory: Path) -> Passwords:
    """Read the passwords of a data directory, and generate missing ones. Raises `AccessError`."""
    make_private(directory)
    path = directory / _PASSWORDS
    try:
        known = json.loads(path.read_text())
        redis, store = dict(known["redis"]), dict(known["store"])
    except FileNotFoundError:
        redis, store = {}, {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AccessError(
            f"cannot read {path} ({type(error).__name__}); restore it from a backup, or move it away to generate new passwords"
        ) from None
    for identity in REDIS_IDENTITIES:
        redis.setdefault(identity.name, secrets.token_urlsafe(_PASSWORD_BYTES))
    for identity in STORE_IDENTITIES:
        store.setdefault(identity.name, secrets.token_urlsafe(_PASSWORD_BYTES))
    write_private(path, json.dumps({"redis": redis, "store": store}, indent=1) + "\n")
    return Passwords(redis, store)


def write_derived(
    directory: Path,
    passwords: Passwords,
    *,
    ports: Ports,
    redis_version: tuple[int, int],
    spool: Path,
    base: Mapping[str, Any] | None = None,
) -> None:
    """Write the ACL file, the store's users, one settings file per identity, and curl's for the SRE."""
    hashes = {name: password_hash(password) for name, password in passwords.redis.items()}
    write_private(directory / "redis-users.acl", acl_file(hashes, redis_version))
    users = {
        identity.name: {"role": identity.store_role, "password": passwords.store[identity.name]}
        for identity in STORE_IDENTITIES
    }
    write_private(directory / "store-users.json", json.dumps(users, indent=1) + "\n")
    # For `curl -K`: a password on a command line is visible to every user of the machine.
    write_private(directory / "sre.curl", f'user = "sre:{passwords.store["sre"]}"\n')
    session_key = directory / CONSOLE_KEY
    if not session_key.exists():
        write_private(session_key, secrets.token_urlsafe(_PASSWORD_BYTES) + "\n")
    for identity in SETTINGS_IDENTITIES:
        text = settings_text(
            identity,
            ports=ports,
            redis_password=passwords.redis.get(identity.name) if identity.grants else None,
            store_password=passwords.store.get(identity.name) if identity.store_role else None,
            spool=spool,
            session_key=session_key if identity.name == "console" else None,
            base=base,
        )
        tomllib.loads(text)
        write_private(directory / f"{identity.name}.toml", text)


def make_private(directory: Path, *, passable: bool | None = False) -> None:
    """Create a directory that only its owner can enter. Raises `AccessError`.

    `passable`: others can traverse it, but not list it; None leaves that unchanged.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = directory.stat().st_mode & 0o777
        wanted = 0o700 | (mode & 0o011 if passable is None else 0o011 if passable else 0)
        if mode & 0o077 != wanted & 0o077:
            directory.chmod(wanted)
    except OSError as error:
        raise AccessError(
            f"cannot make the directory {directory} private: {error.strerror or error}; choose another with --data"
        ) from None


def write_private(path: Path, text: str) -> None:
    """Replace a file atomically with a private one; it is not touched if it already has this text."""
    try:
        if path.read_text() == text and not path.stat().st_mode & 0o077:
            return
    except (OSError, UnicodeDecodeError):
        pass  # missing or unreadable: written below
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp makes it 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
