"""Match secrets in calls of code: `login("ana", "…")`, `bcrypt.hash("…")`, `setBearerAuth("…")`."""

import re

from assay_scrubber.family import LiteralRule, View

from .assigned import is_clear
from .extent import judged
from .values import is_password, is_spoken, is_token, is_written, is_written_with_digits

# A user and a password as arguments: `login("ana", "…")`, `auth=("ana", "…")`.
_ARGUMENTS = re.compile(
    rb"(?:login|log_in|credentials?|auth|authenticate|authentication|sign_?in)(?: ?= ?)?(?:\("
    rb"|(?::| =>) ?\[)\s{0,8}(?:[\"']{2},\s{0,8})?(?:(?:[a-z_]{1,16}=)?[\"'][^\"'\n]{1,64}[\"']|(?<=[\"'], )[a-z_][\w.]{0,32}),\s{0,8}"
    rb"(?:[a-z_]{1,16}=|some\()?[\"'](?P<value>[^\"'\n]{4,128}+)[\"']"
)
# A connection with user and password as positional arguments: `new PDO("…", "ana", "…")`.
_CONNECTION = re.compile(
    rb"(?:pdo|connect|getconnection|mysqli|connection|datasource|ftp|ftp_tls)\(\s{0,8}(?:[^,()\n]{1,128},\s{0,8}){1,2}?[\"'][^\"'\n]{1,64}[\"'],\s{0,8}[\"'](?P<value>[^\"'\n]{4,128}+)[\"']"
)
_CHARSET = re.compile(rb"(?i)utf[\-_]?(?:8|16|32)\w{0,16}|latin[\-_]?1|iso[\-_]?8859[\-_0-9]{0,4}|cp[0-9]{3,4}")


