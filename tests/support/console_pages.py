"""The console's application in this process, against a real store and a real Redis."""

import contextlib
import html
import math
import re
import time
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import Any

import httpx

from assay_access.console_links import Signer
from assay_console.application import Console
from assay_console.login import Login
from assay_console.people import Role
from assay_console.reads import Reads
from assay_runtime.connection import connect
from assay_schema.settings import Settings
from assay_ui import formats


class Pages:
    """Asks for pages as a signed-in person."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def html(self, path: str, status: int = 200) -> str:
        """Return a page."""
        answer = await self._client.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    async def json(self, path: str, status: int = 200) -> Any:
        """Return a document of the read API."""
        answer = await self._client.get(f"/api/v1{path}")
        assert answer.status_code == status, answer.text
        return answer.json()

    async def post(self, path: str, status: int = 303, **fields: str) -> httpx.Response:
        """Submit a form of the console's own page."""
        answer = await self._client.post(path, data=fields, headers={"sec-fetch-site": "same-origin"})
        assert answer.status_code == status, answer.text
        return answer


@contextlib.asynccontextmanager
async def console(settings: Settings, role: Role = Role.OPERATOR) -> AsyncIterator[Pages]:
    """Serve the console's pages to a person with a role."""
    signer = Signer(b"k" * 32, time.time())
    redis = connect(settings.redis, attempts=0)
    reads = Reads(settings.store, settings.console.page_reads)
    application = Console(settings, reads, redis, Login(settings.console, signer, None, redis)).application()
    cookies = {f"assay_{settings.console.listen_port}": signer.session("ada", role.name, time.time(), 1.0)}
    transport = httpx.ASGITransport(application)
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", cookies=cookies) as client:
            yield Pages(client)
    finally:
        reads.close()
        await redis.aclose()


def shown(page: str) -> str:
    """Return the text that a page shows, with its labels and titles, as one line."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page[page.index("<main") :], flags=re.DOTALL)
    attributes = " ".join(re.findall(r'(?:title|aria-label|data-label|datetime|value)="([^"]*)"', body))
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body) + " " + attributes).split())


def missing(document: Any, page: str, *drawn: str) -> list[str]:
    """Return the numbers and times of a document that its page does not show. `drawn`: fields that are only drawn."""
    text = shown(page)
    return [f"{where}={value}" for where, value in _leaves(document, "", drawn) if not _is_in(value, text)]


def _leaves(value: Any, where: str, drawn: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in drawn:
                yield from _leaves(each, f"{where}.{name}", drawn)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each, where, drawn)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield where, value
    elif isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", value):
        yield where, datetime.fromisoformat(value)


def _is_in(value: float | datetime, text: str) -> bool:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}" in text
    looks = {formats.number(value), *(formats.number(value, digits) for digits in range(5)), f"{value:.3g}"}
    looks |= {formats.share(value), formats.share(value, 0), formats.milliseconds(value), formats.duration(value)}
    spaced = {" ".join(each.split()) for each in looks}
    return any(re.search(rf"(?<![\d.]){re.escape(each)}(?![\d])", text) for each in spaced) or not math.isfinite(value)
