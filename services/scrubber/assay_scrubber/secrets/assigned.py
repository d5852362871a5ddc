"""Match values assigned to a word that names a secret: `password=…`, `"api_key": "…"`.

Also `<td>token</td><td>…`.
"""

import re

from assay_scrubber.family import LiteralRule, View
from assay_scrubber.lexicon import Announces

from .extent import ending, judged, value_of
from .values import (
    OF_NAMES,
    SHORTEST_LOOSE,
    TEMPLATE,
    is_credential,
    is_disguised,
    is_file,
    is_length,
    is_lone_token,
    is_password,
    is_scrambled,
    is_spoken,
    is_token,
    is_unmistakable,
    is_written,
    is_written_with_digits,
    reads_as_prose,
)

#: Words for passwords in languages with Latin letters, in projected form.
FOREIGN = tuple(
    "contrase\x80a|contrasena|senha|wachtwoord|kennwort|has\x80o|haslo|heslo|salasana|l\x80senord|losenord|adgangskode|kodeord|parola"
    "|\x80ifre|sifre|jelsz\x80|jelszo|m\x80t kh\x80u|mat khau|palavra-passe|lozinka|parool|geslo|kata sandi|parol\x80|slapta\x80odis"
    "|parola d'ordine".encode("latin-1").split(b"|")
)

