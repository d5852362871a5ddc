"""Match URLs that carry credentials: `scheme://user:secret@host`, or a password parameter."""

import re

from assay_scrubber.family import Family, LiteralRule, Literals, View
from assay_scrubber.projection import OTHER
from assay_scrubber.secrets.values import is_placeholder
from assay_scrubber.taxonomy import Category

_SCHEME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-:"
_LONGEST_SCHEME = 32
_TRAILING = b".,;:!?)]}*_|"
_OTHER = bytes([OTHER])
_WEB = (b"http", b"https", b"ws", b"wss")
_SHORTEST_BARE_TOKEN = 16

# Always consumes the whole URL, so that URLs inside it are not read again and again.
_URL = re.compile(rb"://([^\x00-\x20\"'`<>\\]{1,4096}+)")
_PASSWORD_PARAMETER = re.compile(
    rb"[?&;](?:password|passwd|pwd|pass|secret|access_token|api_?key)=([^&;\s$<{*\[][^&;\s]{0,64})"
)
_UNESCAPED = re.compile(rb"[\w.%+\-]{1,64}:[^\s/@]{1,128}+@(?=[\w\[])")
_ESCAPED = re.compile(rb"[nrtbf]|u[0-9A-Fa-f]{4}")
_TEMPLATE = re.compile(rb"\$\{?[A-Za-z_]\w*\}?|\{\{?[^}]*\}\}?|%[sd]|\*+|<[^>]*>|x{3,}|\[REDACTED\]")


def _has_credentials(scheme: bytes, rest: bytes) -> bool:
    """Return whether `rest`, the text from `://` to the end or the next `://`, has credentials."""
    if b"=" in rest and any(not is_placeholder(found.group(1)) for found in _PASSWORD_PARAMETER.finditer(rest.lower())):
        return True
    cut = len(rest)
    for mark in b"/?#":
        found = rest.find(mark)
        if 0 <= found < cut:
            cut = found
    at = rest.rfind(b"@", 0, cut)
    if at < 0 and (unescaped := _UNESCAPED.match(rest)) is not None:
        at = unescaped.end() - 1  # a password with an unescaped `#` or `?`
    if at < 0 and scheme.lower().rpartition(b"+")[2] not in _WEB:
        at = rest.rfind(b"@")  # a database password with an unescaped slash
    if at < 0:
        return False
    user, colon, password = rest[:at].partition(b":")
    if b"/" in user:
        return False
    if not colon:
        return len(user) >= _SHORTEST_BARE_TOKEN and any(c in b"0123456789" for c in user)
    return bool(password) and _TEMPLATE.fullmatch(password) is None


def _without_prose(body: bytes) -> bytes:
    """Drop what follows the URL: punctuation, and text in scripts that put no space there."""
    told = body.rfind(b"@") + 2  # a password may be in any script, and so may a host begin
    for parameter in _PASSWORD_PARAMETER.finditer(body.lower()):
        told = max(told, parameter.end())
    prose = body.find(_OTHER, told)
    return (body if prose < 0 else body[:prose]).rstrip(_TRAILING)


def _url(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    position = match.start()
    pieces = match.group(1).split(b"://")
    left = view.raw[max(0, position - _LONGEST_SCHEME) : position]
    for piece in pieces:
        before, scheme = left[: len(left.rstrip(_SCHEME))], left[len(left.rstrip(_SCHEME)) :]
        if before.endswith(b"\\") and (escape := _ESCAPED.match(scheme)):
            scheme = scheme[escape.end() :]  # the letter belongs to the escape: JSON inside JSON remains valid
        scheme = scheme.lstrip(b"0123456789+.-:")
        # Between two URLs stands the scheme of the second, which is not part of the first one's credentials.
        if scheme and _has_credentials(scheme.rsplit(b":", 1)[-1], piece):
            rest = match.group(1)[position - match.start() :]
            return position - len(scheme), position + 3 + len(_without_prose(rest))
        position += 3 + len(piece)
        left = piece[-_LONGEST_SCHEME:]
    return None


FAMILY = Family(
    name="connection_url",
    category=Category.CREDENTIAL,
    rank=10,
    gate=Literals((b"://",), mark=b":"),
    rules=(LiteralRule(_URL, _url, anchored=True, needle=b"://"),),
    description="URLs that carry credentials, in the authority or as a password parameter.",
    examples=("postgres://user:secret@host/db", "redis://:secret@host", "jdbc:mysql://host/db?user=a&password=b"),
    counterexamples=("https://example.com/path?q=1", "postgres://${USER}:${PASSWORD}@host/db"),
)
