"""Find the record of a key that may read."""

from typing import TYPE_CHECKING

from assay_access.api_keys import KeyKind, KeyRecord, KeyState, fits, id_of, key_fields, records_in
from assay_operations.api_keys.records import now
from assay_operations.errors import OperationError
from assay_schema.streams import api_keys_key

if TYPE_CHECKING:
    from assay_runtime.connection import Client


async def live_read_key(client: "Client", key: str) -> KeyRecord | None:
    """Return the record of a key of kind `read` that is valid now; None for every other key.

    Redis is asked each time, so that a revoked key ends at once. Raises `OperationError` if Redis does not answer.
    """
    from redis.exceptions import RedisError

    from assay_runtime.connection import server_of

    key_id = id_of(key)
    if key_id is None:
        return None
    names = key_fields(key_id)
    try:
        values = await server_of(client, 0).hmget(api_keys_key(), names)
    except (RedisError, OSError, TimeoutError) as error:
        raise OperationError(
            "unavailable", f"the key cannot be checked: Redis does not answer ({type(error).__name__})", "try again"
        ) from None
    found = {name.encode(): value for name, value in zip(names, values, strict=True) if value is not None}
    record = records_in(found).get(key_id)
    if record is None or not fits(key, record) or record.kind is not KeyKind.READ:
        return None
    return record if record.state(now()) is KeyState.LIVE else None
