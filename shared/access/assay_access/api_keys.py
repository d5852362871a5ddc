"""Keys of HTTP clients: their form, their record at rest, and the check of a key. Pure.

A key is `assay_<kind>_<id>_<secret>`. Its secret has 190 random bits, so a plain SHA-256 at rest is sufficient: they
cannot all be tried. The id finds the record; it is not secret and may be logged. Nothing here logs or shows a key.
"""

import contextlib
import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from assay_schema.fields import Project, Service

ID_CHARS = 10
SECRET_CHARS = 32
#: Longest name of a key, in characters.
NAME_CHARS = 100
#: Most origins of a feedback key.
ORIGINS_MAX = 100
_ALPHABET = string.ascii_letters + string.digits


#: Suffixes of the fields that end a key. They are separate fields, so that two operators who change a key at the
#: same moment undo nothing: a record is written once.
_REVOKED, _EXPIRES = ":revoked", ":expires"


class KeyKind(StrEnum):
    """Permission of a key."""

    #: Send events. Can read nothing.
    INGEST = "ingest"
    #: Send feedback only: such a key is public, because a web page contains it.
    FEEDBACK = "feedback"
    #: Read, never send.
    READ = "read"


class KeyState(StrEnum):
    """Validity of a key at a moment."""

    LIVE = "live"
    EXPIRED = "expired"
    REVOKED = "revoked"


_KEY = re.compile(rf"assay_({'|'.join(KeyKind)})_([A-Za-z0-9]{{{ID_CHARS}}})_([A-Za-z0-9]{{{SECRET_CHARS}}})", re.ASCII)
KEY_ID = re.compile(rf"^[A-Za-z0-9]{{{ID_CHARS}}}$", re.ASCII)


def _origin(text: str) -> str:
    """Return an origin as browsers send it: scheme, host and port, in lower case. Raises `ValueError`."""
    parts = urlsplit(text.strip().rstrip("/").lower())
    port = parts.port  # raises ValueError for a port that is no number
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query or parts.username:
        raise ValueError("must look like https://app.example.com, without a path")
    default = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{parts.netloc}".removesuffix(f":{default}" if port == default else "\0")


class KeyRecord(BaseModel):
    """The record of a key at rest: everything except its secret."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: str = Field(pattern=KEY_ID.pattern)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    kind: KeyKind
    project: Project
    name: str = Field("", max_length=NAME_CHARS)
    service: Service | None = Field(None, description="Service of events that name none.")
    origins: Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], Field(max_length=ORIGINS_MAX)] = ()
    events_per_s: float = Field(0, ge=0, allow_inf_nan=False, description="Events per second; 0: not limited.")
    bytes_per_s: float = Field(0, ge=0, allow_inf_nan=False, description="Bytes per second; 0: not limited.")
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None
    revoked_at: AwareDatetime | None = None

    def state(self, now: datetime) -> KeyState:
        """Return whether the key is valid at a moment."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        return KeyState.EXPIRED if self.expires_at is not None and now >= self.expires_at else KeyState.LIVE


def new_key(kind: KeyKind) -> tuple[str, str]:
    """Return a new key and its id. The key is shown once and not kept."""
    key_id, secret = ("".join(secrets.choice(_ALPHABET) for _ in range(length)) for length in (ID_CHARS, SECRET_CHARS))
    return f"assay_{kind.value}_{key_id}_{secret}", key_id


def key_hash(key: str) -> str:
    """Return the SHA-256 of a key in hex, which its record contains instead of the key."""
    return hashlib.sha256(key.encode()).hexdigest()


def id_of(key: str) -> str | None:
    """Return the id in a key; None for any other text."""
    match = _KEY.fullmatch(key)
    return match[2] if match else None


def fits(key: str, record: KeyRecord) -> bool:
    """Return whether a key is the one of a record. The time taken does not depend on where they differ."""
    return hmac.compare_digest(key_hash(key), record.sha256)


def as_fields(record: KeyRecord) -> dict[str, str]:
    """Return a new record as fields of the hash of keys."""
    return {record.id: record.model_dump_json(exclude_none=True)}


def revocation(key_id: str, at: datetime) -> dict[str, str]:
    """Return the field that revokes a key."""
    return {f"{key_id}{_REVOKED}": at.isoformat()}


def expiry(key_id: str, at: datetime) -> dict[str, str]:
    """Return the field that lets a key expire."""
    return {f"{key_id}{_EXPIRES}": at.isoformat()}


def key_fields(key_id: str) -> list[str]:
    """Return the names of the fields about one key, for `records_in`."""
    return [key_id, f"{key_id}{_REVOKED}", f"{key_id}{_EXPIRES}"]


def records_in(fields: Mapping[bytes, bytes]) -> dict[str, KeyRecord]:
    """Return the records in the hash of keys, by id.

    A record that cannot be read is left out: its key is refused.
    """
    found: dict[str, KeyRecord] = {}
    for name, value in fields.items():
        key_id = name.decode(errors="replace")
        if not KEY_ID.fullmatch(key_id):
            continue
        with contextlib.suppress(ValidationError, ValueError):
            record = KeyRecord.model_validate_json(value)
            ends = {
                "revoked_at": fields.get(f"{key_id}{_REVOKED}".encode()),
                "expires_at": fields.get(f"{key_id}{_EXPIRES}".encode()),
            }
            given = {field: datetime.fromisoformat(end.decode()) for field, end in ends.items() if end}
            if record.id == key_id:
                found[key_id] = record.model_copy(update=given)
    return found
