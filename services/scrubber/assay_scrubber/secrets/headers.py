"""Match HTTP headers that contain credentials: `Authorization` (RFC 9110), cookies and session IDs."""

import re
from collections.abc import Iterator

from assay_scrubber.encoded import base64_at
from assay_scrubber.family import LiteralRule, View, nothing

from .values import TEMPLATE, is_placeholder, is_scrambled, is_slug, is_token, is_unmistakable

# As a line of a header, a tuple, JSON, a pair of name and value, or an argument of a command.
_AUTHORIZATION = re.compile(
    rb"(?:authorization(?:-bin|[ \t]header)?|auth[ \t]header)\\{0,6}[\"']?\]?[ \t]{0,4}"
    rb"(?:=>|[:=,]|(?:is|was|set[ \t]to)(?=[ \t])|\\{0,6}[\"'],?\s{0,4}\\{0,6}[\"']?value\\{0,6}[\"']?[ \t]{0,4}[:=]"
    rb"|[,\n]\s{0,8}\\{0,6}[\"']?value\\{0,6}[\"']?[ \t]{0,4}[:=]|(?P<alone>(?<=[ \t])))[ \t]{0,8}(?:b(?=[\"']))?\\{0,6}(?P<quote>[\"'`])?"
    rb"(?:(?!bearer)(?P<scheme>[a-z][a-z0-9\-_]{1,24})[ \t]{1,4})?(?P<value>[^\n\r]{1,4096}+)"
)
_PARAMETERS = re.compile(rb"[A-Za-z][\w\-]{0,24}=[^ ]")
_BASIC = re.compile(rb"basic[ \t]{1,4}+([A-Za-z0-9+/_\-]{8,}+={0,2})", re.IGNORECASE)
_SHORTEST, _SHORTEST_ID, _FEWEST_DIGITS, _LONG = 8, 20, 4, 40


