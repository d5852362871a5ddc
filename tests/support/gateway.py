"""Run `python -m assay_gateway` against a real Redis in which it has its own user, and make keys for it."""

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from assay_access.acl_file import acl_file, password_hash
from assay_access.api_keys import KeyKind, KeyRecord, as_fields, key_hash, new_key, revocation
from assay_access.identities import REDIS_IDENTITIES
from assay_schema.ids import new_event_id
from assay_schema.streams import API_KEYS_VERSION, CAPTURE, FIELD, api_keys_key
from tests.support.ports import free_port
from tests.support.redis import SERVERS, RedisServer
from tests.support.service_process import ServiceProcess


@dataclass(frozen=True)
class Answer:
    """An answer of the gateway."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def redis_with_identities(directory: Path, *options: str) -> RedisServer:
    """Start a Redis with the identities' users; the default user may do everything, for the test itself."""
    program = SERVERS["installed"]
    hashes = {identity.name: password_hash(f"{identity.name}-password") for identity in REDIS_IDENTITIES}
    lines = [line for line in acl_file(hashes, program.version).splitlines() if not line.startswith("user default")]
    (directory / "users.acl").write_text("\n".join([*lines, "user default on nopass ~* &* +@all\n"]))
    return RedisServer(directory, "--aclfile", str(directory / "users.acl"), *options, binary=program.path).start()


def event(**changes: Any) -> dict[str, Any]:
    """Return a retrieval event as a program sends it over HTTP, without a project."""
    payload = {
        "tool_name": "query",
        "query": "how long are rows kept?",
        "retrieved_slugs": ["handbook/retention"],
        "retrieved_chunk_ids": [4101],
        "latency_ms": 12.5,
    }
    return {
        "schema_version": 1,
        "event_id": new_event_id(),
        "service": "search",
        "occurred_at": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "kind": "retrieval",
        "payload": payload,
    } | changes


class Gateway(ServiceProcess):
    """The process, and clients of it."""

    def __init__(self, directory: Path, redis: RedisServer, module: str = "", **settings: str) -> None:
        self.port = free_port()
        own = {"ASSAY_GATEWAY_LISTEN_PORT": str(self.port), "ASSAY_TELEMETRY_LOG_LEVEL": "DEBUG"}
        super().__init__("gateway", directory, redis, "gateway.log", module, **own | settings)
        self.scheme = "https" if "ASSAY_GATEWAY_TLS_CERT_FILE" in settings else "http"

    def key(self, kind: KeyKind = KeyKind.INGEST, project: str = "shop", **facts: Any) -> str:
        """Make a key."""
        key, key_id = new_key(kind)
        record = KeyRecord(
            id=key_id, sha256=key_hash(key), kind=kind, project=project, created_at=datetime.now(UTC), **facts
        )
        self._write(as_fields(record))
        return key

    def revoke(self, key: str) -> None:
        """Revoke a key."""
        self._write(revocation(key.split("_")[2], datetime.now(UTC)))

    def _write(self, fields: Mapping[str, str]) -> None:
        with self.redis.client() as client:
            client.hset(api_keys_key(), mapping={**fields, API_KEYS_VERSION: new_event_id()})

    def send(
        self,
        path: str,
        body: bytes | None,
        key: str | None = None,
        *,
        method: str = "POST",
        context: ssl.SSLContext | None = None,
        **headers: str,
    ) -> Answer:
        """Send one request on its own connection. `_` in the names of headers stands for `-`."""
        told = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        if key is not None:
            told["Authorization"] = f"Bearer {key}"
        connection = (
            http.client.HTTPSConnection("localhost", self.port, timeout=60, context=context)
            if self.scheme == "https"
            else http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        )
        try:
            connection.request(method, path, body, {name: text for name, text in told.items() if text})
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def post(self, events: Any, key: str | None, **headers: str) -> Answer:
        """Send events as JSON."""
        return self.send("/v1/events", events if isinstance(events, bytes) else orjson.dumps(events), key, **headers)

    def stored(self) -> list[dict[str, Any]]:
        """Return the events in the capture stream."""
        with self.redis.client() as client:
            return [orjson.loads(fields[FIELD.encode()]) for _, fields in client.xrange(CAPTURE.key())]


@contextlib.contextmanager
def running_gateway(directory: Path, **settings: str) -> Iterator[Gateway]:
    """Run a gateway on a Redis of its own."""
    redis = redis_with_identities(directory)
    try:
        running = Gateway(directory, redis, **settings)
        try:
            yield running.start()
        finally:
            running.kill()
    finally:
        redis.stop()
