"""A word that names a secret, what attaches a value to it, and the value: `password=…`, `"api_key": "…"`, `<td>token</td><td>…`."""

import re

from assay_scrubber.family import Rule, View
from assay_scrubber.lexicon import Announces

from .extent import ending, judged, value_of
from .values import (
    OF_NAMES,
    TEMPLATE,
    is_disguised,
    is_file,
    is_password,
    is_spoken,
    is_token,
    is_written,
    is_written_with_digits,
    reads_as_prose,
)

#: Words for passwords in languages of Latin letters, as the projection has them.
FOREIGN = tuple(
    "contrase\x80a|contrasena|senha|wachtwoord|kennwort|has\x80o|haslo|heslo|salasana|l\x80senord|losenord|adgangskode|kodeord|parola"
    "|\x80ifre|sifre|jelsz\x80|jelszo|m\x80t kh\x80u|mat khau|palavra-passe|lozinka|parool|geslo|kata sandi|parol\x80|slapta\x80odis"
    "|parola d'ordine".encode("latin-1").split(b"|")
)

_VALUE = (
    # String literals of programming languages, and what makes a secret's type of one.
    rb"(?:(?:secretstr|secret|string(?:::from|\.valueof)?|str|new string|convertto-securestring(?: -string)?"
    rb"|\[\]byte|(?:md5|sha[0-9]{1,3}|(?:en)?crypt|hash)(?=\([\"'][^\"'\n]{1,256}[\"']\)))[( ] {0,2}(?=[\"'])|<!\[cdata\["
    rb"|[brufnl@]{1,2}(?=[\"'])|q{1,2}[{(|/]|!{1,2}[a-z]{1,8} )?"
    rb"(?:\\{0,6}(?P<quote>[\"'`])(?P<quoted>[^\"'`\n\\]{1,512}+)|(?P<bare>[^\s\"'`,;&<>()\[\]{}|]{1,512}+))"
)
NOW = rb"(?: now| still| currently)?(?: set| changed| reset)?(?: to)?"
_SUFFIX = (
    rb"(?:[_\-.]?(?:key|value|string|id|hash|data|base|new|old|prod|production|dev|staging|live|test|confirm|confirmation|again"
    rb"|repeat|current|next|plain|text|[0-9]{1,2}|_{1,2})){0,2}"
)
_CLOSE = rb"(?: \([a-z0-9 \-]{1,24}\))?(?:\\{0,6}[\"'`])?(?:\[[0-9]{0,4}\]|[\])]{0,2})(?:\*\*|</[a-z]{1,8}>)?"
_LINK = (
    rb"[ \t]{0,8}+(?P<link>=>|:=|={1,2}|->|<-|:[ \t]?[|>][+\-]?[ \t]?\n[ \t]{1,16}"  # the third: a block of YAML
    rb"|:[ \t]?&?(?:'static )?[a-z][\w.\[\]<>?]{0,24}[ \t]?=[ \t]?(?=[brun@]?[\"'])|string[ \t]?="
    rb"|as string ?=|n?(?:var)?char2?(?:\([0-9max]{1,5}\))? ?:?=|:|>|(?:is|was)%b:?(?=[ \t])|(?<=[ \t])"
    rb"|\s{0,16}<(?:t?[dh]d?|string|value|val|code)>)(?:\*{1,2}|</?[a-z]{1,8}>){0,2}[ \t]{0,8}+" % NOW
)
_TAIL = _SUFFIX + _CLOSE + _LINK + _VALUE
# Each begins with a literal, which the search skips to; what stands before the word is looked at last.
_HEAD_PASS = rb"pass(words?|wd|phrase|code|wort|ord|e)?"
_HEAD_SECRET = rb"secret((?:[_\- ]?access)?[_\- ]?(?:key)?)"
_PASS = re.compile(_HEAD_PASS + _TAIL)
_PWD = re.compile(rb"(?:p(?:wd|sk)|keymaterial|rootpw|bindpw|rediscli_auth|pre[_\-]?shared[_\-]?key)()" + _TAIL)
_PW = re.compile(rb"pw(?: <const>)?(?=[\"' :=\])>])" + _CLOSE + _LINK + _VALUE)
_SECRET = re.compile(_HEAD_SECRET + _TAIL)
_KEY = re.compile(rb"key()" + _TAIL)
_TOKEN = re.compile(rb"token()" + _TAIL)
_SIG = re.compile(
    rb"sig(nature)?(?:[_\-]?v?[0-9]{1,3})?"
    + _CLOSE
    + _LINK
    + rb"(?:t=[0-9]{1,16},)?(?:sha(?:1|256|512)=|v[01]=)?"
    + _VALUE
)
_CREDENTIAL = re.compile(rb"credentials?()" + _TAIL)
_AUTH = re.compile(rb"auth(?:[_\-]?(?:code|pass|header|string|cookie|hash))?()" + _CLOSE + _LINK + _VALUE)
_FOREIGN = re.compile(
    rb"(?:%b)(?:et|en|t|n|m|s\x80|n\x80z|ni|ul|ja)?(?P<foreign>)(?![a-z\x80])" % b"|".join(FOREIGN) + _TAIL
)
_OTHER_SCRIPT = re.compile(
    rb"(?:%b|%b)"
    % (Announces.PASSWORD.word, Announces.TOKEN.word)
    + rb"(?P<between>\\{0,6}[\"'`][ \t]{0,2}[:=,][ \t]{0,4}\\{0,6}(?=[\"'`])"
    rb"|[^A-Za-z0-9\n\"'`\\]{0,48}+(?:[A-Z][A-Za-z\-]{1,7} [^A-Za-z0-9\n\"'`\\]{2,32}+)?)"
    + rb"(?:(?P<quote>[\"'`])(?P<quoted>[^\"'`\n\\]{1,512}+)|(?P<bare>(?![\\\"'`])[!-~]{1,512}+))"
)
_BEFORE_KEY = re.compile(
    rb"(?:api|access|accesskey|account|private|shared|signing|encryption|master|auth|consumer|client|storage|app|application|service|"
    rb"subscription|license|webhook|jwt|session|deploy|host|functions?|primary|secondary|secret|security|hmac|aes|sym|admin|server|crypto|"
    rb"cipher|vault|unseal|recovery|backup|integration|ingest|ingestion|registration|bot|tenant|sas|cookie|csrf|totp|writer?|mms"
    rb"|routing)[_\-. ]?$|login\($|(?<![a-z0-9])x-(?!idem|cache|surr|req|part|sort|obj|row|trace|corr)[a-z0-9]{2,12}-$"
)
_ENVIRONMENT = re.compile(rb"(?:^|[\s;\"'`({|&\-])[A-Z][A-Z0-9_]*$|(?:^|[\s\"'])-D[\w.\-]+$")
_LINE = re.compile(rb"(?:^|\n)[ \t]{0,32}(?:- |> |\* )?[\w.\-]{1,64}[ \t]?$")
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
_NEAR = 16  # how far from a word of another script its value may be as it likes
_DIGITS_OR_MARKS = b"0123456789!@#$%^&*+~?"