VALUE = (
    # String literals of programming languages, and calls that make a value of a secret's type.
    rb"(?:(?:secretstr|secret|string(?:::from|\.valueof)?|str|new string|convertto-securestring(?: -string)?"
    rb"|\[\]byte|(?:md5|sha[0-9]{1,3}|(?:en)?crypt|hash)(?=\([\"'][^\"'\n]{1,256}[\"']\)))[( ] {0,2}(?=[\"'])|<!\[cdata\["
    rb"|[brufnl@]{1,2}(?=[\"'])|q{1,2}[{(|/]|!{1,2}[a-z]{1,8} "
    # The only element of a list: `map[X-Key:[…]]` of Go, `'x-key': [ '…' ]` of Node, `[]string{"…"}`.
    rb"|\[ ?(?=[\"']|[^\s\"'`,;&<>()\[\]{}|]{4,512}\])|\[\]string\{)?"
    rb"(?:\\{0,6}(?P<quote>[\"'`])(?P<quoted>[^\"'`\n\\]{1,512}+)|(?P<bare>[^\s\"'`,;&<>()\[\]{}|]{1,512}+))"
)
NOW = rb"(?: now| still| currently)?(?: set| changed| reset)?(?: to)?"
SUFFIX = (
    rb"(?:[_\-.]?(?:key|value|string|id|hash|data|base|new|old|prod|production|dev|staging|live|test|confirm|confirmation|again"
    rb"|repeat|current|next|plain|text|[0-9]{1,2}|_{1,2})){0,2}"
)
_CLOSE = rb"(?: \([a-z0-9 \-]{1,24}\))?(?:\\{0,6}[\"'`])?(?:\[[0-9]{0,4}\]|[\])]{0,2})(?:\*\*|</[a-z]{1,8}>)?"
_LINK = (
    rb"[ \t]{0,8}+(?P<link>=>|:=|={1,2}|[|?]{1,2}=|->|<-|:[ \t]?[|>][+\-]?[ \t]?\n[ \t]{1,16}"  # the third: a block of YAML
    rb"|:[ \t]?&?(?:'static )?[a-z][\w.\[\]<>?]{0,24}[ \t]?=[ \t]?(?=[brun@]?[\"'])|string[ \t]?="
    rb"|as string ?=|n?(?:var)?char2?(?:\([0-9max]{1,5}\))? ?:?=|:|>|(?:is|was)%b:?(?=[ \t])|(?<=[ \t])"
    rb"|\s{0,16}<(?:t?[dh]d?|string|value|val|code|span|b|strong|em|p|div|kbd|samp|pre)>)(?:\*{1,2}|</?[a-z]{1,8}>){0,2}[ \t]{0,8}+"
    % NOW
)
_TAIL = SUFFIX + _CLOSE + _LINK + VALUE
# Each begins with a literal, which the search skips to; the text before the word is checked last.
_HEAD_PASS = rb"pass(words?|wd|phrase|code|wort|ord|e)?"
_HEAD_SECRET = rb"secret((?:[_\- ]?access)?[_\- ]?(?:key)?)"
_PASS = re.compile(_HEAD_PASS + _TAIL)
_PWD = re.compile(rb"(?:p(?:wd|sk)|keymaterial|rootpw|bindpw|rediscli_auth|pre[_\-]?shared[_\-]?key)()" + _TAIL)
_PW = re.compile(rb"pw(?: <const>)?(?=[\"' :=\])>])" + _CLOSE + _LINK + VALUE)
_SECRET = re.compile(_HEAD_SECRET + _TAIL)
_KEY = re.compile(rb"key()" + _TAIL)
_TOKEN = re.compile(rb"token()" + _TAIL)
_SIG = re.compile(
    rb"sig(nature)?(?:[_\-]?v?[0-9]{1,3})?"
    + _CLOSE
    + _LINK
    + rb"(?:t=[0-9]{1,16},)?(?:sha(?:1|256|512)=|v[01]=)?"
    + VALUE
)
_CREDENTIAL = re.compile(rb"credentials?()" + _TAIL)
_AUTH = re.compile(rb"auth(?:[_\-]?(?:code|pass|header|string|cookie|hash))?()" + _CLOSE + _LINK + VALUE)
_FOREIGN = re.compile(
    rb"(?:%b)(?:et|en|t|n|m|s\x80|n\x80z|ni|ul|ja)?(?P<foreign>)(?![a-z\x80])" % b"|".join(FOREIGN) + _TAIL
)
_OTHER_SCRIPT = re.compile(
    rb"(?:%b|%b)"
    % (Announces.PASSWORD.word, Announces.TOKEN.word)
    + rb"(?P<between>\\{0,6}[\"'`][ \t]{0,2}[:=,][ \t]{0,4}\\{0,6}(?=[\"'`])"
    rb"|[^A-Za-z0-9\n\"'`\\]{0,48}+(?:[A-Za-z][A-Za-z\-]{1,15}(?:: ?| [^A-Za-z0-9\n\"'`\\]{2,32}+))?)"
    + rb"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n\\]{1,512}+)|(?P<bare>(?![\\\"'`])[!-~]{1,512}+))"
)
_BEFORE_KEY = re.compile(
    rb"(?:api|access|accesskey|account|private|shared|signing|encryption|master|auth|consumer|client|storage|app|application|service|"
    rb"subscription|license|webhook|jwt|session|deploy|host|functions?|primary|secondary|secret|security|hmac|aes|sym|admin|server|crypto|"
    rb"cipher|vault|unseal|recovery|backup|integration|ingest|ingestion|registration|bot|tenant|sas|cookie|csrf|totp|writer?|mms"
    rb"|routing)[_\-. ]?$|login\($"
    rb"|(?<![a-z])(?:my|your|our) $|(?<![a-z0-9])x-(?!idem|cache|surr|req|part|sort|obj|row|trace|corr)[a-z0-9]{2,12}-$"
)
_ENVIRONMENT = re.compile(rb"(?:^|[\s;\"'`({|&\-])[A-Z][A-Z0-9_]*$|(?:^|[\s\"'])-D[\w.\-]+$")
_LINE = re.compile(rb"(?:^|\n)[ \t]{0,32}(?:- |> |\* )?[\w.\-]{1,64}[ \t]?$")
_USER_ABOVE = re.compile(
    rb"(?:^|\n)[ \t]*(?:- |> |\* )?(?:[\w\-]{1,16} )?"
    rb"(?:user(?:[ _\-]?(?:name|id))?|login|e-?mail|account)[ \t]*[:=][ \t]*[^\s]{1,64}[ \t]*\r?\n"
    rb"[ \t]*(?:- |> |\* )?(?:[\w\-]{1,16} )?[\w.\-]{1,32}[ \t]?$"
)
_NEXT_PARAMETER = re.compile(rb"&[\w.\-%\[\]]{1,48}=")
_PARAMETER = re.compile(rb"[?&][\w.\-%\[\]]{0,48}$")
_CONDITION = re.compile(rb"\b(?:where|set|and) [^\n;]{0,96}$")
_HEADER = re.compile(
    rb"(?:x-[a-z0-9\-]{0,32}|(?<![a-z0-9])(?:stripe|paddle|svix|webhook|request)-|[?&;][a-z0-9_\-]{0,24})$"
)
_GETTER = re.compile(
    rb"(?:get|read|fetch|load|find|require|env|check|validate|verify|hash|is|has|no|input|parse|create|make)_?$"
)
_SHORTEST_OF_LETTERS = 6
_CLOSE_BY = 6  # longest text between such a word and digits that are a password
_NEAR = 16  # how far from a keyword in another script any value is accepted
_DIGITS_OR_MARKS = b"0123456789!@#$%^&*+~?"


