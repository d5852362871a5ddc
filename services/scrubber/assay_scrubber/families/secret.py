"""Passwords, keys and tokens that no prefix marks, after the word that names them: `password=…`, `"api_key": "…"`.

The word alone is not enough, or all code would go: a value of letters only is a name (`password = get_password`), and so is
what holds brackets or dots between names. A password needs a digit or a mark, a key a length and a mixture as well.
"""

import re

from assay_scrubber.encoded import base64_at
from assay_scrubber.family import Family, Literals, Rule, View
from assay_scrubber.taxonomy import Category

_TAIL = (
    rb"(?:[_\-]?(?:key|value|string|id|hash|data|[0-9]))?(?:\\{0,6}[\"'`])?[\])]?"
    rb"[ \t]{0,8}+(=>|:=|={1,2}|:|>|is:?(?=[ \t])|(?<=[ \t]))[ \t]{0,8}+"
    rb"(?:\\{0,6}([\"'`])([^\"'`\n\\]{1,512}+)|([^\s\"'`,;&<>()\[\]{}|]{1,512}+))"
)
# Each begins with a literal, which the search skips to; what stands before the word is looked at last.
_PASS = re.compile(rb"pass(word|wd|phrase|wort|code)?" + _TAIL)
_PWD = re.compile(rb"pwd()" + _TAIL)
_SECRET = re.compile(rb"secret((?:[_\- ]?access)?[_\- ]?(?:key)?)" + _TAIL)
_KEY = re.compile(rb"key()" + _TAIL)
_TOKEN = re.compile(rb"token()" + _TAIL)
_SIG = re.compile(rb"sig()" + _TAIL)
_CREDENTIAL = re.compile(rb"credentials?()" + _TAIL)
_REST = re.compile(
    rb"(?:&[^\s\"'`<>&;]{1,64}(?![^\s\"'`<>&]{0,64}=))?"
)  # an ampersand in a password, but not the next parameter
_BEFORE_KEY = re.compile(
    rb"(?:api|access|accesskey|account|private|shared|signing|encryption|master|auth|consumer|client|storage|app|application|service|"
    rb"subscription|license|webhook|jwt|session|deploy|host|function|primary|secondary|secret|security|hmac|aes|sym|admin|server)[_\- ]?$"
)
_BASIC = re.compile(rb"basic[ \t]{1,4}+([A-Za-z0-9+/_\-]{8,}+={0,2})", re.IGNORECASE)
_HINT_PASSWORD = re.compile(
    rb"(?:^| )(?:password|passwd|passphrase|passcode|pass|pwd|passwort|pgpassword)(?: [0-9]| value| string)? $"
)
_HINT_TOKEN = re.compile(
    rb"(?:^| )(?:secret|token|apikey|authtoken|credentials?|signature|(?:api|access|private|client|secret|signing|account|auth) key) $"
)

_TEMPLATE = re.compile(
    rb"\$\{?\w.*|\{.*|%\w?\(?.*\)?[sd]?|\*+|<.*|x{3,}|\.{2,}.*|-+|_+|\[.*|@.*|&.*|#.*|/.*|\\.*|https?:.*|\$\(.*|!.*:.*",
    re.IGNORECASE,
)
_NAME = re.compile(
    rb"[A-Za-z_]\w*+(?:(?:\.|->|::|-|/|:|\+)[A-Za-z_]\w*+)++|[A-Za-z]++[0-9]?+|[A-Za-z]++(?:_[A-Za-z0-9]++)++"
)
# A pinned version of a package that is called token or key: `token==17.3.61.dev8421`, `key==v9.24.29+5e3a1f20`.
_VERSION = re.compile(rb"=?v?[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}(?:[.+\-][0-9A-Za-z.]{1,16})?")
_PLACEHOLDERS = frozenset(
    (b"true", b"false", b"null", b"none", b"undefined", b"string", b"password", b"secret", b"required", b"optional", b"redacted", b"nil",
     b"str", b"bytes", b"hidden", b"masked", b"changeme", b"example", b"empty", b"unknown", b"n/a")
)  # fmt: skip
_LONG_BASE64 = re.compile(rb"(?=[A-Za-z/+]*[0-9])(?=[0-9A-Z/+]*[a-z])(?=[0-9a-z/+]*[A-Z])[A-Za-z0-9+/]{32,}={0,2}")
_DIGIT_INSIDE = re.compile(rb"[0-9][A-Za-z]")
_FEWEST_DIGITS = 2
_DIGITS = b"0123456789"
_NOT_DIGITS = bytes(b for b in range(256) if b not in _DIGITS)
_SHORTEST_PASSWORD, _SHORTEST_TOKEN = 5, 12
_SHORTEST_KEYED, _LONGEST_KEYED, _MOST_SPACES = 4, 4096, 6


def _is_password(value: bytes, *, quoted: bool) -> bool:
    if len(value) < _SHORTEST_PASSWORD or _TEMPLATE.fullmatch(value) or value.lower() in _PLACEHOLDERS:
        return False
    has_digit = any(c in _DIGITS for c in value)
    if value.isdigit():
        return quoted
    if quoted and b" " in value and not has_digit:
        return False
    if not quoted and _NAME.fullmatch(value):
        # Names in code have no digit inside a word, or a dot between words; `hunter2` and `s3cr3t-x9y` are no names.
        ends = value[-1] in _DIGITS and b"_" not in value and b"-" not in value
        return b"." not in value and (ends or _DIGIT_INSIDE.search(value) is not None)
    return has_digit or (any(c in b"!@#$%^&*+~?" for c in value) and b" " not in value)


