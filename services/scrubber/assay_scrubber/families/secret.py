"""Passwords, keys and tokens that no prefix marks, after the word that names them: `password=…`, `"api_key": "…"`.

The word alone is not enough, or all code would go: a value of letters only is a name (`password = get_password`), and so is
what holds brackets or dots between names. A password needs a digit or a mark, a key a length and a mixture as well.
"""

import re
from collections.abc import Callable

from assay_scrubber.encoded import base64_at
from assay_scrubber.family import Family, Literals, Rule, View
from assay_scrubber.taxonomy import Category

_VALUE = rb"(?:\\{0,6}([\"'`])([^\"'`\n\\]{1,512}+)|([^\s\"'`,;&<>()\[\]{}|]{1,512}+))"
_NOW = rb"(?: now| still| currently)?(?: set| changed| reset)?(?: to)?"
_TAIL = (
    rb"(?:[_\-]?(?:key|value|string|id|hash|data|[0-9]))?(?:\\{0,6}[\"'`])?[\])]?(?:\*\*|</[a-z]{1,8}>)?"
    rb"[ \t]{0,8}+(=>|:=|={1,2}|->|:|>|(?:is|was)%b:?(?=[ \t])|(?<=[ \t])|<t?[dh]d?>)(?:\*\*|</?[a-z]{1,8}>){0,2}[ \t]{0,8}+"
    % _NOW
) + _VALUE
# Each begins with a literal, which the search skips to; what stands before the word is looked at last.
_PASS = re.compile(rb"pass(words?|wd|phrase|wort|code|ord|e)?" + _TAIL)
_PWD = re.compile(rb"pwd()" + _TAIL)
_SECRET = re.compile(rb"secret((?:[_\- ]?access)?[_\- ]?(?:key)?)" + _TAIL)
_KEY = re.compile(rb"key()" + _TAIL)
_TOKEN = re.compile(rb"token()" + _TAIL)
_SIG = re.compile(rb"sig()" + _TAIL)
_CREDENTIAL = re.compile(rb"credentials?()" + _TAIL)
# In prose, in a table, behind an option: `the password for the portal is ...`, `| api_key | ... |`, `--token ...`.
_PROSE = re.compile(
    rb"(?:pass(word|phrase|code|wd)|(pwd)|(?<=[a-z][ _\-])key|(?<=api)key|token|secret)\W??"
    rb"(?:(?: [a-z][a-z'\-]{0,14}){0,5}? ((?:is|was|has been|will be)%b|(?:set|changed|reset) to):? {1,2}"
    rb"|( (?:\| {0,8}|- |-> ?|\x81 |\(|(?=[\"'`])|)))" % _NOW + _VALUE
)
_OPTION = re.compile(rb"(?:--|(?:^|[^a-z])set )[a-z_\-]{0,20}$")
_FOREIGN_WORDS = (
    b"contrase\x80a contrasena senha wachtwoord kennwort has\x80o heslo salasana l\x80senord losenord adgangskode parola"
    b" \x80ifre sifre jelsz\x80"
).split()
_FOREIGN = re.compile(rb"(?:%b)()(?![a-z\x80])" % b"|".join(_FOREIGN_WORDS) + _TAIL)
_REST = re.compile(
    rb"(?:&(?!quot|amp|lt|gt|apos|nbsp|#)[^\s\"'`<>&;]{1,64}(?![^\s\"'`<>&]{0,64}=))?"
)  # an ampersand in a password, but not the next parameter
_BEFORE_KEY = re.compile(
    rb"(?:api|access|accesskey|account|private|shared|signing|encryption|master|auth|consumer|client|storage|app|application|service|"
    rb"subscription|license|webhook|jwt|session|deploy|host|function|primary|secondary|secret|security|hmac|aes|sym|admin|server)[_\- ]?$"
)
_BASIC = re.compile(rb"basic[ \t]{1,4}+([A-Za-z0-9+/_\-]{8,}+={0,2})", re.IGNORECASE)
_HINT_PASSWORD = re.compile(
    rb"(?:^| )(?:password|passwd|passphrase|passcode|pass|pwd|passwort|pgpassword|passord|mot de passe|motdepasse|%b)"
    rb"(?: [0-9]| value| string)? $" % b"|".join(_FOREIGN_WORDS)
)
_HINT_TOKEN = re.compile(
    rb"(?:^| )(?:secret|token|apikey|authtoken|credentials?|signature|(?:api|access|private|client|secret|signing|account|auth) key) $"
)

