"""One HTTP connection to the gateway, kept open between requests.

It is `http.client` of the standard library: it has no locks that a fork could catch, and no dependencies. Redirects are
never followed. Proxies come from the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from errno import EINVAL
from typing import Any
from urllib.parse import unquote, urlsplit

from assay_schema.settings import CaptureSettings, SettingsError

#: Path of the gateway that takes events.
EVENTS_PATH = "/v1/events"
#: Most bytes that are read of an answer: the gateway lists at most 100 rejections.
ANSWER_MAX_BYTES = 1024 * 1024
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|::1")


@dataclass(frozen=True)
class Address:
    """The gateway's address."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        """Return host and port, for the log and the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def exposes_key(self) -> bool:
        """True if the key crosses a network unencrypted."""
        return self.scheme == "http" and not _LOOPBACK.fullmatch(self.host)


@dataclass(frozen=True)
class Answer:
    """An answer: its status, the header `Retry-After`, and its body."""

    status: int
    retry_after: str | None
    body: bytes


_PORTS = {"http": 80, "https": 443}


def address_of(settings: CaptureSettings) -> Address:
    """Return the address in `capture.url`. Raises `SettingsError`."""
    text = settings.url or ""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    usable = text.isascii() and text.isprintable() and " " not in text
    if not usable or parts.scheme not in _PORTS or not parts.hostname or port == 0 or parts.query or parts.fragment:
        raise SettingsError("capture.url (or ASSAY_CAPTURE_URL): must look like https://assay.example.com")
    if "@" in parts.netloc:
        raise SettingsError("capture.url (or ASSAY_CAPTURE_URL): must have no user; put the key into capture.key_file")
    path = parts.path.rstrip("/").removesuffix(EVENTS_PATH) + EVENTS_PATH
    return Address(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path)


class GatewayConnection:
    """The connection. Not thread-safe."""

    def __init__(self, address: Address, settings: CaptureSettings) -> None:
        self._address = address
        self._timeout_s = settings.timeout_s
        self._ca_file = settings.tls_ca_file
        self._open: Any = None  # an HTTPConnection, imported at the first request
        self._headers: dict[str, str] = {}
        self._target = address.path

    def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send one request and read the answer.

        Raises OSError or `http.client.HTTPException`, and then closes the connection.
        """
        try:
            if self._open is None:
                self._connect()
            refusal = self._send(body, {**self._headers, **headers})
            with self._answer(refusal) as answer:
                read = answer.read(ANSWER_MAX_BYTES)
                again = not answer.will_close and answer.isclosed()
                found = Answer(answer.status, answer.headers.get("Retry-After"), read)
        except BaseException:
            self.close()
            raise
        if not again:  # the server closes it, or there is more than anyone reads
            self.close()
        return found

    def _send(self, body: bytes, headers: Mapping[str, str]) -> OSError | None:
        """Send a request. A server that refuses its body before the end has perhaps answered: return that error."""
        try:
            self._open.request("POST", self._target, body, headers)
        except (BrokenPipeError, ConnectionResetError) as error:
            return error
        return None

    def _answer(self, refusal: OSError | None) -> Any:
        from http.client import HTTPException

        try:
            return self._open.getresponse()
        except (OSError, HTTPException):
            if refusal is not None:
                raise refusal from None
            raise

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._open = self._open, None
        if connection is not None:
            with suppress(OSError):
                connection.close()

    def _connect(self) -> None:
        from http.client import HTTPConnection, HTTPSConnection

        address, proxy = self._address, self._proxy()
        host, port = (proxy.hostname, proxy.port or _PORTS.get(proxy.scheme, 80)) if proxy else (None, None)
        credentials = _credentials(proxy) if proxy else {}
        self._headers = {"Host": address.place}
        self._target = address.path
        if address.scheme == "https":
            import ssl

            context = ssl.create_default_context(cafile=None if self._ca_file is None else str(self._ca_file))
            connection = HTTPSConnection(
                host or address.host, port or address.port, timeout=self._timeout_s, context=context
            )
            if proxy:
                connection.set_tunnel(address.host, address.port, credentials)
            self._open = connection
            return
        if proxy:
            self._target = f"http://{address.place}{address.path}"
            self._headers |= credentials
        self._open = HTTPConnection(host or address.host, port or address.port, timeout=self._timeout_s)

    def _proxy(self) -> Any:
        """Return the parts of the address of the proxy for the gateway, or None."""
        from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

        proxies = getproxies_environment()
        host = self._address.host
        if _LOOPBACK.fullmatch(host) or proxy_bypass_environment(f"{host}:{self._address.port}", proxies):
            return None
        text = proxies.get(self._address.scheme) or proxies.get("all")
        if not text:
            return None
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if parts.scheme != "http" or not parts.hostname:
            raise OSError(EINVAL, "the proxy in the environment must be http://host:port")
        return parts


def _credentials(proxy: Any) -> dict[str, str]:
    if proxy.username is None:
        return {}
    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