def _only_a_value(view: View, match: re.Match[bytes], value: bytes, end: int) -> bool:
    """Return whether the position allows only a value: in JSON, in form data, after an environment variable."""
    link, quote, at, raw = match["link"], match["quote"], match.start("link"), view.raw
    if link == b":" and quote == b'"' and raw[max(0, at - 4) : at].rstrip().endswith(b'"'):
        return True
    after = end + (quote is not None)
    ended = raw[after : after + 1] in (b"", b"\n", b"\r")
    if link == b":":
        if quote is None and len(value) >= _SHORTEST_OF_LETTERS and _is_below_user(view, at=at, end=end):
            return True
        line = ended and _LINE.search(raw, max(0, at - 100), at) is not None
        if not line or quote:
            return line and len(value) >= _SHORTEST_OF_LETTERS
        return any(c in _DIGITS_OR_MARKS for c in value)
    if link != b"=" or raw[at - 1 : at] in (b" ", b"\t"):
        return False
    if quote == b"'" and _CONDITION.search(view.low, max(0, at - 120), at):
        return True
    if _PARAMETER.search(raw, max(0, at - 50), at) or (not quote and _NEXT_PARAMETER.match(raw, end)):
        return True
    if quote is None and ended and _LINE.search(raw, max(0, at - 100), at) and raw[at - 1 : at].isalnum():
        return is_written_with_digits(value)
    assigned = _ENVIRONMENT.search(raw, max(0, at - 64), at) is not None
    return (
        assigned
        and (any(c in _DIGITS_OR_MARKS for c in value) or (quote is not None and b" " in value))
        and raw[end : end + 1] not in (b"(", b"[", b".")
    )


def _is_below_user(view: View, *, at: int, end: int) -> bool:
    """Return whether a value that ends its line at `end` is below the line of a user. `at`: the end of the name before it."""
    ended = view.raw[end : end + 1] in (b"", b"\n", b"\r")
    return ended and _USER_ABOVE.search(view.low, max(0, at - 200), at) is not None


def _only_password(view: View, match: re.Match[bytes], value: bytes, end: int, *, quoted: bool) -> bool:
    """Return whether only a password can stand after a `pass` here: in JSON, or below the line of a user."""
    if match["quote"] == b'"' and _only_a_value(view, match, value, end):
        return True
    return match["link"] == b":" and not quoted and _is_below_user(view, at=match.start("link"), end=end)