def _is_token(value: bytes) -> bool:
    if len(value) < _SHORTEST_TOKEN or b" " in value or _TEMPLATE.fullmatch(value) or _VERSION.fullmatch(value):
        return False
    digits = len(value.translate(None, _NOT_DIGITS))
    if not _LONG_BASE64.fullmatch(value) and (digits < _FEWEST_DIGITS or _NAME.fullmatch(value)):
        return False
    if digits < 1 or digits == len(value) or len(set(value)) < 8:
        return False
    # A random key changes its kind of character all the time; words, versions and dates joined by marks do not.
    kinds, pairs = value.translate(_KINDS), len(value) - 1
    apart = int.from_bytes(kinds[1:], "big") ^ int.from_bytes(kinds[:-1], "big")
    changes = pairs - apart.to_bytes(pairs, "big").count(0)
    return changes * 5 >= len(value) or (len(value) >= 32 and changes * 8 >= len(value))


_KINDS = bytes(
    0x39 if b in _DIGITS else 0x61 if bytes([b]).islower() else 0x41 if bytes([b]).isupper() else 0x2E
    for b in range(256)
)


def _value(match: re.Match[bytes], raw: bytes) -> tuple[int, int, bytes, bool]:
    quoted = match.group(4) is not None
    start, end = match.span(4 if quoted else 5)
    value = raw[start:end]
    if not quoted:
        if match.group(2) in (b":", b">") or b"is" in match.group(2):
            end = _REST.match(raw, end).end()  # type: ignore[union-attr]  # it matches the empty text too
            value = raw[start:end]
        value = value.rstrip(b".:,;")
        end = start + len(value)
    return start, end, value, quoted


def _password(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    before = view.low[max(0, match.start() - 2) : match.start()]
    if match.group(1) in (None, b"", b"code") and before[-1:].isalnum():
        return None  # bypass=, compass:
    if not match.group(2) and before != b"--":
        return None  # only a command's option has its value behind nothing but a space
    start, end, value, quoted = _value(match, view.raw)
    return (start, end) if _is_password(value, quoted=quoted) else None


def _token(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if not match.group(2) and view.low[max(0, match.start() - 12) : match.start()].rfind(b"--") < 0:
        return None
    start, end, value, _ = _value(match, view.raw)
    return (start, end) if _is_token(value) else None


def _key(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _token(view, match) if _BEFORE_KEY.search(view.low, max(0, match.start() - 20), match.start()) else None


def _signature(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return None if view.low[max(0, match.start() - 1) : match.start()].isalnum() else _token(view, match)


def _basic(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """What decodes to `user:password` (RFC 7617), or stands in an Authorization header."""
    value = match.group(1)
    found = base64_at(value, 0, 0)
    if (found is None or ":" not in found[2]) and b"authorization" not in view.before(match.start()):
        return None
    return match.span(1)


def _keyed(view: View) -> tuple[int, int] | None:
    value = view.raw.strip()
    if not value or len(value) > _LONGEST_KEYED:
        return None
    if _HINT_PASSWORD.search(view.hint):
        good = len(value) >= _SHORTEST_KEYED and not _TEMPLATE.fullmatch(value) and value.lower() not in _PLACEHOLDERS
        good = good and value.count(b" ") <= _MOST_SPACES
    else:
        good = _HINT_TOKEN.search(view.hint) is not None and _is_token(value)
    return (0, len(view.raw)) if good else None


_RULES = (
    Rule(_PASS, _password, lower=True, anchored=True, needle=b"pass"),
    Rule(_PWD, _password, lower=True, anchored=True, needle=b"pwd"),
    Rule(_SECRET, _token, lower=True, anchored=True, fewest=1, needle=b"secret"),
    Rule(_KEY, _key, lower=True, anchored=True, fewest=1, needle=b"key"),
    Rule(_TOKEN, _token, lower=True, anchored=True, fewest=1, needle=b"token"),
    Rule(_SIG, _signature, lower=True, anchored=True, fewest=1, needle=b"sig="),
    Rule(_CREDENTIAL, _token, lower=True, anchored=True, fewest=1, needle=b"credential"),
    Rule(_BASIC, _basic, anchored=True, needle=b"basic "),
)

FAMILY = Family(
    name="secret",
    category=Category.CREDENTIAL,
    rank=45,
    gate=Literals((b"pass", b"key", b"token", b"secret", b"pwd", b"sig=", b"credential", b"basic "), mark=b":"),
    rules=_RULES,
    keyed=_keyed,
    description="Passwords, keys and tokens after the word or under the key that names them, and HTTP basic credentials.",
    finds=(
        "password=hunter2!",
        'api_key: "9f8e7d6c5b4a39281706"',
        "<password>hunter2</password>",
        "Authorization: Basic dXNlcjpwYXNz",
    ),
    not_finds=(
        "password = get_password()",
        "token: str",
        "max_tokens=4096",
        "the password is required",
        "password=${PASSWORD}",
    ),
    more=(
        (Literals((b"password is",)), (Rule(_PASS, _password, lower=True, anchored=True, needle=b"password is"),)),
        (Literals((b"--pass",), mark=b"-"), (Rule(_PASS, _password, lower=True, needle=b"--pass"),)),
    ),
)
