"""Find the answer that a verdict is about, by the id of its trace or of the model's response.

The assembler keeps the event ids of answers in separate keys, which are all that a gateway can read of a trace.
"""

import logging
from uuid import UUID

from redis.exceptions import RedisError, ResponseError

from assay_gateway.feedback import Target
from assay_gateway.refusal import RETRY_MAX_S, RefusedError, unavailable
from assay_runtime.connection import Client, refusal_of, server_of
from assay_schema.streams import answer_of_response_key, answer_of_trace_key, shard_of

log = logging.getLogger(__name__)


class Targets:
    """Finds the answers of a project."""

    def __init__(self, client: Client, shards: int) -> None:
        self._client = client
        self._shards = shards

    async def find(self, project: str, target: Target) -> UUID:
        """Return the `event_id` of a target.

        Raises `RefusedError`: 404 if the project has no such answer, or not yet; 503 if Redis does not tell.
        """
        if target.event_id is not None:
            return target.event_id
        shard = shard_of(project, self._shards)
        key = (
            answer_of_trace_key(shard, project, target.trace_id.lower())
            if target.trace_id is not None
            else answer_of_response_key(shard, project, str(target.response_id))
        )
        try:
            found = await server_of(self._client, shard).get(key)
        except ResponseError as error:
            log.error("redis refuses to look up an answer", extra={"error_class": refusal_of(error)})
            raise unavailable(
                "redis_refuses", "Redis does not look up answers at the moment; send it again", 5
            ) from None
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("redis did not answer", extra={"error_class": type(error).__name__})
            raise unavailable("redis_away", "Redis did not look up the answer; send it again", 2) from None
        if found is None:
            raise unknown_target()
        return UUID(found.decode())


def unknown_target() -> RefusedError:
    """Refuse a verdict on an answer that is not known."""
    return RefusedError(
        404,
        "unknown_target",
        "no answer with this id is known; answers are known some seconds after their traces ended",
        headers={"Retry-After": str(RETRY_MAX_S)},
    )
