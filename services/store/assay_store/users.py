"""Users: the users file, and the check of a name and password."""

from __future__ import annotations

import hashlib
import hmac
import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assay_store.roles import Role


class UsersFileError(Exception):
    """The users file cannot be used; the message says what to change."""


@dataclass(frozen=True)
class User:
    """A user's name, role and password digest. The password itself is not kept."""

    name: str
    role: Role
    digest: bytes

    @property
    def has_password(self) -> bool:
        """False if the password is the empty string."""
        return self.digest != _digest("")


class Users:
    """The users of one server. Lookups take the same time for unknown names as for wrong passwords."""

    def __init__(self, users: dict[str, User]) -> None:
        self._users = users

    def __iter__(self) -> Iterator[User]:
        return iter(self._users.values())

    def check(self, name: str, password: str) -> User | None:
        """Return the user, or None if the name is unknown or the password is wrong."""
        user = self._users.get(name)
        expected = user.digest if user else _digest("no such user")
        same = hmac.compare_digest(_digest(password), expected)
        return user if same else None


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode("utf-8", "surrogateescape")).digest()


def read_users(path: Path) -> Users:
    """Read users and their roles: `{"name": {"password": "...", "role": "sre"}, ...}`.

    Raises:
        UsersFileError: the file is missing, readable by others than its owner, not JSON, or names no usable user.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise UsersFileError(f"users file {path} may be read by others (mode {mode:04o}): run chmod 600 {path}")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise UsersFileError(
            f"users file {path} cannot be read ({failure.strerror}): pass its path with --users"
        ) from failure
    except ValueError as failure:
        raise UsersFileError(f"users file {path} is not JSON") from failure
    if not isinstance(document, dict) or not document:
        raise UsersFileError(f'users file {path} names no user: expected {{"name": {{"password": ..., "role": ...}}}}')
    return Users({name: _user(path, name, entry) for name, entry in document.items()})


def _user(path: Path, name: str, entry: object) -> User:
    if not isinstance(entry, dict) or not isinstance(entry.get("password"), str):
        raise UsersFileError(f"users file {path}: user {name!r} needs a string 'password' and a 'role'")
    try:
        role = Role(str(entry.get("role")))
    except ValueError:
        roles = ", ".join(role.value for role in Role)
        raise UsersFileError(f"users file {path}: user {name!r} needs a 'role' out of {roles}") from None
    unknown = set(entry) - {"password", "role"}
    if unknown:
        raise UsersFileError(f"users file {path}: user {name!r} has unknown keys {sorted(unknown)}")
    return User(name=name, role=role, digest=_digest(entry["password"]))
