"""Links, sessions and notices of the console: signed, dated, and a link works once. Pure."""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field

#: Seconds within which the link of `assay console url` works, once.
LINK_S = 600
#: Seconds within which a page says what an action did.
NOTICE_S = 60
#: Fewest bytes of the key that signs links and sessions.
KEY_MIN_BYTES = 32


class RefusedLinkError(Exception):
    """A link or session is forged, expired or used. The text says which, and not more."""


@dataclass
class Signer:
    """Signs links and sessions, and checks them.

    A link works once: the process keeps the ids of those it accepted, and refuses all that were made before it started.
    """

    key: bytes
    started_at: float
    _used: dict[str, float] = field(default_factory=dict)

    def accept(self, token: str, now: float) -> None:
        """Accept the token of a link, once. Raises `RefusedLinkError`."""
        claims = self._claims(token, "link")
        made, identity = float(str(claims["at"])), str(claims["id"])
        if not made - 5 <= now < made + LINK_S:
            raise RefusedLinkError("this link has expired")
        if made < self.started_at or identity in self._used:
            raise RefusedLinkError("this link was used, or the console has restarted since it was made")
        self._used = {each: until for each, until in self._used.items() if until > now} | {identity: made + LINK_S}

    def session(self, name: str, role: str, now: float, hours: float) -> str:
        """Return the cookie of a person's session."""
        return self._signed({"use": "session", "name": name, "role": role, "until": now + hours * 3600})

    def person(self, cookie: str, now: float) -> tuple[str, str]:
        """Return the name and role of a session. Raises `RefusedLinkError`."""
        claims = self._claims(cookie, "session")
        if now >= float(str(claims["until"])):
            raise RefusedLinkError("the session has expired")
        return str(claims["name"]), str(claims["role"])

    def notice(self, text: str, name: str, path: str, now: float) -> str:
        """Return the cookie of what a page says once, to the person whose action it is about."""
        return self._signed({"use": "notice", "text": text, "name": name, "path": path, "until": now + NOTICE_S})

    def noticed(self, cookie: str, name: str, path: str, now: float) -> str:
        """Return the text of a notice.

        Raises `RefusedLinkError` if it is for another person or page, or expired.
        """
        claims = self._claims(cookie, "notice")
        if (claims["name"], claims["path"]) != (name, path) or now >= float(str(claims["until"])):
            raise RefusedLinkError("this notice is not for this page")
        return str(claims["text"])

    def _signed(self, claims: dict[str, object]) -> str:
        return _signed(self.key, claims)

    def _claims(self, token: str, use: str) -> dict[str, object]:
        body, _, signature = token.partition(".")
        encoded = body.encode(errors="replace")
        if not hmac.compare_digest(_signature(self.key, encoded).encode(), signature.encode(errors="replace")):
            raise RefusedLinkError("this link is not from this console")
        claims: dict[str, object] = json.loads(base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)))
        if claims["use"] != use:
            raise RefusedLinkError("this link is not from this console")
        return claims


def link_token(key: bytes, now: float) -> str:
    """Return the token of a new link."""
    return _signed(key, {"use": "link", "at": now, "id": secrets.token_urlsafe(12)})


def _signed(key: bytes, claims: dict[str, object]) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return f"{body.decode()}.{_signature(key, body)}"


def _signature(key: bytes, body: bytes) -> str:
    digest = hmac.new(key, b"assay console\0" + body, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
