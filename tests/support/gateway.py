"""Run `python -m assay_gateway` against a real Redis in which it has its own user, and make keys for it."""

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
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
from tests.support.wait import until


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


class Gateway:
    """The process, and clients of it."""

    def __init__(self, directory: Path, redis: RedisServer, **settings: str) -> None:
        self.port, self.health_port = free_port(), free_port()
        self.redis = redis
        self._log = directory / "gateway.log"
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")} | {
            "ASSAY_REDIS_URL": f"redis://gateway:gateway-password@127.0.0.1:{redis.port}/0",
            "ASSAY_REDIS_COMMAND_TIMEOUT_S": "5",
            "ASSAY_GATEWAY_PORT": str(self.health_port),
            "ASSAY_GATEWAY_LISTEN_PORT": str(self.port),
            "ASSAY_TELEMETRY_LOG_LEVEL": "DEBUG",
            **settings,
        }
        self.scheme = "https" if "ASSAY_GATEWAY_TLS_CERT_FILE" in settings else "http"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: bool = True) -> "Gateway":
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "assay_gateway"],
                env=self._environment,
                stdout=log,
                stderr=log,
                cwd=self._log.parent,
            )
        if ready:
            until(lambda: self.health("/readyz")[0] == 200, "the gateway is not ready")
        return self

    def terminate(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        self.terminate()
        assert self.process
        return self.process.wait(60)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait(60)

    def log(self) -> str:
        return self._log.read_text()

    def health(self, path: str) -> tuple[int, str]:
        """Return status and text of a page of the internal port; status 0 without an answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health_port}{path}", timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, name: str) -> float:
        """Return the sum of a metric over all labels that its name does not give."""
        lines = [line.rsplit(" ", 1) for line in self.health("/metrics")[1].splitlines() if line.startswith(name)]
        return sum(float(value) for _, value in lines)

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
