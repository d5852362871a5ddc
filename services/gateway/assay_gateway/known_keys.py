"""The keys that a gateway knows: a copy of those in Redis, kept current by their version."""

import asyncio
import logging
import time
from datetime import UTC, datetime

from redis.exceptions import RedisError

from assay_access.api_keys import KeyRecord, KeyState, fits, id_of, records_in
from assay_gateway.refusal import unauthorized, unavailable
from assay_runtime import metrics
from assay_runtime.connection import Client, server_of
from assay_schema.streams import API_KEYS_VERSION, api_keys_key

log = logging.getLogger(__name__)

#: Seconds between looks at the version: a revoked key is refused after that, at the latest.
LOOK_EVERY_S = 1.0
#: Least seconds between two looks that unknown keys cause.
LOOK_AGAIN_S = 0.25
#: Seconds that a request with an unknown key waits for such a look.
PATIENCE_S = 1.0


class KnownKeys:
    """Finds the record of a key.

    Redis is asked only when a key is unknown, so that a new one works at once.
    """

    def __init__(self, client: Client) -> None:
        self._client = server_of(client, 0)
        self._records: dict[str, KeyRecord] | None = None
        self._version: bytes | None = None
        self._looked = -LOOK_AGAIN_S
        self._lock = asyncio.Lock()

    @property
    def ids(self) -> set[str]:
        """The ids of all keys, valid or not."""
        return set(self._records or ())

    def of_browsers(self) -> set[str]:
        """Return the origins of all valid feedback keys."""
        now = datetime.now(UTC)
        records = (self._records or {}).values()
        return {origin for record in records if record.state(now) is KeyState.LIVE for origin in record.origins}

    async def find(self, key: str) -> KeyRecord:
        """Return the record of a valid key. Raises `RefusedError`: one answer for all causes."""
        key_id = id_of(key)
        if key_id is None:
            raise unauthorized()
        if key_id not in (self._records or ()):
            await self._look_soon()
        if self._records is None:
            raise unavailable("redis_away", "the keys cannot be read: Redis does not answer; send it again")
        record = self._records.get(key_id)
        if record is None or not fits(key, record) or record.state(datetime.now(UTC)) is not KeyState.LIVE:
            raise unauthorized()
        return record

    async def look(self) -> None:
        """Read the keys again if they have changed. Raises `RedisError`."""
        async with self._lock:
            await self._look()

    async def _look(self) -> None:
        self._looked = time.monotonic()
        version = await self._client.hget(api_keys_key(), API_KEYS_VERSION)
        if self._records is not None and version == self._version:
            return
        fields = await self._client.hgetall(api_keys_key())
        self._records = records_in(fields)
        self._version = fields.get(API_KEYS_VERSION.encode())
        metrics.GATEWAY_KEYS.set(len(self._records))

    async def _look_soon(self) -> None:
        asked = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.sleep(max(0.0, self._looked + LOOK_AGAIN_S - asked))
                async with self._lock:
                    if self._looked < asked:  # another request has not looked meanwhile
                        await self._look()
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("redis did not answer", extra={"error_class": type(error).__name__})
