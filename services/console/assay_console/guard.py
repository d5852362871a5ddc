"""Checks of every request, and headers of every answer: hosts, origins, content policy.

A page of another site can make a browser send requests here. `Host` is checked against the allowed names (DNS
rebinding), and a request that changes something must come from a page of this console (`Sec-Fetch-Site`, else
`Origin`). No page may load, run or send anything but the console's own files.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": _CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # the URL of a page may quote captured text
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE = {"GET", "HEAD"}
#: Largest body of a form, in bytes.
BODY_MAX = 1 << 20


class Guard:
    """Refuses requests for other hosts and changes asked by other sites; adds the headers of security."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    out[name] = value
                out.setdefault("cache-control", "no-store")
            await send(message)

        if why := self._refusal(scope["method"], headers):
            await PlainTextResponse(f"{why}\n", 403)(scope, receive, sent)
            return
        await self._app(scope, receive, sent)

    def _refusal(self, method: str, headers: Headers) -> str:
        host = headers.get("host", "")
        if host_name(host) not in self._hosts:
            return "this host name is not in console.hosts"
        # A browser adds a cookie, and after a question also `Basic` or `Negotiate`, by itself, but never a key: with a key,
        # neither a session nor a proxy counts.
        if method in _SAFE or headers.get("authorization", "").lower().startswith("bearer "):
            return ""
        site = headers.get("sec-fetch-site")
        if site is not None:
            return "" if site in ("same-origin", "none") else "a page of another site asked for this change"
        return "" if _netloc(headers.get("origin", "")) == host else "a page of another site asked for this change"


def from_own_page(headers: Headers) -> bool:
    """Return True if a page of this console made the request, and no link from elsewhere. Pure.

    `Sec-Fetch-Site` decides. Browsers send none to addresses in clear, and old ones never: then `Origin` decides, or `Referer`, which
    other sites can leave out but not forge. The `Host` was checked before.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    given = headers.get("origin") or headers.get("referer", "")
    return _netloc(given) == headers.get("host", "")


def _netloc(address: str) -> str | None:
    try:
        return urlsplit(address).netloc or None
    except ValueError:
        return None


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port, in lower case. Pure."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name.lower().rstrip(".")