_TEMPLATE = re.compile(
    rb"\$\{?\w.*|\{.*|%\w?\(?.*\)?[sd]?|:?\*+|0x[0-9a-f]{1,8}|<.*|x{3,}|\.{2,}.*|-+|_+|\[.*|@.*|&.*|#.*|/.*|\\.*|https?:.*|\$\(.*|!.*:.*",
    re.IGNORECASE,
)
_NAME = re.compile(
    rb"[A-Za-z_]\w*+(?:(?:\.|->|::|-|/|:|\+)[A-Za-z_]\w*+)++|[A-Za-z]++[0-9]?+|[A-Za-z]++(?:_[A-Za-z0-9]++)++"
)
# A pinned version of a package that is called token or key: `token==17.3.61.dev8421`, `key==v9.24.29+5e3a1f20`.
_VERSION = re.compile(rb"=?v?[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}(?:[.+\-][0-9A-Za-z.]{1,16})?")
# `PASS: suite/align-c++.exp`, in the log of a test.
_FILE = re.compile(rb"[A-Za-z_.][\w.\-]{0,64}(?:/[\w+\-]{1,64}){0,8}/[\w+\-]{1,64}\.[a-z]{1,4}")
_PLACEHOLDERS = frozenset(
    (b"true", b"false", b"null", b"none", b"undefined", b"string", b"password", b"secret", b"required", b"optional", b"redacted", b"nil",
     b"str", b"bytes", b"hidden", b"masked", b"changeme", b"example", b"empty", b"unknown", b"n/a")
)  # fmt: skip
_LONG_BASE64 = re.compile(rb"(?=[A-Za-z/+]*[0-9])(?=[0-9A-Z/+]*[a-z])(?=[0-9a-z/+]*[A-Z])[A-Za-z0-9+/]{32,}={0,2}")
_MARKED = re.compile(rb"[#&@!^*]{1,2}[A-Za-z0-9]{4,64}+(?![A-Za-z0-9]*[(\[{:])")
_DIGIT_INSIDE = re.compile(rb"[0-9][A-Za-z]")
_FEWEST_DIGITS = 2
_OF_NAMES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:"
_DIGITS = b"0123456789"
_NOT_DIGITS = bytes(b for b in range(256) if b not in _DIGITS)
_SHORTEST_PASSWORD, _SHORTEST_TOKEN = 5, 12
_SHORTEST_UNSPEAKABLE, _SHORTEST_OF_LETTERS = 16, 16
_SHORTEST_LOOSE = 8
_SURPRISING = (
    (re.compile(rb"[0-9][A-Za-z]"), 1.0),
    (re.compile(rb"[A-Za-z][0-9]"), 0.5),
    (re.compile(rb"[a-z][A-Z]"), 0.5),
    (re.compile(rb"[A-Z]{2,}[a-z]"), 1.0),
    (re.compile(rb"[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{5}"), 1.0),
    (re.compile(rb"[!@#$%^*+~?](?=.)"), 1.5),
)
_FEWEST_MARKS = 2
_WIDE = re.compile(rb"[^\s\"'`\\<>]{8,128}+")
_OTHER_QUOTE = re.compile(rb"[\"'`][^\s\\]{0,128}+")
_CODE = re.compile(
    rb"\(.*\)|\[.*\]|\{.*\}|://|->|[=,;]|&&|&[A-Za-z0-9_\-]*=|\*\*|\$\w*[({]|\+\+|[)\]}]$|[)\]}][.,]|\|\||[A-Za-z_]{4,}[(\[]|[?!] "
)
_OPENING_MARKS = b"#&@%!^*-"
_SHORTEST_KEYED, _MOST_SPACES = 4, 6


