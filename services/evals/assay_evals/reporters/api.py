"""HTTP client for a tracker's API: JSON, retries of transient errors, and no key sent unencrypted."""

from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import stamina

from assay_evals.reporters import ReporterError

TIMEOUT_S = 30.0
TRIES = 4
#: The longest that an answer may make us wait before the next try.
PAUSE_MOST_S = 30.0
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
#: Advice for an error that a retry would not change.
_MEANING = {
    401: "the key is refused",
    403: "the key does not permit this",
    404: "nothing exists at this address",
    413: "the report is too large",
}


class _AgainError(Exception):
    """A retry may succeed, after the number of seconds in the answer, if any."""

    def __init__(self, why: str, pause_s: float | None = None) -> None:
        super().__init__(why)
        self.pause_s = pause_s


def _again(error: Exception) -> bool | float:
    if not isinstance(error, _AgainError):
        return False
    return True if error.pause_s is None else error.pause_s


class Api:
    """HTTP client.

    `who` is its name in messages. `headers` and `auth` contain keys, sent by https or locally.
    """

    def __init__(
        self, who: str, url: str, *, headers: Mapping[str, str] | None = None, auth: tuple[str, str] | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ReporterError(f"{who}: write its address as https://host, without a user or password in it")
        if (headers or auth) and parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise ReporterError(
                f"{who}: {parts.hostname} has an http:// address, and keys are not sent unencrypted over a network: use https://"
            )
        self.who = who
        self._client = httpx.Client(base_url=url.rstrip("/"), headers=headers, auth=auth, timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def send(self, method: str, path: str, body: Any = None, *, missing_ok: bool = False, **parameters: str) -> Any:
        """Return the answer's JSON; None for a 404 with `missing_ok`.

        Raises `ReporterError`, which never quotes the request or the answer.
        """
        try:
            for attempt in stamina.retry_context(on=_again, attempts=TRIES, timeout=120.0, wait_initial=0.2):
                with attempt:
                    answer = self._once(method, path, body, parameters)
        except _AgainError as error:
            raise ReporterError(f"{self.who}: {error}, {TRIES} times") from None
        if answer.status_code == 404 and missing_ok:
            return None
        if answer.status_code >= 300:
            why = _MEANING.get(answer.status_code, "it does not accept such a report")
            raise ReporterError(f"{self.who}: HTTP {answer.status_code} for {path.partition('?')[0]}: {why}")
        try:
            return answer.json() if answer.content else {}
        except ValueError:
            raise ReporterError(f"{self.who}: {path} did not answer with JSON: is this its API's address?") from None

    def _once(self, method: str, path: str, body: Any, parameters: Mapping[str, str]) -> httpx.Response:
        try:
            answer = self._client.request(method, path, json=body, params=parameters or None)
        except httpx.LocalProtocolError:
            raise ReporterError(
                f"{self.who}: a key or header contains a character that HTTP does not allow, such as a line break"
            ) from None
        except httpx.TransportError as error:
            raise _AgainError(f"not reached ({type(error).__name__})") from None
        if answer.status_code in _AGAIN:
            after = answer.headers.get("retry-after", "")
            pause_s = min(float(after), PAUSE_MOST_S) if after.isascii() and after.isdigit() else None
            raise _AgainError(f"HTTP {answer.status_code}", pause_s)
        return answer


def field(document: Any, *names: str, who: str) -> Any:
    """Return a value of an answer. Raises `ReporterError` if it is missing."""
    for name in names:
        if not isinstance(document, dict) or name not in document:
            raise ReporterError(f"{who}: its answer has no {'.'.join(names)}: is this its API's address?")
        document = document[name]
    return document