def _password(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    before = view.raw[max(0, match.start() - 2) : match.start()]
    kind, link = match.group(1), match["link"]
    foreign = match.re is _FOREIGN
    cut = kind in (None, b"code") or (kind == b"" and match.group(0).startswith((b"pwd", b"psk")))
    if cut and before[-1:].isalnum() and not _is_camel(view, match):
        return None  # bypass=, compass:
    option = before == b"--"
    named = before[-1:] == b":" or _DEFINED.search(view.low, max(0, match.start() - 48), match.start()) is not None
    if not link and not option and not (named and match["quote"]) and not _is_row(view, match):
        return None  # only a space before the value: an option, a keyword of Lisp, a macro of C
    start, end, value, quoted = value_of(match, view.raw)
    if not quoted and view.raw[end : end + 1] == b"(" and not value.translate(None, OF_NAMES):
        return None  # a call
    if not quoted and link in (b"=", b":") and (rest := _REST_OF_LINE.match(view.raw, end)) is not None:
        end = rest.end()
        value = view.raw[start:end]
    if kind is None and (is_file(value) or _COUNT.fullmatch(value)):
        return None
    if kind is None and _only_password(view, match, value, end, quoted=quoted):
        return (start, end) if is_written_with_digits(value) else None
    if value.isdigit() and not quoted:
        named_so = kind not in (None, b"words", b"code", b"e") and link not in (b"", b"==")
        if link == b">" and view.raw[end : end + 2] != b"</":
            return None
        if _CLASS_OF_ERROR.search(view.raw, max(0, match.start() - 12), match.start()):
            return None
        return (start, end) if named_so and is_digits(view.low, value, end) and _is_alone(view, match) else None
    good = is_password(value, quoted=quoted) or (
        kind is not None and is_written(value) and _only_a_value(view, match, value, end)
    )
    if not good and is_written_with_digits(value):
        # Words of other languages do not occur in code; an option and an element contain only values.
        element = link.endswith(b">") and view.raw[end : end + 2] == b"</"
        good = (foreign and link in (b":", b"")) or b"\n" in link or element or not link
    if not good and not quoted and kind is not None and is_scrambled(value):
        good = link == b"=" and view.raw[end : end + 1] in (b"", b"\n", b"\r") and _is_line(view, match)
    return (start, end) if good else None


# A name and its value in columns, alone on the line.
_ROW = re.compile(rb"(?:^|\n)[ \t]{0,16}[\w.\-]{0,48}$")
_ROW_ENDS = re.compile(rb"[ \t]{0,16}(?:\r?\n|$)")


def _is_row(view: View, match: re.Match[bytes]) -> bool:
    if match["quote"] or view.raw[match.start("link") - 2 : match.start("link")] not in (b"  ", b"\t"):
        return False
    if _ROW.search(view.raw, max(0, match.start() - 70), match.start()) is None:
        return False
    return _ROW_ENDS.match(view.raw, match.end()) is not None and is_written_with_digits(match["bare"] or b"")


# A password with a semicolon or comma that ends its line: neither a list nor the next field of a connection string.
_REST_OF_LINE = re.compile(rb"(?:[,;]{1,2}[^\s\"'`,;&<>()\[\]{}|=:]{1,64}+){1,8}+(?=[ \t]*(?:\r?\n|$))")
# `pass=120/123` in the summary of a test run.
_COUNT = re.compile(rb"[0-9]+[./:,%][0-9./:,%]*")
_BESIDE = frozenset(
    (b"", b"1", b"2", b"_confirm", b"confirm", b"_confirmation", b"confirmation", b"_new", b"_old", b"_again")
)
_UNITS = re.compile(
    rb" ?(?:%|(?:times?|chars?|characters?|digits?|letters?|attempts?|tries|seconds?|secs?|ms|minutes?|hours?"
    rb"|days?|bits?|bytes?|users?|entries"
    rb"|accounts?|hits?|results?|requests?|occurrences?|rows?|lines?|in total|zeichen|versuche|tage|sekunden)(?![a-z]))"
)
_SHORTEST_DIGITS = 5


def is_digits(low: bytes, value: bytes, end: int) -> bool:
    """Return whether a value that ends at `end` is digits and not a count."""
    return value.isdigit() and len(value) >= _SHORTEST_DIGITS and _UNITS.match(low, end) is None


# `InvalidPassword: 48213`: the end of a traceback.
_CLASS_OF_ERROR = re.compile(rb"(?:Invalid|Incorrect|Wrong|Bad|Missing|Unknown|Weak|Expired|Empty|Unusable)$")


def _is_alone(view: View, match: re.Match[bytes]) -> bool:
    """Return whether the word names the password itself, unlike `password_id` or `password_age`."""
    return view.low[match.end(1) : match.start("link")].strip(b" \t\"'`*\\[])") in _BESIDE


_CAMEL_OR_KNOWN = re.compile(
    rb"[a-z0-9]P$|(?i:db|my|user|usr|admin|root|smtp|mail|imap|ftp|ldap|sql|redis|app|keystore|store|wifi|web|auth|proxy|vpn|api|bind|sudo"
    rb"|ssh|login|svc|srv)(?i:p)$"
)


def _is_line(view: View, match: re.Match[bytes]) -> bool:
    at = match.start("link")
    return _LINE.search(view.raw, max(0, at - 100), at) is not None and view.raw[at - 1 : at].isalnum()


def _shortest(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match after `pw`, which also has other meanings, such as a width."""
    if match["link"] in (b"", b"==") or view.raw[max(0, match.start() - 1) : match.start()].isalnum():
        return None
    start, end, value, quoted = value_of(match, view.raw)
    good = is_written_with_digits(value) and value.find(b" ") < 0 if quoted else is_spoken(value)
    if is_length(value) or (not quoted and _ACCOUNT.fullmatch(value)):
        return None
    return (start, end) if good else None


_DEFINED = re.compile(rb"#[ \t]?define[ \t]{1,4}[a-z0-9_]{0,32}$")


def _is_camel(view: View, match: re.Match[bytes]) -> bool:
    """Return whether the word is part of a camel-case name: `dbPass`, `smtppwd`, but not `bypass`."""
    return _CAMEL_OR_KNOWN.search(view.raw, max(0, match.start() - 12), match.start() + 1) is not None


# Tokens for pagination or for identifying a request.
PAGES = re.compile(
    rb"(?:page|next|continuation|pagination|cursor|sync|idempotency|request|scroll|resume|skip|delta|start|marker)[_\- ]?(?:token )?$"
)


# Words that make a key or a token unambiguously a credential.
_CLEAR_KEY = re.compile(
    rb"(?<![a-z])(?:x-)?(?:api|secret|auth|access|client|consumer|app|signing|encryption|master|private|admin|webhook|license|account|service"
    rb"|deploy|subscription|[a-z]{2,16}[_\-. ]api)[_\-. ]?$"
)
_CLEAR_TOKEN = re.compile(
    rb"(?:api|access|auth|authentication|authorization|bearer|refresh|secret|security|bot|deploy|personal|private|admin|client|app|oauth2?"
    rb"|jwt|service|webhook|login|reset|vault|github|gitlab|slack|telegram|discord|npm|ci|registry|device|push|invite|id|session|csrf|xsrf"
    rb"|user|x|personal[_\-. ]access)[_\-. ]?$"
)
# A custom header is a credential too, unless it names a request, a page or a cache key.
_OWN_HEADER = re.compile(
    rb"(?<![a-z0-9\-])x[\-_](?!idem|cache|surr|req|part|sort|obj|row|trace|corr|page|next|cont|span|build|object)"
    rb"[a-z0-9\-_]{2,24}[\-_]$"
)
_LINKS_OF_SHORT = frozenset((b":", b"=", b"=>", b":=", b"->", b"<-", b"", b">"))
_AFTER_SHORT = (b"", b" ", b"\t", b"\n", b"\r", b"&", b";", b",", b'"', b"'", b"`", b"\\", b"<", b"|", b"]", b"}")


def is_clear(low: bytes, position: int) -> bool:
    """Return whether the `key`, `token` or `secret` at `position` can name only a credential."""
    before = low[max(0, position - 24) : position]
    if low.startswith(b"secret", position):
        return not before[-1:].isalpha()
    return (_CLEAR_KEY if low.startswith(b"key", position) else _CLEAR_TOKEN).search(before) is not None


def _short(view: View, match: re.Match[bytes], span: tuple[int, int], *, quoted: bool) -> tuple[int, int] | None:
    """Accept a value shorter than a token, after an unambiguous keyword or where only a value can stand."""
    start, end = span
    value, link, at, raw = view.raw[start:end], match["link"], match.start("link"), view.raw
    if len(value) < _SHORTEST_OF_LETTERS or not is_credential(value) or (value.isdigit() and not quoted):
        return None
    named = raw[max(0, at - 4) : at].rstrip()[-1:] in (b'"', b"'")
    verb = link.startswith((b"is", b"was"))
    before = view.low[max(0, match.start() - 24) : match.start()]
    if match.re is _SECRET:
        clear = not before[-1:].isalpha() or view.raw[match.start() : match.start() + 1] == b"S"
    else:
        names = _CLEAR_KEY if match.re is _KEY else _CLEAR_TOKEN
        clear = names.search(before) is not None or _OWN_HEADER.search(before) is not None
        if match.re is _TOKEN and link == b"=" and _PARAMETER.search(raw, max(0, match.start() - 50), match.start()):
            clear = True  # `?rss_token=…`: pagination tokens were excluded before
        if (
            match.re is _TOKEN
            and not clear
            and (before[-1:].isalnum() or before[-1:] in (b"_", b"-") or not is_lone_token(value))
        ):
            return None
    if not clear and match.re is not _TOKEN:
        return None
    element = link.endswith(b">") and raw[end : end + 2] == b"</"
    if link not in _LINKS_OF_SHORT and not (clear and (verb or element)):
        return None
    after = raw[end + quoted : end + quoted + 1] if quoted else raw[end : end + 1]
    if quoted:
        good = after not in (b".", b"[", b"(") and (clear or named)
    elif after not in _AFTER_SHORT:
        return None
    elif link == b">":
        good = raw[end : end + 2] == b"</"
    elif link == b"=":
        spaced = raw[at - 1 : at] in (b" ", b"\t")
        good = not spaced or (
            clear and after in (b"", b"\n", b"\r") and _LINE.search(raw, max(0, at - 100), at) is not None
        )
    elif link == b":":
        good = clear or (after in (b"", b"\n", b"\r") and _LINE.search(raw, max(0, at - 100), at) is not None)
    else:
        good = clear
    return span if good else None


def _token(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if PAGES.search(view.low, max(0, match.start() - 16), match.start()):
        return None
    if not match["link"] and view.low[max(0, match.start() - 12) : match.start()].rfind(b"--") < 0:
        return None
    start, end, value, quoted = value_of(match, view.raw)
    if is_token(value, quoted=quoted):
        return start, end
    if match.re not in _MAY_BE_SHORT:
        return None
    return _short(view, match, (start, end), quoted=match["quote"] is not None)


_MAY_BE_SHORT = (_SECRET, _KEY, _TOKEN)


def _secret(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept a secret, which is usually generated; in environment variables also one that a person made up."""
    found = _token(view, match)
    if found is None and match["link"] == b"=":
        start, end, value, _ = value_of(match, view.raw)
        if _only_a_value(view, match, value, end) and is_written(value) and is_password(value, quoted=False):
            return start, end
    return found


def _key(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    before = _BEFORE_KEY.search(view.low, max(0, match.start() - 20), match.start())
    found = _token(view, match) if before else None
    if found and before and before.group().startswith(b"routing") and view.raw.find(b".", *found) >= 0:
        return None  # a queue: `user.42.events`
    return found


def _signature(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept the signature of a request, in a header or URL parameter. A file's signature is not a secret."""
    if view.raw[max(0, match.start() - 1) : match.start()].isalnum():
        return None
    if match.group(1) and not _HEADER.search(view.low, max(0, match.start() - 40), match.start()):
        return None
    return _token(view, match)


def _auth(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if not match["link"] or view.raw[max(0, match.start() - 1) : match.start()].isalnum():
        return None
    found = _token(view, match)
    return None if found and not match["quote"] and _CLASS.fullmatch(view.raw, *found) else found


_CLASS = re.compile(rb"(?:[A-Z]+[a-z]+)++[0-9]?")


_ACCOUNT = re.compile(rb"[a-z]{2,}[0-9]{1,2}")


def _other_script(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept a value after a keyword in another script, unless it reads as a word of prose."""
    quote = match["quote"]
    start, end = match.span("quoted" if quote else "bare")
    value = view.raw[start:end] if quote else view.raw[start:end].rstrip(b".,;:?)]}\"'\\")
    if not quote and value.isalpha():
        return None
    named = quote is not None or any(
        c in b"0123456789" for c in value
    )  # names in code never follow a keyword in another script
    if view.raw[match.start()] == Announces.TOKEN:
        good = is_token(value)
    elif quote is None and (len(match["between"]) > _NEAR or match["between"].find(b" \x80") >= 0):
        colon = match["between"].rstrip().endswith(b":")  # any words may stand between: `пароль от сервера db-2`
        good = is_disguised(value) or (
            is_written_with_digits(value) if colon else is_spoken(value) and not _ACCOUNT.fullmatch(value)
        )
    else:
        digits = (
            value.isdigit() and quote is None and len(value) >= _SHORTEST_DIGITS and len(match["between"]) <= _CLOSE_BY
        )
        if digits:
            return start, start + len(value)
        good = is_password(value, quoted=named) and not value.isdigit()
    prose = quote is None and reads_as_prose(value)
    return (start, start + len(value)) if good and not prose and not TEMPLATE.fullmatch(value) else None


# The name as a string, and its value as the next one: `("password", "…")`, `define('DB_PASSWORD', '…')`.
NAMES = rb"(?:pass(?:words?|wd|phrase|code|wort)?|p(?:wd|sk)|secret|token|key|credentials?|sid|session(?:_?id)?|x-auth|(?<=_)salt)"
_NEXT = re.compile(NAMES + SUFFIX + rb"\\{0,6}[\"'][ \t]{0,2},\s{0,16}(?=[brun@]{0,2}\\{0,6}[\"'])" + VALUE)
_CALL = re.compile(NAMES + rb"(?P<link>[({][ \t]{0,2}(?=[brun@]{0,2}[\"']))" + VALUE)
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*")
_OPENED = re.compile(rb"[(\[] ?[brun@]?[\"'\\]{1,4}[\w.\-#]{0,32}$")
# The name of the next field in a list of names: `["password", "email2"]`.
_FIELD = re.compile(rb"[a-z_]{4,}[0-9]")
_MARKS_OF_SALT = re.compile(rb"[!@#$%^&*()+~?|{}\[\]<>=,;:/]")
_SHORTEST_SALT, _FEWEST_MARKS = 32, 4


def is_meant(view: View, at: int, name: bytes, value: bytes) -> bool:
    """Return whether `value` fits the keyword at `at`, where only a value can stand."""
    if name.startswith((b"pass", b"pwd", b"psk")):
        return is_written(value)
    if name.startswith(b"salt"):
        return len(value) >= _SHORTEST_SALT and len(_MARKS_OF_SALT.findall(value)) >= _FEWEST_MARKS  # of WordPress
    if name.startswith(b"key") and not _BEFORE_KEY.search(view.low, max(0, at - 20), at):
        return view.raw[at - 1 : at] == b"." and is_unmistakable(value)  # `config.set("maps.key", "…")`
    return is_token(value, quoted=True) or (is_clear(view.low, at) and is_credential(value))


def _next(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match in a call or a tuple of two: `("password", "…")`, but not in a list of names."""
    start, end, value, _ = (
        ending(match["quote"], match.span("quoted"), view.raw, whole=True) if match["quote"] else (0, 0, b"", False)
    )
    if (
        not value
        or not _OPENED.search(view.raw, max(0, match.start() - 40), match.start())
        or view.raw[end + 1 : end + 3].lstrip()[:1] not in b")],"
    ):
        return None
    if match.group(0).startswith((b"pass", b"pwd", b"psk")) and (
        not is_password(value, quoted=True)
        or value.isdigit()
        or (_FIELD.fullmatch(value) and view.raw[match.start() - 1 : match.start()] != b"-")
    ):
        return None
    return (start, end) if is_meant(view, match.start(), match.group(0), value) else None


_LAST_ARGUMENT = re.compile(
    rb"[\"'](?:,\s{0,8}(?:[\"'][^\"'\n]{0,128}[\"']|[\w.]{1,64})){0,3}?,\s{0,8}[\"'](?P<value>[^\"'\n]{4,128}+)[\"']\s{0,8}\)"
)


def _call(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match `setPassword("…")` and `PASSWORD('…')`, but not look-ups such as `get_password("…")`."""
    if _GETTER.search(view.low, max(0, match.start() - 12), match.start()):
        return None
    start, end, value, _ = ending(match["quote"], match.span("quoted"), view.raw, whole=True)
    if match.group(0).startswith((b"pass", b"pwd")):
        last = _LAST_ARGUMENT.match(view.raw, end)
        if last is not None:  # `set_password("service", "ana", "…")`
            start, end = last.span("value")
            value = last["value"]
        good = (
            is_password(value, quoted=_IDENTIFIER.fullmatch(value) is None)
            and not value.isdigit()
            and b" " not in value
        )
        return (start, end) if good else None
    if match.group(0).startswith(b"key") and not _BEFORE_KEY.search(
        view.low, max(0, match.start() - 20), match.start()
    ):
        return None
    return (start, end) if is_token(value, quoted=True) else None


# A part of a multipart form (RFC 7578).
_PART = re.compile(
    rb"name=\"[a-z_\-]{0,24}(?:pass|pwd|secret|token|pin)[a-z_\-]{0,16}\"\s{0,4}\n\s{0,4}(?P<value>[^\r\n]{4,256}+)"
)


def _part(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, is_written)


# Text that a test types into a field: `find("password").send_keys("…")`, `fill in "Password" with "…"`, `password.setText("…")`.
_TYPED = re.compile(
    rb"(?:pass(?:word|wd|phrase)?|(?<=[\"'#])pwd?)[a-z_]{0,12}(?:[\"']\]?[\"']?\){0,2})?"
    rb"(?: with |\.(?:send_?keys|type|fill|set_?value|set_?text)\()"
    rb"[\"'](?P<value>[^\"'\n]{4,128}+)[\"']"
)
# `password <- "…"` of R; a login or a hash created in SQL.
_ARROW = re.compile(rb"(?:pass(?:word|wd|phrase)?|pwd) ?<- ?[\"'](?P<value>[^\"'\n]{4,128}+)[\"']")
_IN_SQL = re.compile(
    rb"(?:sp_addlogin n?'[^'\n]{1,64}', ?n?|sp_password (?:[^,\n]{1,64}, ?)?n?|(?<![a-z])crypt\()'(?P<value>[^'\n]{4,128}+)'(?!, ?'\$)"
)

# Defaults that frameworks write into a new project, and password hashes in the formats of Unix and libraries (crypt(5), PHC).
_DJANGO = re.compile(rb"django-insecure-[^\s\"'`\\<>]{20,80}+")
_CRYPT = re.compile(
    rb"\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{50,60}+|[156]\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{20,90}+"
    rb"|apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{20,24}+|y\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{40,48}+"
    rb"|argon2(?:id|i|d)\$(?:v=[0-9]{1,3}\$)?[a-z0-9=,]{5,40}\$[A-Za-z0-9+/=]{8,88}\$[A-Za-z0-9+/=]{16,128}+"
    rb"|pbkdf2-[a-z0-9]{3,8}\$[0-9]{1,8}\$[A-Za-z0-9+/.=]{8,88}\$[A-Za-z0-9+/.=]{16,128}+)"
)


def _whole(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    return match.span()


# An access control list of Redis: `user app on >…`, `ACL SETUSER app >…`.
_LIST = re.compile(rb"user [\w.\-]{1,64}(?: [^\s>]{1,64}){1,12}? >(?P<value>[^\s\"']{3,256}+)")


def _listed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, is_written)


# Values of the OAuth 2.0 flows (RFC 6749, 7636, 8628), and signed tokens, by their own names.
_HANDED = re.compile(
    rb"(?:device_code|user_code|code_verifier|jwt(?:[_\-](?:token|assertion))?|client_assertion|saml_?response)()"
    + _CLOSE
    + _LINK
    + VALUE
)
_USER_CODE = re.compile(rb"[A-Z0-9]{4}-?[A-Z0-9]{4}")


def _handed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if not match["link"] or view.raw[max(0, match.start() - 1) : match.start()].isalnum():
        return None
    start, end, value, _ = value_of(match, view.raw)
    if view.raw[end : end + 1] in (b"(", b"["):
        return None  # a call
    if match.group(0).startswith(b"user_code"):
        return (start, end) if _USER_CODE.fullmatch(value) or is_credential(value) else None
    return (start, end) if is_token(value) or (len(value) >= SHORTEST_LOOSE and is_credential(value)) else None


RULES = (
    *(
        LiteralRule(
            _HANDED, _handed, lower=True, anchored=True, needle=word, opens=word + rb"[a-z_\-]*[\"'\]]*[ \t]*[:=]"
        )
        for word in (
            b"device_code",
            b"user_code",
            b"code_verifier",
            b"jwt",
            b"client_assertion",
            b"samlresponse",
            b"saml_response",
        )
    ),
    LiteralRule(_PASS, _password, lower=True, anchored=True, needle=b"pass"),
    *(
        LiteralRule(_PWD, _password, lower=True, anchored=True, needle=word)
        for word in (
            b"pwd",
            b"psk",
            b"keymaterial",
            b"rootpw",
            b"bindpw",
            b"rediscli_auth",
            b"presharedkey",
            b"pre_shared",
            b"pre-shared",
        )
    ),
    LiteralRule(
        _PW,
        _shortest,
        lower=True,
        anchored=True,
        needle=b"pw",
        opens=rb"(?:^|[^a-z0-9])pw(?: <const>)?[\"'\]]*[ \t]*[:=>]",
    ),
    LiteralRule(_SECRET, _secret, lower=True, anchored=True, fewest=1, needle=b"secret"),
    LiteralRule(_KEY, _key, lower=True, anchored=True, fewest=1, needle=b"key"),
    LiteralRule(_TOKEN, _token, lower=True, anchored=True, fewest=1, needle=b"token"),
    LiteralRule(
        _SIG,
        _signature,
        lower=True,
        anchored=True,
        fewest=1,
        needle=b"sig",
        opens=rb"sig(?:nature)?[_\-v0-9]*[\"'\]]*[ \t]*[:=]",
    ),
    LiteralRule(_CREDENTIAL, _token, lower=True, anchored=True, fewest=1, needle=b"credential"),
    LiteralRule(
        _AUTH, _auth, lower=True, anchored=True, fewest=1, needle=b"auth", opens=rb"auth[a-z_\-]*[\"'\]]*[ \t]*[:=]"
    ),
)
IN_OTHER_LANGUAGES = (*(LiteralRule(_FOREIGN, _password, lower=True, anchored=True, needle=word) for word in FOREIGN),)
OPTION = LiteralRule(_PASS, _password, lower=True, needle=b"--pass")
#: Rules that need no assignment mark.
UNMARKED = (
    LiteralRule(
        _PASS, _password, lower=True, anchored=True, needle=b"pass", opens=rb"#[ \t]?define[ \t]+[a-z0-9_]*pass"
    ),
    LiteralRule(
        _PART,
        _part,
        lower=True,
        anchored=True,
        needle=b'name="',
        opens=rb"name=\"[a-z_\-]*(?:pass|pwd|secret|token|pin)[a-z_\-]*\"\s",
    ),
    LiteralRule(
        _TYPED,
        _part,
        lower=True,
        anchored=True,
        needle=b"pw",
        opens=rb"[\"'#]pwd?[\"'\])]*\.(?:send_?keys|type|fill|set_?value|set_?text)\(",
    ),
    LiteralRule(_PASS, _password, lower=True, anchored=True, fewest=1, needle=b"pass", opens=rb"pass[a-z]*(?:  |\t)"),
    LiteralRule(
        _TYPED,
        _part,
        lower=True,
        anchored=True,
        needle=b"pass",
        opens=rb"pass[a-z_]*[\"'\])]*(?: with [\"']|\.(?:send_?keys|type|fill|set_?value|set_?text)\()",
    ),
    *(
        LiteralRule(_ARROW, _part, lower=True, anchored=True, needle=word, opens=word + rb"[a-z]* ?<- ?[\"']")
        for word in (b"pass", b"pwd")
    ),
    *(
        LiteralRule(_IN_SQL, _part, lower=True, anchored=True, needle=word)
        for word in (b"sp_addlogin", b"sp_password", b"crypt('")
    ),
    LiteralRule(_DJANGO, _whole, anchored=True, needle=b"django-insecure-"),
    *(
        LiteralRule(_CRYPT, _whole, anchored=True, fewest=1, needle=word)
        for word in (
            b"$2a$",
            b"$2b$",
            b"$2x$",
            b"$2y$",
            b"$1$",
            b"$5$",
            b"$6$",
            b"$apr1$",
            b"$y$",
            b"$argon2",
            b"$pbkdf2-",
        )
    ),
    LiteralRule(
        _LIST, _listed, lower=True, anchored=True, needle=b"user ", opens=rb"user [a-z0-9_.\-]+ (?:on|off|>|reset)"
    ),
    *(
        LiteralRule(_OTHER_SCRIPT, _other_script, anchored=True, needle=kind.byte)
        for kind in (Announces.PASSWORD, Announces.TOKEN)
    ),
    *(
        LiteralRule(pattern, accept, lower=True, anchored=True, needle=word, opens=word + rb"[a-z_\-]*" + opens)
        for pattern, accept, opens in (
            (_NEXT, _next, rb"\\*[\"'][ \t]*,\s*[brun@]?\\*[\"']"),
            (_CALL, _call, rb"[({] ?[brun@]?[\"']"),
        )
        for word in (b"pass", b"pwd", b"psk", b"secret", b"token", b"key", b"credential", b"sid", b"session", b"x-auth")
    ),
    LiteralRule(_NEXT, _next, lower=True, anchored=True, fewest=1, needle=b"salt", opens=rb"_salt[\"'][ \t]*,\s*[\"']"),
)
