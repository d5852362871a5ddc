"""Match secrets under keys of objects, in documents and in their text alike.

In a log line, pretty-printed, or in a string.
"""

import re

from assay_scrubber.family import Judge, LiteralRule, View
from assay_scrubber.json_scrub import hint_of
from assay_scrubber.lexicon import Announces

from . import assigned, headers
from .assigned import PAGES
from .values import is_credential, is_length, is_lone_token, is_spoken, is_token, is_written, is_written_with_digits

_HINT_PASSWORD = re.compile(
    rb"(?:^| )(?:password|passwd|passphrase|(?:secret|security) answer|pass phrase"
    rb"|pass|pwd|psk|passwort|pgpassword|passord|mot de passe|motdepasse|%b|%b+)"
    rb"(?: [0-9]| value| string| confirm| confirmation| new| old)? $"
    % (b"|".join(assigned.FOREIGN), Announces.PASSWORD.byte)
)
_HINT_TOKEN = re.compile(
    rb"(?:^| )(?:secret|token|apikey|authtoken|credentials?|signature|auth|csrf|csrftoken|jsessionid|phpsessid|jwt|bearer|sig"
    rb"|code verifier|device code|(?:laravel|ci) session"
    rb"|(?:api|access|private|client|secret|signing|account|auth|subscription|encryption|webhook|master|shared"
    rb"|license|routing) key(?: base| id)?|%b+)(?: part[0-9]{0,2})? $" % Announces.TOKEN.byte
)


# Keys that name only credentials: the value may be short.
_HINT_SHORT = re.compile(
    rb"(?:^| )(?:secret(?: (?:access )?key)?|apikey|apitoken|authtoken|accesstoken|secretkey|clientsecret|appsecret|apisecret"
    rb"|(?:api|access|auth|secret|client|consumer|app|signing|encryption|master|private|admin|webhook|license|wifi|wi fi|wlan|network) key"
    rb"|(?:api|access|auth|authentication|authorization|bearer|refresh|secret|security|bot|deploy|personal|private|admin|client|app|oauth2?"
    rb"|jwt|service|webhook|login|reset|vault|github|gitlab|slack|telegram|discord|npm|device"
    rb"|push|invite|id|session|csrf|xsrf|user) token) $"
)
_HINT_LONE = re.compile(rb"^(?:x )?token $")


def _is_short(value: bytes) -> bool:
    return is_token(value) or is_credential(value)


def _is_lone(value: bytes) -> bool:
    return is_token(value) or is_lone_token(value)


_HINT_CODE = re.compile(
    rb"(?:^| )(?:otp|totp|pin|pin code|pincode|puk|cvv2?|cvc2?|cvn|passcode|(?:verification"
    rb"|security|auth|authentication|confirmation|login|access"
    rb"|sms|one time"
    rb"|2fa|mfa|two factor|reset|recovery|backup|otp|pin|unlock|activation|pairing|validation|door|gate|alarm|card) code|%b+) $"
    % Announces.CODE.byte
)
_CODE = re.compile(rb"[0-9]{3,8}|(?=[A-Za-z\-]*[0-9])[A-Za-z0-9]{4,10}|[0-9]{3}[ \-][0-9]{3}")
_HINT_AUTHORIZATION = re.compile(rb"(?:^| )authorization $")
_HINT_COOKIE = re.compile(rb"(?:^| )cookies? (?:value )?$")


# Generic session names, of any framework; `_session_id` is a cookie's, `session_id` a column of many tables.
_HINT_SESSION = re.compile(rb"(?:^| )(?:sid|session(?: ?id)?) $")
_HINT_COOKIE_OF_SESSION = re.compile(rb"^(?: session id|connect sid) $")
_HINT_PW = re.compile(rb"(?:^| )pw $")
_HINT_PASSCODE = re.compile(rb"(?:^| )passcode $")


def _is_code(value: bytes) -> bool:
    return _CODE.fullmatch(value) is not None or is_token(value)


def _is_passcode(value: bytes) -> bool:
    return _CODE.fullmatch(value) is not None or is_written_with_digits(value)


def _is_pw(value: bytes) -> bool:
    """Judge a value of `pw`, which also has other meanings, such as a width."""
    return not is_length(value) and (is_spoken(value) or (is_written_with_digits(value) and is_token(value)))


def keyed(hint: bytes) -> Judge | None:
    """Return the check of a whole value under the key whose words are `hint`, if any."""
    if PAGES.search(hint):
        return None
    if _HINT_PASSCODE.search(hint):
        return _is_passcode
    if _HINT_CODE.search(hint):
        return _is_code
    if _HINT_AUTHORIZATION.search(hint):
        return headers.is_authorization
    if _HINT_COOKIE.search(hint):
        return headers.is_cookie
    if _HINT_PASSWORD.search(hint):
        return is_written
    if _HINT_PW.search(hint):
        return _is_pw
    if _HINT_SHORT.search(hint):
        return _is_short
    if _HINT_LONE.search(hint):
        return _is_lone
    if _HINT_COOKIE_OF_SESSION.search(hint):
        return headers.is_session_cookie
    if _HINT_SESSION.search(hint):
        return headers.is_session
    return is_token if _HINT_TOKEN.search(hint) else None


# A member of an object in text, as JSON and Python print it: its key is judged as in a document.
_MEMBER = re.compile(
    rb"(?:signature|cookies?|token|secret|jwt|verifier|code|phrase|key|session(?:[_\-]?id)?|sid|answer|pin)(?P<escapes>\\{0,15})(?P<quote>[\"'])"
    rb"[ \t]{0,8}:[ \t]{0,8}(?:\\{0,15}(?P=quote)(?P<value>[^\"'\n\\]{4,4096}+)\\{0,15}(?P=quote)|(?P<number>[0-9]{3,8})(?=[\s,}\]]))"
)
_KEY = re.compile(rb"[\"']([\w.\-]{1,48})$")
_LONGEST_KEY = 50


#: Keys under which a number may be a secret.
_OF_NUMBERS = frozenset((_is_code, _is_passcode))


def _member(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end = match.span("value" if match["value"] else "number")
    named = match.start("escapes")
    key = _KEY.search(view.raw, max(0, named - _LONGEST_KEY), named)
    if key is None:
        return None
    judge = keyed(hint_of(key.group(1).decode("latin-1")))
    if judge is None or (match["number"] and judge not in _OF_NUMBERS):
        return None
    return (start, end) if judge(view.raw[start:end]) else None


_LAST_WORDS = b"signature token secret cookie cookies jwt verifier code phrase key session sessionid session_id sid answer pin".split()
RULES = tuple(
    LiteralRule(
        _MEMBER,
        _member,
        lower=True,
        anchored=True,
        needle=word,
        opens=word + rb"\\*[\"'][ \t]*:[ \t]*(?:\\*[\"']|[0-9])",
    )
    for word in _LAST_WORDS
)
