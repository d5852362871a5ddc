"""Read the records of keys, and write changes of them within an audit record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from assay_access.api_keys import KEY_ID, KeyKind, KeyRecord, KeyState, key_hash, new_key, records_in
from assay_operations.audit import Attempt
from assay_operations.clients import run_with_redis
from assay_operations.errors import OperationError
from assay_schema.ids import new_event_id
from assay_schema.settings import Settings
from assay_schema.streams import API_KEYS_VERSION, api_keys_key

if TYPE_CHECKING:
    from assay_runtime.connection import Client


@dataclass(frozen=True)
class NewKey:
    """A key that was made. Show the key once: it cannot be read again."""

    record: KeyRecord
    key: str = field(repr=False)


def now() -> datetime:
    """Return the time, in whole milliseconds."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


async def read(client: "Client") -> dict[str, KeyRecord]:
    """Return every record by the id of its key."""
    return records_in(await client.hgetall(api_keys_key()))


def live_key(data: Path, key_id: str) -> KeyRecord:
    """Return the record of a valid key. Raises `OperationError` if there is none with this id."""
    if key_id.startswith("assay_"):
        raise OperationError("invalid", "name the key by its id, not by the key itself", "assay keys list")
    if not KEY_ID.fullmatch(key_id):
        raise OperationError("invalid", "this is not an id of a key", "assay keys list")

    async def find(client: "Client", _settings: Settings) -> KeyRecord | None:
        return (await read(client)).get(key_id)

    record = run_with_redis("operator", data, find)
    if record is None:
        raise OperationError("not_found", f"no key has the id {key_id}", "assay keys list")
    if (state := record.state(now())) is not KeyState.LIVE:
        raise OperationError("conflict", f"key {key_id} is {state.value} already")
    return record


def made(kind: KeyKind, **facts: Any) -> NewKey:
    """Make a key with these facts in its record.

    Raises `OperationError` naming the option that is invalid.
    """
    key, key_id = new_key(kind)
    try:
        record = KeyRecord(id=key_id, sha256=key_hash(key), kind=kind, created_at=now(), **facts)
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        option = {"origins": "--origin"}.get(name, f"--{name.replace('_per_s', '-per-second')}")
        raise OperationError("invalid", f"{option}: {problem['msg'].removeprefix('Value error, ')}") from None
    return NewKey(record, key)


async def write(client: "Client", fields: Mapping[str, str], attempt: Attempt) -> None:
    """Write fields of keys in one step, with a new version, which running gateways notice."""
    await client.hset(api_keys_key(), mapping={**fields, API_KEYS_VERSION: new_event_id()})
    attempt.changed = 1
