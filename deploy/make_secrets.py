#!/usr/bin/env python3
"""Makes the secrets of a deployment, once: `python deploy/make_secrets.py [DIRECTORY]`, by default `deploy/secrets`.

    passwords.json             the source of all others; stays on this host, 0600
    redis-users.acl            every Redis user and what it may do, passwords as SHA-256
    clickhouse-passwords.xml   the passwords of ClickHouse's users, as SHA-256
    redis-NAME, store-NAME     one password each, for whoever is NAME
    grafana-admin              the password of Grafana's `admin`
    console-key                the key that signs links and sessions of the console

Run it again after an upgrade: passwords stay, what follows from them is written anew. To change one, remove it from passwords.json,
run this, and restart the servers and whoever uses it.

The directory is 0700. The files that containers read are 0644 in it: they are mounted one by one, and the container's user is not
this one, so it could not read a 0600 file; nobody else on this host gets past the directory.
"""

import secrets
import sys
from pathlib import Path

from assay_access.acl_file import acl_file, password_hash
from assay_access.errors import AccessError
from assay_access.identities import REDIS_IDENTITIES, STORE_IDENTITIES
from assay_access.secrets import Passwords, load_or_create, write_private

#: The ACL file is for Redis 7.0 and newer, and Valkey.
REDIS_VERSION = (7, 0)
MODE = 0o644


def write_secrets(directory: Path) -> Passwords:
    """Write every file. Raises `AccessError`."""
    passwords = load_or_create(directory)
    hashes = {name: password_hash(password) for name, password in passwords.redis.items()}
    _write(directory / "redis-users.acl", acl_file(hashes, REDIS_VERSION))
    _write(directory / "clickhouse-passwords.xml", clickhouse_passwords(passwords))
    for identity in REDIS_IDENTITIES:
        _write(directory / f"redis-{identity.name}", passwords.redis[identity.name])
    for identity in STORE_IDENTITIES:
        _write(directory / f"store-{identity.name}", passwords.store[identity.name])
    for name in ("grafana-admin", "console-key"):
        if not (directory / name).exists():
            _write(directory / name, secrets.token_urlsafe(32))
    return passwords


def clickhouse_passwords(passwords: Passwords) -> str:
    """A users file that adds to those of `users.d/assay.xml` how they prove who they are."""
    users = "".join(
        f"    <{name}><password_sha256_hex>{password_hash(passwords.store[name])}</password_sha256_hex></{name}>\n"
        for name in (identity.name for identity in STORE_IDENTITIES)
    )
    return f"<clickhouse>\n  <users>\n{users}  </users>\n</clickhouse>\n"


def _write(path: Path, text: str) -> None:
    if path.exists() and path.read_text() == text:
        path.chmod(MODE)
        return
    write_private(path, text)
    path.chmod(MODE)


def main() -> None:
    """Entry point."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "secrets"
    try:
        write_secrets(directory)
    except AccessError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
    print(f"secrets are in {directory}", file=sys.stderr)


if __name__ == "__main__":
    main()