def _authorization(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match the credentials after the scheme, which is kept; with parameters (Digest, AWS4) all of them."""
    start, end = match.span("value")
    if match["scheme"] is None and view.low.startswith(b"bearer ", start):
        return None  # matched by its own family
    if match["quote"] and (close := view.raw.find(match["quote"], start, end)) >= 0:
        end = close
    value = view.raw[start:end].rstrip(b" \t'\"`\\,)]}")
    if match["scheme"] is not None and _PARAMETERS.match(value):
        return (start, start + len(value)) if any(c in b"0123456789" for c in value) else None
    value = re.split(rb"[ \"'`\\]", value, maxsplit=1)[0].rstrip(b",;.)]}>")
    if len(value) < _SHORTEST or TEMPLATE.fullmatch(value) or is_placeholder(value):
        return None
    if view.raw[start + len(value) : start + len(value) + 1] == b"(":
        return None  # a call
    if match["alone"] is not None and match["scheme"] not in _SCHEMES and not is_unmistakable(value):
        return None  # `with header Authorization …`, and not `Authorization required …`
    known = match["scheme"] in _SCHEMES or (match["scheme"] is not None and _is_numbered(value))
    good = (is_token(value) or known) and _is_opaque(value)
    return (start, start + len(value)) if good else None


_SCHEMES = frozenset(
    (
        b"basic",
        b"token",
        b"apikey",
        b"api-key",
        b"jwt",
        b"ssws",
        b"key",
        b"digest",
        b"negotiate",
        b"ntlm",
        b"bot",
        b"hawk",
    )
)
_NOT_OPAQUE = re.compile(
    rb"[a-z]++|[A-Z][a-z]++|[A-Z_]++|.*[(){}<>].*|(?=.*\.)[a-z_]{2,}(?:\.[a-z_0-9]{2,})+.*|[a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)+"
)


def _is_numbered(value: bytes) -> bool:
    """Return whether a value is long with digits, like the credentials after an unknown scheme."""
    return len(value) >= 2 * _SHORTEST and sum(c in b"0123456789" for c in value) >= _FEWEST_DIGITS


def _is_opaque(value: bytes) -> bool:
    return _NOT_OPAQUE.fullmatch(value) is None


def _basic(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match text that decodes to `user:password` (RFC 7617), or stands in an Authorization header."""
    value = match.group(1)
    found = base64_at(value, 0, 0)
    if (found is None or ":" not in found[2]) and b"authorization" not in view.before(match.start()):
        return None
    return match.span(1)


_COOKIES = re.compile(
    rb"cookies?2?[\"']?[ \t]{0,2}(?:=>|[:=,]|(?<=<cookie )(?=[\w.\-]{1,64}=))[ \t]{0,4}\[?(?:b(?=[\"']))?(?:"
    rb"\{\\{0,3}(?=[\"'][\w.\-]{1,64}[\"'\\]{1,4}: ?[\"'\\])(?P<members>[^\n\r}]{3,4096}+)"
    rb"|\\{0,6}[\"']?(?=[\w.\-$]{1,64}=)(?P<pairs>(?:[^\n\r\"'`]|(?<==)\"[^\"\n]{0,4096}+\"){3,8192}+))"
)
_COOKIE_OPTION = re.compile(rb"(?:-b|--cookie) {0,2}[= ]\\{0,6}[\"']?(?=[\w.\-]{1,64}=)(?P<pairs>[^\n\r\"'`]{3,8192}+)")
_ONE_COOKIE = re.compile(
    rb"(?<![\w.\-$!%~=])(?P<name>[\w.\-$!%~]{1,96})\\{0,3}[\"']?(?:=|: ?)\\{0,3}[\"']?(?P<value>[^;,\s\"'`\\]{6,4096})"
)
#: Well-known session cookies: the name is distinctive, so the check of the value is weak.
_SESSION = re.compile(
    rb"^pw$|sess|logged|sid|auth|token|csrf|xsrf|jwt|login|remember|secret"
    rb"|credential|passw|user|account|ticket|cf_clearance|__host|__secure"
)
# A cookie in a call, a member or a log: `cookie("sid", "…")`, `COOKIES['sid'] = '…'`, `[Cookie] sid -> …`.
_COOKIE_CALLED = re.compile(
    rb"cookies?(?:\.[gs]et)?\\{0,3}[\]\"')( \[]{1,4}(?P<name>[\w.\-]{1,64})\\{0,3}[\"'\])]{0,3}\s{0,4}(?:=>|[,=:]|->)\s{0,4}\\{0,3}[\"']?"
    rb"(?P<value>[^\s\"';,()\\]{16,4096}+)(?![(=])"
)
_COOKIE_VALUE = re.compile(rb"cookie value:? {1,2}[\"']?(?P<value>[\w.\-%~+/]{16,512}+)(?![(=])")
_OF_A_COOKIE = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"version", b"priority"))
_MIXED = re.compile(rb"(?=.{16})(?=[a-z]*[A-Z])(?=[A-Z]*[a-z])(?!(?:[A-Z]?[a-z]++)++$)[A-Za-z]++|[A-Za-z]{20,}")


