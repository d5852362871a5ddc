"""Who asks, and what they may do: roles, one-time links and sessions. Pure."""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass, field
from enum import IntEnum

#: Seconds within which the link of `assay console url` works, once.
LINK_S = 600
#: Fewest bytes of the key that signs links and sessions.
KEY_MIN_BYTES = 32


class Role(IntEnum):
    """What a person may do. Each role includes the ones before it."""

    #: Read every page.
    VIEWER = 1
    #: Label answers and edit datasets.
    LABELLER = 2
    #: Acknowledge alerts and requeue dead letters.
    OPERATOR = 3

    @property
    def label(self) -> str:
        """The role in lower case, as pages and the API show it."""
        return self.name.lower()


@dataclass(frozen=True)
class Person:
    """Who asks: a name for the audit records, and a role. `project` limits a key of the API to one project."""

    name: str
    role: Role
    project: str | None = None


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

    def link_token(self, now: float) -> str:
        """Return the token of a new link."""
        return self._signed({"use": "link", "at": now, "id": secrets.token_urlsafe(12)})

    def accept(self, token: str, now: float) -> None:
        """Accept the token of a link, once. Raises `RefusedLinkError`."""
        claims = self._claims(token, "link")
        made, identity = float(claims["at"]), str(claims["id"])
        if not made - 5 <= now < made + LINK_S:
            raise RefusedLinkError("this link has expired")
        if made < self.started_at or identity in self._used:
            raise RefusedLinkError("this link was used, or the console has restarted since it was made")
        self._used = {each: until for each, until in self._used.items() if until > now} | {identity: made + LINK_S}

    def session(self, person: Person, now: float, hours: float) -> str:
        """Return the cookie of a session."""
        return self._signed(
            {"use": "session", "name": person.name, "role": person.role.name, "until": now + hours * 3600}
        )

    def person(self, cookie: str, now: float) -> Person:
        """Return whose session a cookie is. Raises `RefusedLinkError`."""
        claims = self._claims(cookie, "session")
        if now >= float(claims["until"]):
            raise RefusedLinkError("the session has expired")
        return Person(str(claims["name"]), Role[str(claims["role"])])

    def _signed(self, claims: dict[str, object]) -> str:
        body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
        return f"{body.decode()}.{self._signature(body)}"

    def _claims(self, token: str, use: str) -> dict[str, object]:
        body, _, signature = token.partition(".")
        encoded = body.encode(errors="replace")
        if not hmac.compare_digest(self._signature(encoded).encode(), signature.encode(errors="replace")):
            raise RefusedLinkError("this link is not from this console")
        claims: dict[str, object] = json.loads(base64.urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)))
        if claims["use"] != use:
            raise RefusedLinkError("this link is not from this console")
        return claims

    def _signature(self, body: bytes) -> str:
        digest = hmac.new(self.key, b"assay console\0" + body, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
