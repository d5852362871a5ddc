"""Passwords, keys, tokens and codes that no prefix marks, where something else gives them away. See `assay_scrubber.secrets`."""

import re
from collections.abc import Callable

from assay_scrubber.family import Family, Literals, Together
from assay_scrubber.lexicon import Announces
from assay_scrubber.secrets import addresses, assigned, codes, commands, headers, pairs, prose, tables
from assay_scrubber.secrets.values import is_lone_token, is_short_key, is_token, is_written
from assay_scrubber.taxonomy import Category

_HINT_PASSWORD = re.compile(
    rb"(?:^| )(?:password|passwd|passphrase|passcode|pass|pwd|psk|passwort|pgpassword|passord|mot de passe|motdepasse|%b|%b+)"
    rb"(?: [0-9]| value| string| confirm| confirmation| new| old)? $"
    % (b"|".join(assigned.FOREIGN), Announces.PASSWORD.byte)
)
_HINT_TOKEN = re.compile(
    rb"(?:^| )(?:secret|token|apikey|authtoken|credentials?|signature|auth|csrf|sessionid|jsessionid|phpsessid"
    rb"|(?:api|access|private|client|secret|signing|account|auth|subscription|encryption|webhook|master|shared"
    rb"|license|routing) key(?: base)?|%b+)(?: part[0-9]{0,2})? $" % Announces.TOKEN.byte
)


# Keys that name nothing but a credential: what stands under them may be short.
_HINT_SHORT = re.compile(
    rb"(?:^| )(?:secret(?: (?:access )?key)?|apikey|apitoken|authtoken|accesstoken|secretkey|clientsecret|appsecret|apisecret"
    rb"|(?:api|access|auth|secret|client|consumer|app|signing|encryption|master|private|admin|webhook|license) key"
    rb"|(?:api|access|auth|authentication|authorization|bearer|refresh|secret|security|bot|deploy|personal|private|admin|client|app|oauth2?"
    rb"|jwt|service|webhook|login|reset|vault|github|gitlab|slack|telegram|discord|npm|device"
    rb"|push|invite|id|session|csrf|xsrf|user) token) $"
)
_HINT_LONE = re.compile(rb"^(?:x )?token $")


def _is_short(value: bytes) -> bool:
    return is_token(value) or is_short_key(value)


def _is_lone(value: bytes) -> bool:
    return is_token(value) or is_lone_token(value)


_HINT_CODE = re.compile(
    rb"(?:^| )(?:otp|totp|pin|puk|cvv2?|cvc2?|cvn|passcode|(?:verification|security|auth|authentication|confirmation|login|access"
    rb"|sms|one time"
    rb"|2fa|mfa|reset|recovery|backup|otp|pin) code|%b+) $" % Announces.CODE.byte
)
_CODE = re.compile(rb"[0-9]{3,8}|(?=[A-Za-z\-]*[0-9])[A-Za-z0-9]{4,10}|[0-9]{3}[ \-][0-9]{3}")
_HINT_AUTHORIZATION = re.compile(rb"(?:^| )authorization $")
_HINT_COOKIE = re.compile(rb"(?:^| )cookies? (?:value )?$")


def _is_code(value: bytes) -> bool:
    return _CODE.fullmatch(value) is not None


def _keyed(hint: bytes) -> Callable[[bytes], bool] | None:
    if _HINT_CODE.search(hint):
        return _is_code
    if _HINT_AUTHORIZATION.search(hint):
        return headers.is_authorization
    if _HINT_COOKIE.search(hint):
        return headers.is_cookie
    if _HINT_PASSWORD.search(hint):
        return is_written
    if _HINT_SHORT.search(hint):
        return _is_short
    if _HINT_LONE.search(hint):
        return _is_lone
    return is_token if _HINT_TOKEN.search(hint) else None


FAMILY = Family(
    name="secret",
    category=Category.CREDENTIAL,
    rank=45,
    gate=Literals((), mark=b":"),
    rules=assigned.RULES,
    keyed=_keyed,
    description="Passwords, keys, tokens and codes after the word, key, header or option that names them.",
    finds=(
        "password=hunter2!",
        'api_key: "9f8e7d6c5b4a39281706"',
        "<password>hunter2</password>",
        "Authorization: Basic dXNlcjpwYXNz",
        "Cookie: PHPSESSID=7e6f1c0b2a9d8e4f; theme=dark",
        "mysql -u app -phunter2 shop",
        "Your verification code is 381924",
    ),
    not_finds=(
        "password = get_password()",
        "token: str",
        "max_tokens=4096",
        "the password is required",
        "password=${PASSWORD}",
        "mysql -p shop",
        "error code 381924",
    ),
    more=(
        (Together(), prose.RULES),
        (Together(), (*assigned.UNMARKED, *assigned.IN_OTHER_LANGUAGES)),
        (Together(), commands.RULES),
        (Together(fewest=3), codes.RULES),
        (Together(), tables.RULES),
        (Together(), headers.RULES),
        (Together(), pairs.RULES),
        (Together(), addresses.RULES),
        (Literals((b"--pass",), mark=b"-"), (assigned.OPTION,)),
    ),
)