def _only_a_value(view: View, match: re.Match[bytes], value: bytes, end: int) -> bool:
    """True where nothing but a value can stand: in JSON, in a form that is posted, after a variable of the environment."""
    link, quote, at, raw = match["link"], match["quote"], match.start("link"), view.raw
    if link == b":" and quote == b'"' and raw[max(0, at - 4) : at].rstrip().endswith(b'"'):
        return True
    after = end + (quote is not None)
    ended = raw[after : after + 1] in (b"", b"\n", b"\r")
    if link == b":":
        line = ended and _LINE.search(raw, max(0, at - 100), at) is not None
        return line and (len(value) >= _SHORTEST_OF_LETTERS if quote else any(c in _DIGITS_OR_MARKS for c in value))
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


def _password(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    before = view.raw[max(0, match.start() - 2) : match.start()]
    kind, link = match.group(1), match["link"]
    foreign = match.re is _FOREIGN
    cut = kind in (None, b"code") or (kind == b"" and match.group(0).startswith((b"pwd", b"psk")))
    if cut and before[-1:].isalnum() and not _is_camel(view, match):
        return None  # bypass=, compass:
    option = before == b"--"
    named = before[-1:] == b":" or _DEFINED.search(view.low, max(0, match.start() - 48), match.start()) is not None
    if not link and not option and not (named and match["quote"]):
        return None  # what has its value behind nothing but a space: an option, a keyword of Lisp, a macro of C
    start, end, value, quoted = value_of(match, view.raw)
    if not quoted and view.raw[end : end + 1] == b"(" and not value.translate(None, OF_NAMES):
        return None  # a call
    if kind is None and is_file(value):
        return None
    good = is_password(value, quoted=quoted) or (
        kind is not None and is_written(value) and _only_a_value(view, match, value, end)
    )
    if not good and is_written_with_digits(value):
        # No code has words of other languages; an option and an element hold nothing but values.
        element = link.endswith(b">") and view.raw[end : end + 2] == b"</"
        good = (foreign and link in (b":", b"")) or b"\n" in link or element or not link
    return (start, end) if good else None


_CAMEL_OR_KNOWN = re.compile(
    rb"[a-z0-9]P$|(?i:db|my|user|usr|admin|root|smtp|mail|imap|ftp|ldap|sql|redis|app|keystore|store|wifi|web|auth|proxy|vpn|api|bind|sudo"
    rb"|ssh|login|svc|srv)(?i:p)$"
)


def _shortest(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """After `pw`, which means other things too, a width among them."""
    if match["link"] in (b"", b"==") or view.raw[max(0, match.start() - 1) : match.start()].isalnum():
        return None
    start, end, value, quoted = value_of(match, view.raw)
    good = is_written_with_digits(value) and value.find(b" ") < 0 if quoted else is_spoken(value)
    return (start, end) if good and not _ACCOUNT.fullmatch(value) else None


_DEFINED = re.compile(rb"#[ \t]?define[ \t]{1,4}[a-z0-9_]{0,32}$")


def _is_camel(view: View, match: re.Match[bytes]) -> bool:
    """`dbPass`, `smtppwd`, but not `bypass`."""
    return _CAMEL_OR_KNOWN.search(view.raw, max(0, match.start() - 12), match.start() + 1) is not None


# Tokens that only say where a list goes on, or which request this is.
_NO_SECRET = re.compile(
    rb"(?:page|next|continuation|pagination|cursor|sync|idempotency|request|scroll|resume|skip|delta|start|marker)[_\- ]?$"
)


def _token(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if _NO_SECRET.search(view.low, max(0, match.start() - 16), match.start()):
        return None
    if not match["link"] and view.low[max(0, match.start() - 12) : match.start()].rfind(b"--") < 0:
        return None
    start, end, value, quoted = value_of(match, view.raw)
    return (start, end) if is_token(value, quoted=quoted) else None


def _secret(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Secrets are made by programs, as a rule; in the environment people make up some."""
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
        return None  # of a queue: `user.42.events`
    return found


def _signature(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Of a request: a header, or a parameter of an address. What signs a file is no secret."""
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
    """What changes the script after the word is its value, unless it reads as a word of prose."""
    quote = match["quote"]
    start, end = match.span("quoted" if quote else "bare")
    value = view.raw[start:end] if quote else view.raw[start:end].rstrip(b".,;:!?)]}\"'\\")
    if not quote and value.isalpha():
        return None
    named = quote is not None or any(
        c in b"0123456789" for c in value
    )  # a name in code has no word of another script before it
    if view.raw[match.start()] == Announces.TOKEN:
        good = is_token(value)
    elif quote is None and (len(match["between"]) > _NEAR or match["between"].find(b" \x80") >= 0):
        colon = match["between"].rstrip().endswith(b":")  # words between may be of anything: `пароль от сервера db-2`
        good = is_disguised(value) or (
            is_written_with_digits(value) if colon else is_spoken(value) and not _ACCOUNT.fullmatch(value)
        )
    else:
        good = is_password(value, quoted=named) and not value.isdigit()
    prose = quote is None and reads_as_prose(value)
    return (start, start + len(value)) if good and not prose and not TEMPLATE.fullmatch(value) else None


# The name as a string, and its value as the next one: `("password", "…")`, `define('DB_PASSWORD', '…')`.
_NAMES = (
    rb"(?:pass(?:words?|wd|phrase|code|wort)?|p(?:wd|sk)|secret|token|key|credentials?|sid|session(?:_?id)?|x-auth)"
)
_NEXT = re.compile(_NAMES + _SUFFIX + rb"\\{0,6}[\"'][ \t]{0,2},\s{0,16}(?=[brun@]{0,2}\\{0,6}[\"'])" + _VALUE)
_CALL = re.compile(_NAMES + rb"(?P<link>[({][ \t]{0,2}(?=[brun@]{0,2}[\"']))" + _VALUE)
_IDENTIFIER = re.compile(rb"[A-Za-z_]\w*")
_OPENED = re.compile(rb"[(\[] ?[\"'\\]{1,4}[\w.\-#]{0,32}$")
# One attribute or member names it, another one holds it: `{"name": "token", "value": "…"}`, `<add key="DbPassword" value="…"/>`.
_HELD = re.compile(rb"(?:value|val|default|content)\\{0,6}[\"']?[ \t]{0,4}[:=][ \t]{0,4}" + _VALUE)
_NAMED = re.compile(
    rb"(?P<name>" + _NAMES + rb")" + _SUFFIX + rb"\\{0,6}[\"']?[,;]?(?:\s{1,20}|[ \t]?\{\s{0,20}|\s{0,4}\\{0,6}[\"'])"
    rb"(?:[a-z\-]{1,16}=[\"'][^\"'\n]{0,48}[\"']\s{1,4}"
    rb"|\\{0,6}\"?[a-z]{1,12}\\{0,6}\"?[ \t]{0,4}[:=][ \t]{0,4}\\{0,6}\"?[a-z]{1,12}\\{0,6}\"?[,\s]\s{0,16}"
    rb"|\\{0,6}[\"']){0,4}$"
)
_REACH = 160


def _is_meant(view: View, at: int, name: bytes, value: bytes) -> bool:
    """Whether `value` is what a word that begins `at` names, where only a value can stand."""
    if name.startswith((b"pass", b"pwd", b"psk")):
        return is_written(value)
    if name.startswith(b"key") and not _BEFORE_KEY.search(view.low, max(0, at - 20), at):
        return False
    return is_token(value, quoted=True)


def _next(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """In a call or a tuple of two: `("password", "…")`. A list of names is none."""
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
        not is_password(value, quoted=True) or value.isdigit()
    ):
        return None
    return (start, end) if _is_meant(view, match.start(), match.group(0), value) else None


def _held(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    named = _NAMED.search(view.low, max(0, match.start() - _REACH), match.start())
    if named is None:
        return None
    quote = match["quote"]
    start, end, value, _ = ending(quote, match.span("quoted" if quote else "bare"), view.raw, whole=True)
    return (start, end) if _is_meant(view, named.start(), named["name"], value) else None


def _call(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """`setPassword("…")`, `PASSWORD('…')`, but not what looks one up: `get_password("…")`."""
    if _GETTER.search(view.low, max(0, match.start() - 12), match.start()):
        return None
    start, end, value, _ = ending(match["quote"], match.span("quoted"), view.raw, whole=True)
    if match.group(0).startswith((b"pass", b"pwd")):
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


# A part of a form (RFC 7578).
_PART = re.compile(
    rb"name=\"[a-z_\-]{0,24}(?:pass|pwd|secret|token|pin)[a-z_\-]{0,16}\"\s{0,4}\n\s{0,4}(?P<value>[^\r\n]{4,256}+)"
)
# A user and a password as arguments: `login("ana", "…")`, `auth=("ana", "…")`.
_ARGUMENTS = re.compile(
    rb"(?:login|log_in|credentials?|auth|authenticate|authentication|sign_?in)(?: ?= ?)?(?:\("
    rb"|: ?\[)\s{0,8}(?:[a-z_]{1,16}=)?[\"'][^\"'\n]{1,64}[\"'],\s{0,8}"
    rb"(?:[a-z_]{1,16}=)?[\"'](?P<value>[^\"'\n]{4,128}+)[\"']"
)


# A connection with its user and password in order: `new PDO("…", "ana", "…")`.
_CONNECTION = re.compile(
    rb"(?:pdo|connect|getconnection|mysqli|connection)\(\s{0,8}(?:[^,()\n]{1,128},\s{0,8}){1,2}?[\"'][^\"'\n]{1,64}[\"'],\s{0,8}[\"'](?P<value>[^\"'\n]{4,128}+)[\"']"
)


def _part(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, is_written)


def _argument(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    value = view.raw[slice(*match.span("value"))]
    mixed = not value.islower() and not value.isupper() and is_written_with_digits(value)
    numbered = value[-2:].isdigit() and is_written_with_digits(value)
    good = (is_password(value, quoted=False) or mixed or numbered) and not value.isdigit()
    return match.span("value") if good and not _CHARSET.fullmatch(value) else None


_CHARSET = re.compile(rb"(?i)utf[\-_]?(?:8|16|32)\w{0,16}|latin[\-_]?1|iso[\-_]?8859[\-_0-9]{0,4}|cp[0-9]{3,4}")


# What a test types into a field: `find("password").send_keys("…")`, `fill in "Password" with "…"`, `password.setText("…")`.
_TYPED = re.compile(
    rb"pass(?:word|wd|phrase)?[a-z_]{0,12}(?:[\"']\]?[\"']?\)?)?(?: with |\.(?:send_?keys|type|fill|set_?value|set_?text)\()"
    rb"[\"'](?P<value>[^\"'\n]{4,128}+)[\"']"
)
# `password <- "…"` of R; a login or a hash that is made in SQL.
_ARROW = re.compile(rb"(?:pass(?:word|wd|phrase)?|pwd) ?<- ?[\"'](?P<value>[^\"'\n]{4,128}+)[\"']")
_IN_SQL = re.compile(
    rb"(?:sp_addlogin n?'[^'\n]{1,64}', ?n?|sp_password (?:[^,\n]{1,64}, ?)?n?|(?<![a-z])crypt\()'(?P<value>[^'\n]{4,128}+)'(?!, ?'\$)"
)

# An access control list of Redis: `user app on >…`, `ACL SETUSER app >…`.
_LIST = re.compile(rb"user [\w.\-]{1,64}(?: [^\s>]{1,64}){1,12}? >(?P<value>[^\s\"']{3,256}+)")


def _listed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, is_written)


RULES = (
    Rule(_PASS, _password, lower=True, anchored=True, needle=b"pass"),
    *(
        Rule(_PWD, _password, lower=True, anchored=True, needle=word)
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
    Rule(
        _PW,
        _shortest,
        lower=True,
        anchored=True,
        needle=b"pw",
        opens=rb"(?:^|[^a-z0-9])pw(?: <const>)?[\"'\]]*[ \t]*[:=>]",
    ),
    Rule(_SECRET, _secret, lower=True, anchored=True, fewest=1, needle=b"secret"),
    Rule(_KEY, _key, lower=True, anchored=True, fewest=1, needle=b"key"),
    Rule(_TOKEN, _token, lower=True, anchored=True, fewest=1, needle=b"token"),
    Rule(
        _SIG,
        _signature,
        lower=True,
        anchored=True,
        fewest=1,
        needle=b"sig",
        opens=rb"sig(?:nature)?[_\-v0-9]*[\"'\]]*[ \t]*[:=]",
    ),
    Rule(_CREDENTIAL, _token, lower=True, anchored=True, fewest=1, needle=b"credential"),
    Rule(_AUTH, _auth, lower=True, anchored=True, fewest=1, needle=b"auth", opens=rb"auth[a-z_\-]*[\"'\]]*[ \t]*[:=]"),
)
IN_OTHER_LANGUAGES = (*(Rule(_FOREIGN, _password, lower=True, anchored=True, needle=word) for word in FOREIGN),)
OPTION = Rule(_PASS, _password, lower=True, needle=b"--pass")
#: These need no mark that assigns.
UNMARKED = (
    Rule(_PASS, _password, lower=True, anchored=True, needle=b"pass", opens=rb"#[ \t]?define[ \t]+[a-z0-9_]*pass"),
    Rule(
        _PART,
        _part,
        lower=True,
        anchored=True,
        needle=b'name="',
        opens=rb"name=\"[a-z_\-]*(?:pass|pwd|secret|token|pin)[a-z_\-]*\"\s",
    ),
    *(
        Rule(_CONNECTION, _argument, lower=True, anchored=True, needle=word, opens=word + rb"\(")
        for word in (b"pdo", b"connect", b"getconnection", b"mysqli", b"connection")
    ),
    *(
        Rule(
            _ARGUMENTS,
            _argument,
            lower=True,
            anchored=True,
            needle=word,
            opens=word + rb"[a-z_]*(?: ?= ?)?(?:\(|: ?\[)",
        )
        for word in (b"login", b"log_in", b"credential", b"auth", b"signin", b"sign_in")
    ),
    Rule(
        _TYPED,
        _part,
        lower=True,
        anchored=True,
        needle=b"pass",
        opens=rb"pass[a-z_]*[\"'\])]*(?: with [\"']|\.(?:send_?keys|type|fill|set_?value|set_?text)\()",
    ),
    *(
        Rule(_ARROW, _part, lower=True, anchored=True, needle=word, opens=word + rb"[a-z]* ?<- ?[\"']")
        for word in (b"pass", b"pwd")
    ),
    *(
        Rule(_IN_SQL, _part, lower=True, anchored=True, needle=word)
        for word in (b"sp_addlogin", b"sp_password", b"crypt('")
    ),
    Rule(_LIST, _listed, lower=True, anchored=True, needle=b"user ", opens=rb"user [a-z0-9_.\-]+ (?:on|off|>|reset)"),
    *(
        Rule(_OTHER_SCRIPT, _other_script, anchored=True, needle=kind.byte)
        for kind in (Announces.PASSWORD, Announces.TOKEN)
    ),
    *(
        Rule(pattern, accept, lower=True, anchored=True, needle=word, opens=word + rb"[a-z_\-]*" + opens)
        for pattern, accept, opens in (
            (_NEXT, _next, rb"\\*[\"'][ \t]*,\s*[brun@]?\\*[\"']"),
            (_CALL, _call, rb"[({] ?[brun@]?[\"']"),
        )
        for word in (b"pass", b"pwd", b"psk", b"secret", b"token", b"key", b"credential", b"sid", b"session", b"x-auth")
    ),
    *(
        Rule(_HELD, _held, lower=True, anchored=True, needle=word, opens=word + rb"\\*[\"']?[ \t]*[:=]")
        for word in (b"value", b"val", b"default", b"content")
    ),
)