def _cookies(view: View, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    first, last = match.span(match.lastgroup or "pairs")
    for cookie in _ONE_COOKIE.finditer(view.raw, first, last):
        value, name = cookie["value"], cookie["name"].lower()
        if name in _OF_A_COOKIE or TEMPLATE.fullmatch(value) or is_placeholder(value):
            continue
        if _is_session(name, value):
            yield cookie.span("value")


def _is_session(name: bytes, value: bytes) -> bool:
    """Return whether a cookie of this name (lower case) and value contains a credential."""
    named = _SESSION.search(name) is not None and len(value) >= _SHORTEST
    if named and (any(c in b"0123456789" for c in value) or _MIXED.fullmatch(value)):
        return True
    return is_token(value) and not is_slug(value)


# Without a cookie header, only framework names count; `session_id` is a column of many tables.
_SESSION_ID = re.compile(
    rb"(?:j(?=s)|php|asp|asp\.net_|laravel_|ci_|django_|express\.)?sess(?:ion)?(?:_?id)?[a-z]{0,8}[\"']?[ \t]{0,2}[:=][ \t]{0,2}[\"']?"
    rb"(?P<value>[\w.\-%~+/]{16,512}+)"
)
_FRAMEWORK = re.compile(rb"(?:j|php|asp|asp\.net_|laravel_|ci_)$")
_NAMED_ID = re.compile(
    rb"(?:connect\.sid|csrf(?:token|middlewaretoken)?|xsrf-token|ssid|cftoken)[\"']?[ \t]{0,2}[:=][ \t]{0,2}[\"']?"
    rb"(?P<value>[\w.\-%~+/:]{16,512}+)"
)
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


# A generic session name, of any framework: the value must have letters of both cases, unlike analytics IDs.
_SID = re.compile(
    rb"(?<![a-z0-9])(?:sid|session(?:[_\-]?id)?)\\{0,3}[\"']?[ \t]{0,2}[:=][ \t]{0,2}\\{0,3}[\"']?(?P<value>[\w.\-%~+/]{20,512}+)"
)


def is_session(value: bytes) -> bool:
    """Return whether the value of a generic session name is random.

    Analytics IDs have letters of one case only.
    """
    if value.islower() or value.isupper():
        return False
    if is_scrambled(value):
        return True
    if len(value) < _SHORTEST_ID or (len(value) < _LONG and not _is_opaque(value)):
        return False
    return is_token(value) and not is_slug(value)


def is_session_cookie(value: bytes) -> bool:
    """Return whether a framework's own session cookie contains a session."""
    return is_token(value) or _UUID.fullmatch(value) is not None


def _sid(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span("value") if is_session(view.raw[slice(*match.span("value"))]) else None


def _session_id(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    value = match["value"]
    before = view.low[max(0, match.start() - 8) : match.start()]
    known = _FRAMEWORK.search(before) is not None or match.re is _NAMED_ID
    start = match.start("value")
    raw = view.raw[start : start + len(value)]
    return match.span("value") if known and (is_token(raw) or _UUID.fullmatch(raw)) else None


# Secret headers whose names contain no keyword of the other rules; a bearer token for a websocket.
_NAMES = (
    b"x-session-id x-amzn-oidc-data x-jfrog-art-api cf-access-client-id fastly-key grafana-session sec-websocket-protocol"
    b" x-ms-client-principal www-authenticate"
).split()
_NAMED_HEADER = re.compile(
    rb"(?:%b)\\{0,3}[\"']?[ \t]{0,2}[:=,][ \t]{0,4}\\{0,3}[\"']?(?:(?:bearer|access_token|negotiate|ntlm),?[ \t]?"
    rb"|base64url\.bearer\.authorization\.k8s\.io\.)?"
    rb"(?P<value>[\w.\-%%~+/=]{16,4096}+)" % b"|".join(_NAMES)
)
# `the session cookie is …`; a cookie file as curl and wget write it.
_COOKIE_SAID = re.compile(
    rb"cookie(?: [\w.\-]{2,24}){0,2}?(?: is| was| set to|:|=| ->){1,2}[ \t]{0,2}[\"'`]?(?P<value>[\w.\-%~+/]{16,512}+)(?!=)"
)
_JAR = re.compile(rb"\t(?:true|false)\t[0-9]{1,12}\t(?P<name>[\w.\-]{1,64})\t(?P<value>[^\s]{6,4096}+)")


def _opaque(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    value = view.raw[slice(*match.span("value"))]
    if is_slug(value) or _UUID.fullmatch(value):
        return None
    return match.span("value") if is_token(value) and _is_opaque(value) else None


def _kept(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    value = view.raw[slice(*match.span("value"))]
    return match.span("value") if _is_session(match["name"], value) else None


# Commands of Redis and of mail: `AUTH default …`, `AUTH PLAIN …`.
_AUTH = re.compile(rb"(?<![\w\-])AUTH (?:[\w.\-]{1,32} )?(?P<value>[^\s\"'<>]{6,512}+)[\"']?[ \t]*(?:\r?\n|$)")
_SET_HEADER = re.compile(
    rb"(?:proxy_set_header|add_header|requestheader set|header set|set_header) {1,4}[\"']?[\w\-]{0,48}(?:key|token|secret"
    rb"|auth)[\w\-]{0,16}[\"']? {1,4}[\"']?(?P<value>[^\s\"';]{8,512}+)"
)


def _sent(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    value = view.raw[slice(*match.span("value"))]
    named = match.re is _AUTH and any(c in b"0123456789" for c in value) and not TEMPLATE.fullmatch(value)
    return match.span("value") if named or is_token(value) else None


def is_authorization(value: bytes) -> bool:
    """Return whether the value of an Authorization header contains credentials.

    The token after `Bearer` has its own family.
    """
    text = b"authorization: " + value
    match = _AUTHORIZATION.match(text.lower())
    return match is not None and _authorization(View(text, text.lower(), b""), match) is not None


def is_cookie(value: bytes) -> bool:
    """Return whether a cookie, or the value of one, contains a session or a token."""
    if is_token(value):
        return True
    text = b"cookie: " + value
    match = _COOKIES.match(text.lower())
    return match is not None and any(_cookies(View(text, text.lower(), b""), match))


RULES = (
    *(
        LiteralRule(_AUTHORIZATION, _authorization, lower=True, anchored=True, needle=word)
        for word in (b"authorization", b"auth header")
    ),
    LiteralRule(
        _COOKIE_CALLED,
        _kept,
        lower=True,
        anchored=True,
        needle=b"cookie",
        opens=rb"cookies?(?:\.[gs]et)?\\*[\]\"')( \[]",
    ),
    LiteralRule(_COOKIE_VALUE, _opaque, lower=True, anchored=True, needle=b"cookie value"),
    LiteralRule(_AUTH, _sent, anchored=True, needle=b"auth ", fewest=1, opens=rb"(?:^|[\n>] ?)auth "),
    LiteralRule(_SET_HEADER, _sent, lower=True, anchored=True, needle=b"proxy_set_header ", fewest=1),
    LiteralRule(_SET_HEADER, _sent, lower=True, anchored=True, needle=b"header set ", fewest=1),
    LiteralRule(_SET_HEADER, _sent, lower=True, anchored=True, needle=b"add_header ", fewest=1),
    LiteralRule(_BASIC, _basic, anchored=True, needle=b"basic "),
    LiteralRule(_COOKIES, nothing, lower=True, anchored=True, needle=b"cookie", spread=_cookies),
    *(
        LiteralRule(_COOKIE_OPTION, nothing, lower=True, anchored=True, needle=option, spread=_cookies)
        for option in (b"-b ", b"--cookie ", b"--cookie=")
    ),
    LiteralRule(
        _SESSION_ID, _session_id, lower=True, anchored=True, fewest=1, needle=b"sess", opens=rb"(?:j|p|_|\.)sess"
    ),
    *(LiteralRule(_NAMED_HEADER, _opaque, lower=True, anchored=True, needle=word) for word in _NAMES),
    LiteralRule(
        _COOKIE_SAID,
        _opaque,
        lower=True,
        anchored=True,
        needle=b"cookie",
        opens=rb"cookie(?: [a-z0-9_.\-]+){0,2}(?: is| was| set|:|=| ->)",
    ),
    *(
        LiteralRule(
            _SID,
            _sid,
            lower=True,
            anchored=True,
            fewest=2,
            needle=word,
            opens=rb"(?:sid|session(?:[_\-]?id)?)\\*[\"']?[ \t]*[:=]",
        )
        for word in (b"sid", b"session")
    ),
    *(LiteralRule(_JAR, _kept, lower=True, anchored=True, needle=word) for word in (b"\ttrue\t", b"\tfalse\t")),
    *(
        LiteralRule(_NAMED_ID, _session_id, lower=True, anchored=True, fewest=1, needle=word)
        for word in (b"connect.sid", b"csrf", b"xsrf-token", b"ssid", b"cftoken")
    ),
)
