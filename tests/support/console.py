"""Run `python -m assay_console` against a real Redis and a real store, each with its own user, and open it in a browser."""

import http.client
import http.cookies
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from assay_access.api_keys import KeyKind, KeyRecord, as_fields, key_hash, new_key, revocation
from assay_access.console_links import Signer, link_token
from assay_schema.ids import new_event_id
from assay_schema.streams import API_KEYS_VERSION, api_keys_key
from tests.support.gateway import redis_with_identities
from tests.support.ports import free_port
from tests.support.redis import RedisServer
from tests.support.service_process import ServiceProcess
from tests.support.store import PASSWORD, StoreServer

KEY = "a key of forty bytes that only tests know"


@dataclass(frozen=True)
class Page:
    """An answer of the console."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Console(ServiceProcess):
    """The process, and a client of it."""

    def __init__(self, directory: Path, redis: RedisServer, store_url: str, **settings: str) -> None:
        self.port = free_port()
        own = {
            "ASSAY_CONSOLE_LISTEN_PORT": str(self.port),
            "ASSAY_CONSOLE_SESSION_KEY": KEY,
            "ASSAY_STORE_URL": store_url,
            "ASSAY_STORE_USER": "console",
            "ASSAY_STORE_PASSWORD": PASSWORD,
        }
        super().__init__("console", directory, redis, "console.log", **own | settings)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def link(self, at: float | None = None) -> str:
        """Return the path of a link that signs in, as `assay console url` prints it."""
        return f"/login?token={link_token(KEY.encode(), time.time() if at is None else at)}"

    def session(self, role: str = "OPERATOR", name: str = "jo", hours: float = 1) -> dict[str, str]:
        """Return the header of a session with a role."""
        value = Signer(KEY.encode(), 0).session(name, role, time.time(), hours)
        return {"Cookie": f"{self.cookie}={value}"}

    @property
    def cookie(self) -> str:
        """The name of the session's cookie."""
        return f"assay_{self.port}"

    def key(self, kind: KeyKind = KeyKind.READ, project: str = "shop") -> str:
        """Make a key of the API."""
        key, key_id = new_key(kind)
        record = KeyRecord(id=key_id, sha256=key_hash(key), kind=kind, project=project, created_at=datetime.now(UTC))
        self._write(as_fields(record))
        return key

    def revoke(self, key: str) -> None:
        """Revoke a key."""
        self._write(revocation(key.split("_")[2], datetime.now(UTC)))

    def _write(self, fields: Mapping[str, str]) -> None:
        with self.redis.client() as client:
            client.hset(api_keys_key(), mapping={**fields, API_KEYS_VERSION: new_event_id()})

    def get(self, path: str, role: str | None = "VIEWER", **headers: str) -> Page:
        """Read a page, as a person with a role, or without a session (None). `_` in the names of headers stands for `-`."""
        return self.request("GET", path, role, None, **headers)

    def post(self, path: str, form: Mapping[str, str], role: str | None = "OPERATOR", **headers: str) -> Page:
        """Send a form as a page of this console does."""
        own = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}
        return self.request("POST", path, role, urlencode(form).encode(), **own | headers)

    def request(self, method: str, path: str, role: str | None, body: bytes | None, **headers: str) -> Page:
        """Send one request on a new connection."""
        told = {name.replace("_", "-"): text for name, text in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, (self.session(role) if role else {}) | told)
            answer = connection.getresponse()
            return Page(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@contextmanager
def running_console(directory: Path, store: StoreServer, **settings: str) -> Iterator[Console]:
    """Run a console on a store and a new Redis."""
    redis = redis_with_identities(directory)
    try:
        running = Console(directory, redis, store.url, **settings)
        try:
            yield running.start()
        finally:
            running.kill()
    finally:
        redis.stop()