def _argument(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    value = view.raw[slice(*match.span("value"))]
    mixed = not value.islower() and not value.isupper() and is_written_with_digits(value)
    numbered = value[-2:].isdigit() and is_written_with_digits(value)
    good = (is_password(value, quoted=False) or mixed or numbered) and not value.isdigit()
    return match.span("value") if good and not _CHARSET.fullmatch(value) else None


# Calls that take a password or signing key: `bcrypt.hash("…", 10)`, `jwt.sign(payload, "…")`, `createHmac("sha256", "…")`.
_CALLS = (
    b"bcrypt", b"argon2", b"scrypt", b"hashpw", b"checkpw", b"password_hash", b"password_verify", b"make_password", b"check_password",
    b"generate_password_hash", b"jwt.encode", b"jwt.decode", b"jwt.sign", b"jwt.verify", b"createhmac", b"hmac.new", b"wifi.begin",
    b"create_user", b"create_superuser",
)  # fmt: skip
_CALLED = re.compile(
    rb"(?:(?:bcrypt|argon2|scrypt)[\w.]{0,24}|hashpw|checkpw|password_hash|password_verify|make_password|check_password(?:_hash)?"
    rb"|generate_password_hash|jwt\.(?:encode|decode|sign|verify)|createhmac|hmac\.new|wifi\.begin|create_(?:super)?user)"
    rb"\(\s{0,8}(?:(?:[$&*]?[a-z_][\w.\[\]>\-]{0,48}|[\"'](?:sha|md)[\w\-]{1,16}[\"']|(?<=user\()[\"'][^\"'\n]{1,64}[\"'],\s{0,8}[\"'][^\"'\n]{0,64}[\"']"
    rb"|(?<=begin\()[\"'][^\"'\n]{1,64}[\"']),\s{0,8})?"
    rb"b?[\"'](?P<value>[^\"'\n]{4,128}+)[\"']"
)
# Calls that take a key as a string or its bytes: `SignedString([]byte("…"))`, `HMAC256("…")`, `hmac.New(sha256.New, []byte("…"))`.
_KEYED = (
    b"signedstring", b"hmacshakeyfor", b"hmac256", b"hmac384", b"hmac512", b"hmacsha256", b"hmacsha512", b"symmetricsecuritykey",
    b"fernet", b"createcipheriv", b"createdecipheriv", b"secretkeyspec", b"hmac.new", b"aes.new",
)  # fmt: skip
_TAKES_KEY = re.compile(
    rb"(?:%b)(?:cipher)?\(\s{0,8}(?:(?:[$&*]?[a-z_][\w.]{0,48}|[\"'][a-z0-9\-]{2,24}[\"']),\s{0,8})?"
    rb"(?:\[\]byte\(|[a-z_][\w.]{0,32}\(|b)?[\"'](?P<value>[^\"'\n]{6,256}+)[\"']" % b"|".join(map(re.escape, _KEYED))
)
# A default for a variable of the environment: `getenv("API_KEY", "…")`, `process.env.API_KEY || "…"`.
_FALLBACK = re.compile(
    rb"env(?:iron(?:ment)?)?(?:::var|[a-z]{0,16})(?:\.get|\.fetch|\.)?[(\[]?\s{0,4}[\"']?(?P<name>[a-z][a-z0-9_]{2,64})[\"']?[\])]?\s{0,4}"
    rb"(?:,|\|\||\?\?|or(?= )|\.unwrap_or(?:_else)?\((?:\|_?\| ?)?)\s{0,8}[\"'](?P<value>[^\"'\n]{6,512}+)[\"']"
)
_OF_SECRET = re.compile(rb"pass|pwd|secret|token|credential|hmac|auth|salt|key$")
_NO_SECRET = re.compile(rb"cache|sort|primary|public|page|log_|partition|row_")
# The default of an option of Rust that a name before it describes.
_UNWRAPPED = re.compile(rb"unwrap_or(?:_else)?\((?:\|_?\| ?)?[\"'](?P<value>[^\"'\n]{12,512}+)[\"']")
_NAMED_SECRET = re.compile(rb"secret|token|key|password|hmac")
_REACH = 96
# A literal that an expression falls back to, or that a call decodes: `token = ask() or "…"`, `KEY = Buffer.from("…")`.
_ASSIGNED = re.compile(
    rb"(?:secret|token|key)[a-z_]{0,12} ?:?= ?"
    rb"(?:[^\n\"'=]{1,64}? (?:or|\|\||\?\?) ?|(?:[a-z_][\w]{0,16}\.){0,2}+"
    rb"(?:from|fromhex|b64decode|atob|unhexlify|decode|decodestring|getbytes|bytes|bytearray)\(b?)[\"'](?P<value>[^\"'\n]{12,512}+)[\"']"
)
# The SID and the token of an account of Twilio.
_TWILIO = re.compile(rb"ac[0-9a-f]{32}[\"'],\s{0,16}[\"'](?P<value>[0-9a-f]{32})[\"']")
# Calls that set a bearer token: `.bearer_auth("…")`, `setBearerAuth("…")`.
_BEARER = re.compile(rb"bearer_?(?:auth|token)?\(\s{0,8}(?:some\()?[\"'](?P<value>[^\"'\s]{8,4096}+)[\"']")


def _whole(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, is_written)


def _key(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, lambda value: is_token(value, quoted=True) or is_spoken(value))


def _token(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, lambda value: is_token(value, quoted=True))


def _assigned(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _token(view, match) if is_clear(view.low, match.start()) else None


def _fallback(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    name, value = match["name"], view.raw[slice(*match.span("value"))]
    if _OF_SECRET.search(name) is None or _NO_SECRET.search(name):
        return None
    of_password = name.find(b"pass") >= 0 or name.find(b"pwd") >= 0
    good = is_password(value, quoted=False) if of_password else is_token(value, quoted=True)
    return match.span("value") if good else None


def _unwrapped(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    named = _NAMED_SECRET.search(view.low, max(0, match.start() - _REACH), match.start())
    return _token(view, match) if named else None


RULES = (
    *(
        LiteralRule(_CONNECTION, _argument, lower=True, anchored=True, needle=word, opens=word + rb"(?:_tls)?\(")
        for word in (b"pdo", b"connect", b"getconnection", b"mysqli", b"connection", b"datasource", b"ftp")
    ),
    *(
        LiteralRule(
            _ARGUMENTS,
            _argument,
            lower=True,
            anchored=True,
            needle=word,
            opens=word + rb"[a-z_]*(?: ?= ?)?(?:\(|(?::| =>) ?\[)",
        )
        for word in (b"login", b"log_in", b"credential", b"auth", b"signin", b"sign_in")
    ),
    *(
        LiteralRule(
            _CALLED, _whole, lower=True, anchored=True, fewest=1, needle=word, opens=re.escape(word) + rb"[a-z0-9_.]*\("
        )
        for word in _CALLS
    ),
    *(
        LiteralRule(
            _TAKES_KEY,
            _key,
            lower=True,
            anchored=True,
            fewest=1,
            needle=word,
            opens=re.escape(word) + rb"(?:cipher)?\(",
        )
        for word in _KEYED
    ),
    LiteralRule(
        _FALLBACK,
        _fallback,
        lower=True,
        anchored=True,
        needle=b"env",
        opens=rb"env[a-z.:]*[(\[.][\"']?[a-z]",
    ),
    *(
        LiteralRule(
            _ASSIGNED,
            _assigned,
            lower=True,
            anchored=True,
            fewest=1,
            needle=word,
            opens=rb"(?: or|\|\||\?\?) ?[\"'][a-z0-9]|(?:from|fromhex|decode|atob|unhexlify|bytes|array)\(b?[\"']",
        )
        for word in (b"secret", b"token", b"key")
    ),
    LiteralRule(_UNWRAPPED, _unwrapped, lower=True, anchored=True, fewest=1, needle=b"unwrap_or"),
    LiteralRule(_TWILIO, _token, lower=True, anchored=True, fewest=8, needle=b"ac", opens=rb"[\"']ac[0-9a-f]{4}"),
    LiteralRule(
        _BEARER,
        _token,
        lower=True,
        anchored=True,
        fewest=1,
        needle=b"bearer",
        opens=rb"bearer_?(?:auth|token)?\(\s*(?:some\()?[\"']",
    ),
)
