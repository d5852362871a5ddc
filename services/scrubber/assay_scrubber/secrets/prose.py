"""Match secrets in sentences: `the password for the portal is …`, `mein Passwort lautet …`."""

import re
from collections.abc import Iterator

from assay_scrubber.family import LiteralRule, View, nothing

from .assigned import FOREIGN, NOW, is_clear, is_digits
from .extent import ending
from .values import (
    SHORTEST_LOOSE,
    is_disguised,
    is_made_up,
    is_no_word,
    is_password,
    is_phrase,
    is_said,
    is_short_key,
    is_spoken,
    is_token,
    is_unmistakable,
    is_written,
    is_written_with_digits,
    reads_as_prose,
    surprises,
)

_VALUE = rb"(?:\\{0,6}([\"'`])([^\"'`\n\\]{1,512}+)|([^\s\"'`,;&<>()\[\]{}|]{1,512}+))"
# In prose, in a table, after an option: `the password for the portal is ...`, `| api_key | ... |`, `--token ...`.
_PROSE = re.compile(
    rb"(?:pass(word|phrase|code|wd)|(pwd)|(?<=[a-z][ _\-])key|(?<=api)key|token|secret)\W??"
    rb"(?:(?: [a-z][a-z'\-]{0,14}){0,5}? ((?:is|was|has been|will be)%b|(?:set|changed|reset) to):? {1,2}"
    rb"|( (?:\| {0,8}|- |-> ?|\x81 |\(|(?=[\"'`])|)))" % NOW + _VALUE
)
_OPTION = re.compile(rb"(?:--|(?:^|[^a-z])set )[a-z_\-]{0,20}$")


