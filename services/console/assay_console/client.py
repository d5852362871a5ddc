"""Read the console's documents from a program or a notebook.

    from assay_console.client import Client

    client = Client("http://127.0.0.1:9112", key)
    for event in client.events(kind="answer", has="negative", t="7d"):
        print(event.time, event.text)

A document has the same fields as the page of its name; docs/openapi/console.json lists them. Raises `ClientError`.
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from pydantic import BaseModel, ValidationError

from assay_console.page import Page
from assay_console.pages import PAGES
from assay_console.views.events import Events
from assay_operations.events.rows import EventRow

#: Seconds that an answer may take; a search takes five.
TIMEOUT_S = 30.0


class ClientError(Exception):
    """The console did not answer with a document. `status` is the HTTP status, 0 without an answer."""

    def __init__(self, status: int, message: str, fix: str = "") -> None:
        super().__init__(f"{message}; {fix}" if fix else message)
        self.status, self.message, self.fix = status, message, fix


class Client:
    """Reads documents with a key of kind `read`."""

    def __init__(self, url: str, key: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._url, self._key, self._timeout_s = url.rstrip("/"), key, timeout_s
        # A proxy of the environment would learn the key.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def document(self, name: str, /, **parameters: str) -> Any:
        """Return the document of a page, such as `overview`, as its pydantic model.

        Parameters are those of the page's URL; those in its path are required, as `event_id` of `event`.
        """
        page = _pages().get(name)
        if page is None:
            raise ClientError(0, f"no document is named {name!r}", f"there are: {', '.join(sorted(_pages()))}")
        return _model(page, self._read(_path(page, parameters), parameters))

    def events(self, **filters: str) -> Iterator[EventRow]:
        """Yield the events that meet a filter, newest first, over all pages.

        Filters are the parameters of `/events`, such as `kind`, `service`, `has`, `q`, `t`; for names with other
        characters pass a mapping: `events(**{"latency>": "500"})`.
        """
        after = ""
        while True:
            page: Events = self.document("events", **filters, **({"after": after} if after else {}))
            if page.listed.value is None:
                raise ClientError(503, page.listed.message, page.listed.fix)
            yield from page.listed.value.rows
            if page.listed.value.next is None:
                return
            after = page.listed.value.next

    def _read(self, path: str, parameters: dict[str, str]) -> bytes:
        query = {name: value for name, value in parameters.items() if f"{{{name}}}" not in path}
        request = urllib.request.Request(  # noqa: S310  # the scheme is the caller's
            f"{self._url}{path}{'?' + urlencode(query) if query else ''}",
            headers={"Authorization": f"Bearer {self._key}", "Accept": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            raise _refusal(error.code, error.read()) from None
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise ClientError(0, f"no answer at {self._url} ({reason})", "is the console running?") from None


@cache
def _pages() -> dict[str, Page]:
    return {page.name: page for page in PAGES}


def _path(page: Page, parameters: dict[str, str]) -> str:
    """Return the path with its places filled in, and take their values out of the parameters."""

    def filled(place: re.Match[str]) -> str:
        if place[1] not in parameters:
            raise ClientError(0, f"{page.name} needs {place[1]}")
        return quote(parameters.pop(place[1]), safe="")

    return re.sub(r"\{(\w+)(?::\w+)?\}", filled, page.api_path)


def _model(page: Page, body: bytes) -> BaseModel:
    try:
        return page.document.model_validate_json(body)
    except ValidationError as error:
        raise ClientError(200, f"the document {page.name} has another form: {error.error_count()} problems") from None


def _refusal(status: int, body: bytes) -> ClientError:
    try:
        error = json.loads(body)["error"]
        return ClientError(status, str(error["message"]), str(error.get("fix", "")))
    except (ValueError, KeyError, TypeError):
        return ClientError(status, f"the console answered {status}", "is this the address of a console?")
