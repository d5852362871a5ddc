"""List the keys of HTTP clients, without anything from which a key could be made."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay_access.api_keys import KeyState
from assay_operations.api_keys.records import now, read
from assay_operations.clients import run_with_redis
from assay_schema.settings import Settings

if TYPE_CHECKING:
    from assay_runtime.connection import Client


def listed(data: Path, *, project: str = "", everything: bool = False) -> list[dict[str, Any]]:
    """Return valid keys, the newest first; `everything` includes expired and revoked ones."""

    async def work(client: "Client", _settings: Settings) -> list[dict[str, Any]]:
        moment = now()
        records = sorted((await read(client)).values(), key=lambda record: record.created_at, reverse=True)
        return [
            {
                "id": record.id,
                "state": record.state(moment).value,
                **record.model_dump(mode="json", exclude={"id", "sha256"}),
            }
            for record in records
            if project in ("", record.project) and (everything or record.state(moment) is KeyState.LIVE)
        ]

    return run_with_redis("operator", data, work)