def _is_password(value: bytes, *, quoted: bool) -> bool:
    if quoted and _MARKED.match(value):
        value = value.lstrip(_OPENING_MARKS)
    if len(value) < _SHORTEST_PASSWORD or _TEMPLATE.fullmatch(value) or value.lower() in _PLACEHOLDERS:
        return False
    has_digit = any(c in _DIGITS for c in value)
    if value.isdigit():
        return quoted
    if quoted and b" " in value and not has_digit:
        return False
    if len(value) >= _SHORTEST_TOKEN and b" " not in value and _is_random(value, int(has_digit)):
        return True
    if not quoted and _NAME.fullmatch(value):
        # Names in code have no digit inside a word, or a dot between words; `hunter2` and `s3cr3t-x9y` are no names.
        ends = value[-1] in _DIGITS and b"_" not in value and b"-" not in value
        return b"." not in value and (ends or _DIGIT_INSIDE.search(value) is not None)
    return has_digit or (any(c in b"!@#$%^&*+~?" for c in value) and b" " not in value)


def _is_token(value: bytes, *, quoted: bool = False) -> bool:
    if quoted and not (_is_mixed(value) and value.find(b"{") < 0):
        value = value.lstrip(_OPENING_MARKS)
        if _TEMPLATE.fullmatch(value):
            return False
    if (
        len(value) < _SHORTEST_TOKEN
        or b" " in value
        or (not quoted and _TEMPLATE.fullmatch(value))
        or _VERSION.fullmatch(value)
    ):
        return False
    digits = len(value.translate(None, _NOT_DIGITS))
    if digits == len(value) or len(set(value)) < 8:
        return False
    if digits < _FEWEST_DIGITS and not _LONG_BASE64.fullmatch(value):
        return _is_random(value, digits)
    if _NAME.fullmatch(value) and not _LONG_BASE64.fullmatch(value):
        return _is_random(value, digits)
    # A random key changes its kind of character all the time; words, versions and dates joined by marks do not.
    kinds, pairs = value.translate(_KINDS), len(value) - 1
    apart = int.from_bytes(kinds[1:], "big") ^ int.from_bytes(kinds[:-1], "big")
    changes = pairs - apart.to_bytes(pairs, "big").count(0)
    return changes * 5 >= len(value) or (len(value) >= 32 and changes * 8 >= len(value)) or _is_random(value, digits)


def _surprises(value: bytes) -> float:
    """What names in code have few of: letters after digits, capitals in a row within a word, clusters of consonants, marks."""
    return sum(weight * len(pattern.findall(value)) for pattern, weight in _SURPRISING)


def _is_random(value: bytes, digits: int) -> bool:
    if _surprises(value) * 5 >= len(value):
        return digits > 0 or len(value) >= _SHORTEST_OF_LETTERS
    if len(value) < _SHORTEST_UNSPEAKABLE or not digits or not value.isalnum():
        return False
    vowels = len(value) - len(value.translate(None, b"aeiouAEIOU"))  # of random letters one in five
    return vowels * 4 <= len(value) - digits


_KINDS = bytes(
    0x39 if b in _DIGITS else 0x61 if bytes([b]).islower() else 0x41 if bytes([b]).isupper() else 0x2E
    for b in range(256)
)


def _is_mixed(value: bytes) -> bool:
    """Characters of all kinds, as generators of passwords make them, brackets among them; code has fewer, or pairs of brackets."""
    if _CODE.search(value) or value.islower() or value.isupper() or not any(c in _DIGITS for c in value):
        return False
    return len({c for c in value if c in b"!@#$%^&*+?~("}) >= _FEWEST_MARKS


def _value(match: re.Match[bytes], raw: bytes) -> tuple[int, int, bytes, bool]:
    quote = match.group(3)
    return _ending(quote, match.span(4 if quote else 5), raw, whole=b"=" not in match.group(2))


def _ending(quote: bytes | None, span: tuple[int, int], raw: bytes, *, whole: bool) -> tuple[int, int, bytes, bool]:
    """A value with its place, and whether it counts as quoted. `whole`: no parameter of an address, which would end at an ampersand."""
    start, end = span
    if quote:
        other = _OTHER_QUOTE.match(raw, end)
        if other and raw[end : end + 1] != quote:  # an apostrophe in double quotes
            close = raw.find(quote, end, other.end() + 1)
            end = close if close > 0 else end
        return start, end, raw[start:end], True
    wide = _WIDE.match(raw, start)
    if wide and wide.end() > end and _is_mixed(wide.group()):
        return start, wide.end(), wide.group(), True
    if whole:
        end = _REST.match(raw, end).end()  # type: ignore[union-attr]  # it matches the empty text too
    value = raw[start:end].rstrip(b".:,;\\")  # a backslash belongs to the quote after it
    return start, start + len(value), value, False