def _prose(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    loosely = match.group(4)
    start, end, value, quoted = ending(match.group(5), match.span(6 if match.group(5) else 7), view.raw, whole=True)
    if (
        loosely == b" "
        and match.group(5) is None
        and not _OPTION.search(view.low, max(0, match.start() - 26), match.start())
    ):
        if match.group(1):
            return None
        clear = _WHOSE.search(view.low, max(0, match.start() - 16), match.start()) is not None
        return (start, end) if is_unmistakable(value) or (clear and _is_long(value)) else None
    if not match.group(1) and not match.group(2):
        good = is_token(value, quoted=quoted) and (not loosely or loosely == b" " or surprises(value) * 5 >= len(value))
        good = good or (loosely in (None, b" ") and is_short_key(value) and is_clear(view.low, match.start()))
    elif loosely and loosely != b" ":
        good = (len(value) >= SHORTEST_LOOSE and surprises(value) * 5 >= len(value)) or (
            loosely.lstrip()[:1] in b"|-" and match.group(5) in (None, b"`") and is_no_word(value)
        )
    else:
        digits = is_digits(view.low, value, end) and _ITSELF.match(match.group(0)) is not None
        good = is_password(value, quoted=quoted) or (quoted and is_phrase(value)) or digits
    return (start, end) if good else None


# The owner or kind of a key that stands right before its value: a cache key or table key can look the same.
_WHOSE = re.compile(
    rb"(?:^|[^a-z])(?:api|(?:my|your|our)(?: [a-z0-9]{2,16})?|use this"
    rb"|access|secret|auth|license|client|private|service|signing|encryption|master)"
    rb"[ _\-]$|api$"
)
# The password itself, not the number or age of passwords.
_ITSELF = re.compile(rb"[a-z]+ (?:is|was|has|will|set|changed|reset|for|of|to|on|at|in)\b")
_SHORTEST_LONG = 16


def _is_long(value: bytes) -> bool:
    return len(value) >= _SHORTEST_LONG and value.isalnum() and is_token(value)


# Without a verb, or with one in another language: the value must not read as a word of prose.
_PASSWORDS = (
    rb"(?:password|passwort|passord|(?:wlan|wi-?fi|netzwerk)[ \-](?:schl\x80ssel|key|clave)|(?:cl\x80|code) "
    rb"(?:du )?(?:wi-?fi|wlan)|pass(?=[ :])"
    rb"|passphrase|passcode|passwd|mot de passe|clave|contrase.{1,2}a|%b)" % b"|".join(FOREIGN)
)
_WORD = rb"(?: [a-z\x80][a-z\x80'\-]{0,12})"
_COPULA = (
    rb"(?:is|was|used to be|ist|lautet|war|est|c'est|es|era|\x80|e'|e|on|jest|to|\x80r|er|je|van|var|l\x80|olarak|fue|foi|heter|som"
    rb"|adalah|este"
    rb"|ge\x80ndert (?:auf|in)|:)"
)
# A value without quotes: up to a space, or the end of a clause.
_ALONE = rb"(?P<value>[^\s\"'`,;<>()\[\]{}|]{5,128}+)"
_NOW = rb"(?: (?:jetzt|nun|d\x80sormais|maintenant|ahora|agora|adesso|ora|nu|n\x80|teraz|te\x80|\x80imdi|simdi|now))?"
_SPOKEN = re.compile(
    rb"(?<![a-z_\-])%b(?:et|en|t|n|m|s\x80|n\x80z|niz|ni|ul|ja)?(?:[ \t]{0,2}(?::"
    rb"|=)?(?P<words>%b{0,5}?)(?P<verb> %b%b:?|:|'s))?(?:[ \t]{1,3}|(?<=:))(?:[\"'`]|\x81 ?)?%b"
    % (_PASSWORDS, _WORD, _COPULA, _NOW, _ALONE)
)
_USER = re.compile(
    rb"(?:login|user(?:name|id)?|account|benutzer(?:name)?|usuario|utilisateur|utente"
    rb"|gebruiker)(?: is| ist| est| es)?[ :=]{1,3}[\w.@\-]{1,48}[,;/ ]{1,3}(?:und |and |et |y |e |mit |with )?$"
)


# The purpose of a password stands between it and a colon; other text about passwords does not begin like this.
_OF_WHAT = re.compile(
    rb" (?:has|hasn't|had|hadn't|have|was|remains?|stays|still"
    rb"|for|of|to|on|at|do|di|da|de|del|du|des|der|zum|zur|f\x80r|k|voor|van|til|till|pour|para|per|od|na|w|v|la|le|el|mo|mu)\b"
    rb"| (?:provis|tempor|ini[ct]ial|nov|nuev|nouv|neu|a[ck]t|new|current|default|padr)"
)
# `is veranderd in …`
_TWO_WORDS_ON = re.compile(rb"(?: [a-z\x80]{1,10})? {1,2}[\"'`]?" + _ALONE)


_SENT = (b"sent", b"mailed", b"given", b"forwarded", b"shown", b"according", b"belongs", b"access")  # `to` someone


def _spoken(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    verb, colon_after_words = match["verb"], match["verb"] == b":" and match["words"] != b""
    if colon_after_words and not _OF_WHAT.match(match["words"]):
        return None  # `password manager: KeePass2`
    start, end = match.start("value"), match.start("value") + len(_last(match))
    value = view.raw[start:end]
    if verb == b" to" and match["words"].endswith(_SENT):
        return None
    bare = match.group(0).startswith((b"pass ", b"pass:"))
    if verb not in (None, b":", b" was") and value.isalpha() and not bare:
        later = _TWO_WORDS_ON.match(view.low, match.end("value"))
        if later and (found := _hardly_a_word(view, later)):
            return found
    if view.raw[end : end + 1] in (b"(", b"["):
        return None
    if bare and not _is_after_user(view, match.start()):
        owned = verb in (b" is", b" was") and _OWNED.search(view.low, max(0, match.start() - 12), match.start())
        return (start, end) if owned and is_said(value) else None
    if is_spoken(value) or (verb and is_disguised(value)) or _digits(view, match, start, end):
        return start, end
    if (not verb or colon_after_words) and not _is_after_user(view, match.start()):
        return None
    good = is_password(value, quoted=False) or is_written_with_digits(value)
    return (start, end) if good and not reads_as_prose(value) else None


_OWNED = re.compile(rb"(?:^|[^a-z])(?:the|my|his|her|our|their|your|old|new) $")


def _is_after_user(view: View, position: int) -> bool:
    return _USER.search(view.low, max(0, position - 96), position) is not None


_MARK_BEFORE = re.compile(rb"[:=][ \t\"'`]{0,4}$")


def _digits(view: View, match: re.Match[bytes], start: int, end: int) -> bool:
    """Match digits after the word and a verb or a mark, with nothing else between."""
    said = (match["verb"] and not match["words"]) or _MARK_BEFORE.search(view.low, match.start(), start)
    return bool(said) and is_digits(view.low, view.raw[start:end], end)


def _hardly_a_word(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start = match.start("value")
    end = start + len(_last(match))
    value = view.raw[start:end]
    named = match["value"].find(b"pass") >= 0  # `is called passwd2`
    return (start, end) if not named and is_no_word(value) else None


def _last(match: re.Match[bytes]) -> bytes:
    """Return a value without the punctuation that ends the sentence."""
    return match["value"].split(b"&quot", 1)[0].rstrip(b".:?*_")


_IDENTIFIED = re.compile(
    rb"identified (?:with [\w\"'`]{1,32} )?(?:by|as)(?: values)? ?(?:([\"'])((?:[^\"'\n]|''|\"\"){1,256}+)|()([^\s\"';,()]{4,128}+))"
)
_SQL_PASSWORD = re.compile(
    rb"password(?: for [^=;\n]{1,80}?)?(?: (?:is|=|:=|expire|using))? ?\(? ?(')((?:[^'\n]|''){1,256}+)'"
)
_STATEMENT = re.compile(rb"\b(?:create|alter|set|grant|update|insert|user|role|login|with)\b[^;\n]{0,160}$")


def _identified(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match a password in an SQL statement: the whole quoted text."""
    if match.re is _SQL_PASSWORD and not _STATEMENT.search(view.low, max(0, match.start() - 200), match.start()):
        return None
    bare = match.group(2) is None
    start, end = match.span(4 if bare else 2)
    value = view.raw[start:end]
    return (start, end) if (is_written_with_digits(value) if bare else is_written(value)) else None


# The value first: `use … as the password`. An abbreviation: `user ana, PW …`.
_NAMED_AFTER = re.compile(rb"(?:password|passphrase|passwort|passcode)")
_FIRST = re.compile(
    rb"(?:^|[\s\"'`:(])([^\s\"'`]{6,64}+)[\"'`]?(?P<link> (?:is|was|as|works? as|for)| (?:[a-z']{2,10} ){1,4}?(?:as|for)(?= )"
    rb"|(?:[,?.]| -| \x81)? [Tt]hat(?:'| i)s)"
    rb" (?:the |your |my |our |a )?(?:[a-z\-]{2,12} )?$"
)
_WORKS = (b" works as", b" work as", b" that's", b" that is", b" - that's")
_TICKET = re.compile(rb"[A-Za-z\-]+#[0-9]+")  # `see Keycloak#45`
_PW = re.compile(
    rb"(?<![a-z0-9_\-])(?:p/?w|mdp|pass(?= (?:for|to|on|of) ))(?:(?: is| to| ist| lautet| est|[\x80\x81]{1,2})?"
    rb"(?:(?<=[\x80\x81])|[ ]{0,2}(?:->|=>|-(?= ))[ ]{0,2}|[ :=]{1,3})"
    rb"|(?: [a-z0-9\x80][a-z0-9\x80'\-.]{0,15}){1,5}?(?::| (?:is|was|ist|est|=|->|=>)):? )[\"'`]?" + _ALONE
)


_CLAUSE_ENDS = re.compile(rb"[ \t]*(?:[.,;:!?)\n]|$)")


def _first(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    named = _FIRST.search(view.raw, max(0, match.start() - 110), match.start())
    if named is None:
        return None
    start = named.start(1)
    value = named.group(1).rstrip(b"?,.")
    if not is_said(value) or (named["link"] == b" for" and _TICKET.fullmatch(value)):
        return None
    if named["link"].count(b" ") > 1 and named["link"] not in _WORKS:  # `why does … not work as my password`
        if value.islower() and not is_made_up(value):
            return None
        return (start, start + len(value)) if _CLAUSE_ENDS.match(view.low, match.end()) else None
    if named.group().find(b" that") >= 0 and not _CLAUSE_ENDS.match(view.low, match.end()):
        return None  # `issue4242, that's the password bug`
    return start, start + len(value)


# `is my password still …?`; `the password for the VPN (…) expired`; `user and p`; both of them when one was changed.
_ASKED = re.compile(rb"password (?:still|really|actually) [\"'`]?" + _ALONE)
_OWNER = re.compile(rb"(?<![a-z])(?:is|was) (?:my|your|the|his|her|our|their)(?: [a-z\-]{2,12})? $")
_IN_BRACKETS = re.compile(rb"password (?:for|of|to|on)%b{1,4} \([\"'`]?%b[\"'`]?\)" % (_WORD, _ALONE))
_U_AND_P = re.compile(rb"(?<![a-z0-9_\-])u: ?[\w.@\-]{2,48}[,;/ ]{1,3}p: ?" + _ALONE)
_CHANGED = re.compile(
    rb"changed (?:it|them|my password|the password|my pass|my pw) from "
    rb"[\"'`]?(?P<old>[^\s\"'`]{6,64}+)[\"'`]? to [\"'`]?(?P<new>[^\s\"'`]{6,64}+)"
)
_CHANGED_ITSELF = re.compile(
    rb"password(?: (?:for|of|on|to)(?: [\w.\-]{1,24}){1,4}?)?(?: (?:was|is|has been|is now|got|has))?"
    rb" (?:changed|rotated|updated|reset|switched)"
    rb" from [\"'`]?(?P<old>[^\s\"'`]{6,64}+)[\"'`]? to [\"'`]?(?P<new>[^\s\"'`]{6,64}+)"
)
# `my old password was …, the new one is …`
_NEW_ONE = re.compile(rb"new (?:one|pw|pass)(?: is| was|:| =| ->)?:? [\"'`]?" + _ALONE)
_THREE_DIGITS, _REACH = re.compile(rb"[0-9]{3}"), 100


def _asked(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _pw(view, match) if _OWNER.search(view.low, max(0, match.start() - 32), match.start()) else None


def _bracketed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match a password in brackets if it has three digits or more; names can stand in brackets too."""
    return _pw(view, match) if _THREE_DIGITS.search(match["value"]) else None


def _new_one(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _pw(view, match) if view.low.find(b"pass", max(0, match.start() - _REACH), match.start()) >= 0 else None


def _changed(view: View, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    near = view.low[max(0, match.start() - _REACH) : match.end() + _REACH]
    if near.find(b"password") < 0:
        return
    for name in ("old", "new"):
        start, end = match.span(name)
        value = view.raw[start:end].rstrip(b".,;:?")
        if is_spoken(value):
            yield start, start + len(value)


# In a form, on the line below its label.
_BELOW = re.compile(rb"(?<![,;|\t])password:?[ \t]{0,4}\r?\n[ \t]{0,8}(?P<value>[^\s,;|]{6,64})(?=[ \t]*(?:\r?\n|$))")
# The same form at the end of a string, unescaped: `"Password:\\nrain17"`.
_BELOW_IN_STRING = re.compile(rb"password:?[ \t]{0,4}\r?\n[ \t]{0,8}(?P<value>[^\s,;|\"'\\]{6,64}+)(?=[\"'])")


def _pw(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end = match.span("value")
    value = view.raw[start:end].rstrip(b".?")
    if match.re is _PW and _DECLARES.search(view.low, max(0, match.start() - 12), match.start()):
        return None
    assigned = view.raw.rfind(b"=", match.start(), start) >= 0  # `pw = Tile_2024` in code
    return (start, start + len(value)) if (is_spoken if assigned else is_said)(value) else None


# A variable that is called `pw`: `let pw = width2`.
_DECLARES = re.compile(rb"(?:let|var|val|const|int|float|double|auto|self\.) ?$")


RULES = (
    *(
        LiteralRule(
            _NAMED_AFTER,
            _first,
            lower=True,
            anchored=True,
            needle=word,
            opens=rb"(?:is|was|as|for|'s) (?:the |your |my |our |a )?(?:[a-z\-]+ )?" + word,
        )
        for word in (b"password", b"passphrase", b"passwort", b"passcode")
    ),
    LiteralRule(
        _ASKED, _asked, lower=True, anchored=True, needle=b"password", opens=rb"password (?:still|really|actually) "
    ),
    LiteralRule(
        _IN_BRACKETS,
        _bracketed,
        lower=True,
        anchored=True,
        fewest=3,
        needle=b"password",
        opens=rb"password (?:for|of|to|on) [^\n()]+ \(",
    ),
    LiteralRule(
        _U_AND_P, _pw, lower=True, anchored=True, needle=b"u: ", opens=rb"(?:^|[^a-z0-9_\-])u: [a-z0-9_.@\-]+[,;/ ]+p:"
    ),
    LiteralRule(
        _CHANGED,
        nothing,
        lower=True,
        anchored=True,
        needle=b"changed ",
        opens=rb"changed [a-z ]+ from ",
        spread=_changed,
    ),
    LiteralRule(
        _CHANGED_ITSELF,
        nothing,
        lower=True,
        anchored=True,
        needle=b"password",
        opens=rb"(?:changed|rotated|updated|reset|switched) from ",
        spread=_changed,
    ),
    LiteralRule(_NEW_ONE, _new_one, lower=True, anchored=True, needle=b"new ", opens=rb"new (?:one|pw|pass)(?: |:)"),
    LiteralRule(_BELOW_IN_STRING, _pw, lower=True, anchored=True, needle=b"password", opens=rb"password:?[ \t]*\r?\n"),
    LiteralRule(_BELOW, _pw, lower=True, anchored=True, needle=b"password", opens=rb"password:?[ \t]*\r?\n"),
    *(
        LiteralRule(
            _PW,
            _pw,
            lower=True,
            anchored=True,
            needle=word,
            opens=rb"(?:^|[^a-z0-9_\-])" + word + rb"(?:[ :=\-]|[^\x00-\x7f])",
        )
        for word in (b"pw", b"p/w", b"mdp")
    ),
    LiteralRule(
        _PW,
        _pw,
        lower=True,
        anchored=True,
        fewest=1,
        needle=b"pass ",
        opens=rb"(?:^|[^a-z0-9_\-])pass (?:for|to|on|of) ",
    ),
    *(
        LiteralRule(_PROSE, _prose, lower=True, anchored=True, needle=word)
        for word in (b"password", b"passphrase", b"passcode", b"passwd ", b"pwd ")
    ),
    *(
        LiteralRule(_PROSE, _prose, lower=True, anchored=True, fewest=1, needle=word)
        for word in (b"key ", b"token ", b"secret ")
    ),
    *(
        LiteralRule(_SPOKEN, _spoken, lower=True, anchored=True, needle=word)
        for word in (
            b"password",
            b"passwort",
            b"passord",
            b"pass ",
            b"pass:",
            b"wlan",
            b"wifi",
            b"wi-fi",
            b"netzwerk",
            b"cl\x80 wi",
            b"cl\x80 du wi",
            b"code wi",
            b"code du wi",
            b"passphrase",
            b"passcode",
            b"passwd",
            b"mot de passe",
            b"clave",
            b"contrase",
            *FOREIGN,
        )
    ),
    LiteralRule(_IDENTIFIED, _identified, lower=True, anchored=True, needle=b"identified "),
    LiteralRule(
        _SQL_PASSWORD,
        _identified,
        lower=True,
        anchored=True,
        needle=b"password",
        opens=rb"password(?: for [^=;\n]+)?(?: is| =| :=| expire| using)? ?\(? ?'",
    ),
)
