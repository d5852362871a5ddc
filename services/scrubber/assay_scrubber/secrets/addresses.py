"""Match secrets in URLs: OAuth codes, signatures, links that log in, reset or invite."""

import re

from assay_scrubber.family import LiteralRule, View

from .values import is_credential, is_slug, is_token

_VALUE = rb"([\w.\-~+/%=]{8,2048}+)"
_WORDS = (
    b"reset recover magic invit activat confirm verif unsubscrib webhook signin sign-in hook. hooks. hook/ hooks/ login/ share/"
    b" token/ session/ onetime one-time passwordless unlock"
    b" restablec recuper reinitialis zuruecksetz passwort aktivier verificar wachtwoord"
)
_LINK = re.compile(
    rb"(?:%b)[a-z\-_]{0,20}+(?:/[a-z0-9\-_]{1,24}){0,3}?/([\w.\-~=+/]{10,512}+)(?=[\s\"'`<>)\]}?#/,;]|$)"
    % b"|".join(map(re.escape, _WORDS.split()))
)
_IN_ADDRESS = re.compile(rb"(?:https?|wss?)://[^\s\"'`<>]{1,160}$|(?:^|[\s\"'`(])/[^\s\"'`<>]{0,96}$")
_NAMES = (
    rb"(?:appid|code|code_verifier|device_code|user_code|auth|oauth_token|oauth_verifier|oauth_signature|sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token"
    rb"|x-goog-signature|x-goog-credential|sid|session|session_?id|ticket|samlresponse|samlrequest|assertion|id_token_hint|jwt|hash|hmac|key"
    rb"|k|t|otp|invite|magic|verify|confirm|reset|st|policy|key-pair-id|awsaccesskeyid|googleaccessid|rkey|pass_?key|auth_?key|app_?key"
    rb"|client_?key|license|session_?key|access_?key)="
)
_PARAMETER = re.compile(rb"[?&#;](?:amp;)?" + _NAMES + _VALUE)
_OFTEN_HARMLESS = frozenset(
    (b"k", b"t", b"hash", b"st", b"policy", b"session", b"verify", b"confirm", b"reset", b"invite", b"magic")
)
_NUMBERED = re.compile(rb"[A-Za-z\-_/.]+[0-9]+|[0-9]+[A-Za-z\-_/.]+")
_UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


_SHORTEST_HARMLESS, _SHORTEST_PART = 20, 16


def _is_of_all_kinds(value: bytes) -> bool:
    """Return whether a value has letters of both cases and digits."""
    return not value.islower() and not value.isupper() and any(c in b"0123456789" for c in value)


def _link(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end = match.span(1)
    value = view.raw[start:end]
    if (
        _NUMBERED.fullmatch(value)
        or is_slug(value)
        or not _IN_ADDRESS.search(view.low, max(0, match.start() - 168), match.start())
    ):
        return None
    if len(value) < _SHORTEST_PART:
        return (start, end) if value.isalnum() and _is_of_all_kinds(value) and is_credential(value) else None
    return (start, end) if is_token(value) or is_token(value.replace(b"-", b"")) else None


# A code in a link that logs in or confirms: `/verify?code=482913`; the secret address of a calendar.
_CODE = re.compile(
    rb"(?:confirm|verif|log-?in|sign-?in|otp|2fa|mfa|activat|reset|auth)[a-z\-]{0,16}/?\?(?:[\w\-]{1,24}=[\w.%@+\-]{0,64}&(?:amp;)?){0,3}?"
    rb"(?:code|c|pin|token)=(?P<value>[0-9]{4,8})(?![\w.%])"
)
_CALENDAR = re.compile(rb"/private-(?P<value>[0-9a-f]{32})/")


def _value(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span("value")


def _parameter(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Return the value of a parameter that grants access, if it looks random."""
    start, end = match.span(1)
    value = view.raw[start:end]
    name = match.group(0)[1 : start - match.start() - 1].removeprefix(b"amp;")
    if name in _OFTEN_HARMLESS and len(value) < _SHORTEST_HARMLESS and not _is_of_all_kinds(value):
        return None
    return (
        (start, end)
        if is_token(value.replace(b"%2F", b"/").replace(b"%2B", b"+")) and not _UUID.fullmatch(value)
        else None
    )


_THIN = re.compile(rb"thin:[\w$#.\-]{1,64}/(?P<value>[^\s@\"']{2,128})@")


def _thin(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span("value")


RULES = (
    LiteralRule(_THIN, _thin, anchored=True, needle=b"thin:"),
    *(
        LiteralRule(
            _LINK,
            _link,
            lower=True,
            anchored=True,
            needle=word,
            opens=re.escape(word) + rb"[a-z\-_]*/",
        )
        for word in _WORDS.split()
    ),
    *(
        LiteralRule(_CODE, _value, lower=True, anchored=True, fewest=4, needle=word, opens=word + rb"[a-z\-]*/?\?")
        for word in (
            b"confirm",
            b"verif",
            b"login",
            b"log-in",
            b"signin",
            b"sign-in",
            b"otp",
            b"2fa",
            b"mfa",
            b"activat",
            b"reset",
            b"auth",
        )
    ),
    LiteralRule(_CALENDAR, _value, lower=True, anchored=True, fewest=1, needle=b"/private-"),
    LiteralRule(_PARAMETER, _parameter, lower=True, opens=rb"[?&#;]" + _NAMES),
)