def _password(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    before = view.low[max(0, match.start() - 2) : match.start()]
    if match.group(1) in (None, b"", b"code") and before[-1:].isalnum():
        return None  # bypass=, compass:
    if not match.group(2) and before != b"--":
        return None  # only a command's option has its value behind nothing but a space
    start, end, value, quoted = _value(match, view.raw)
    if not quoted and view.raw[end : end + 1] == b"(" and not value.translate(None, _OF_NAMES):
        return None  # a call
    if match.group(1) is None and _FILE.fullmatch(value):
        return None
    return (start, end) if _is_password(value, quoted=quoted) else None


def _token(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if not match.group(2) and view.low[max(0, match.start() - 12) : match.start()].rfind(b"--") < 0:
        return None
    start, end, value, quoted = _value(match, view.raw)
    return (start, end) if _is_token(value, quoted=quoted) else None


def _prose(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    loosely = match.group(4)
    if (
        loosely == b" "
        and match.group(5) is None
        and not _OPTION.search(view.low, max(0, match.start() - 26), match.start())
    ):
        return None
    start, end, value, quoted = _ending(match.group(5), match.span(6 if match.group(5) else 7), view.raw, whole=True)
    if not match.group(1) and not match.group(2):
        good = _is_token(value, quoted=quoted) and (
            not loosely or loosely == b" " or _surprises(value) * 5 >= len(value)
        )
    elif loosely and loosely != b" ":
        good = len(value) >= _SHORTEST_LOOSE and _surprises(value) * 5 >= len(value)
    else:
        good = _is_password(value, quoted=quoted)
    return (start, end) if good else None


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


def _secret(value: bytes) -> bool:
    good = len(value) >= _SHORTEST_KEYED and not _TEMPLATE.fullmatch(value) and value.lower() not in _PLACEHOLDERS
    return good and value.count(b" ") <= _MOST_SPACES


def _keyed(hint: bytes) -> Callable[[bytes], bool] | None:
    return _secret if _HINT_PASSWORD.search(hint) else _is_token if _HINT_TOKEN.search(hint) else None


_RULES = (
    Rule(_PASS, _password, lower=True, anchored=True, needle=b"pass"),
    Rule(_PWD, _password, lower=True, anchored=True, needle=b"pwd"),
    Rule(_SECRET, _token, lower=True, anchored=True, fewest=1, needle=b"secret"),
    Rule(_KEY, _key, lower=True, anchored=True, fewest=1, needle=b"key"),
    Rule(_TOKEN, _token, lower=True, anchored=True, fewest=1, needle=b"token"),
    Rule(_SIG, _signature, lower=True, anchored=True, fewest=1, needle=b"sig="),
    Rule(_CREDENTIAL, _token, lower=True, anchored=True, fewest=1, needle=b"credential"),
    Rule(_BASIC, _basic, anchored=True, needle=b"basic "),
    *(Rule(_FOREIGN, _password, lower=True, anchored=True, needle=word) for word in _FOREIGN_WORDS),
)

_PASSWORDS = (b"password", b"passphrase", b"passcode", b"passwd ", b"pwd ")
_TOKENS = (b"key ", b"token ", b"secret ")
_IN_PROSE = (
    *(Rule(_PROSE, _prose, lower=True, anchored=True, needle=word) for word in _PASSWORDS),
    *(Rule(_PROSE, _prose, lower=True, anchored=True, fewest=1, needle=word) for word in _TOKENS),
)

FAMILY = Family(
    name="secret",
    category=Category.CREDENTIAL,
    rank=45,
    gate=Literals(
        (b"pass", b"key", b"token", b"secret", b"pwd", b"sig=", b"credential", b"basic ", *_FOREIGN_WORDS), mark=b":"
    ),
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
        (Literals(()), _IN_PROSE),
        (Literals((b"--pass",), mark=b"-"), (Rule(_PASS, _password, lower=True, needle=b"--pass"),)),
    ),
)
