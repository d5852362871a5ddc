"""Match a user and a password together: `ID/PW: ana/…`, `login ana / …`, `basic_auth: ana:…`."""

import re
from collections.abc import Iterator

from assay_scrubber.family import LiteralRule, View, nothing

from .extent import judged
from .values import TEMPLATE, is_file, is_made_up, is_no_word, is_said, is_spoken, is_written

_USER = rb"[\w.@\-]{1,48}"
_VALUE = rb"(?P<value>[^\s\"'`,;<>()\[\]{}|/]{5,128}+)(?!/)"
_PASSWORD = rb"(?:pw|pwd|pass(?:word|wd)?)"
_WHO = re.compile(rb"(?:(?<![a-z])(?:id|user(?:name)?|login|account)|[\x80\x81]{2,3})[ )]{0,2}[/:&,( ]{1,2}\(?$")

# Both keywords, and then both values: `ID/PW: ana/…`, `(ID&PWD) ana:…`, `id pw ana // …`.
_NAMED = re.compile(
    _PASSWORD
    + rb"(?:[)]?(?: for %b)?[ \t]{0,2}(?:->|=>|[:=\-(])?[ \t]{0,2}\(?%b(?:[ \t]{0,2}/{1,2}[ \t]{0,2}|[:,(]|[ \t]{1,2}))"
    % (_USER, _USER)
    + _VALUE
)
# Each keyword with its own value: `id(ana)/pwd(…)`, `(ID)ana/(PW)…`, `ID-ana / PASS - …`.
_EACH = re.compile(_PASSWORD + rb"\)?[ \t]{0,2}[\-:(]?[ \t]{0,2}" + _VALUE)
_BEFORE_EACH = re.compile(rb"(?<![a-z])(?:id|user(?:name)?|login|account)\)?[\-:( ]{0,3}%b\)? ?/ ?\(?$" % _USER)
# One keyword, then both values with a slash between: `login ana / …`, `wifi: guests / …`, `creds: ana/…`.
_OF_WHAT = rb" (?:for|to|of|on|at)(?: [\w.\-]{1,24}){1,4}:"
_STROKE = re.compile(
    rb"(?:(?:login|(?:log|sign)(?: (?:me|us))? in|user(?:name)?|wi-?fi|wlan)(?:%b| is|[:,]| with| as)? %b / "
    rb"|cred(?:s|entials)?(?:%b| are|:)? %b ?/ ?)" % (_OF_WHAT, _USER, _OF_WHAT, _USER) + _VALUE
)
_AT_HOST = re.compile(rb"[0-9]{1,3}\.[0-9]{1,3} ?\(%b/" % _USER + _VALUE + rb"[,) ]")
# The same form with the user in quotes or after an arrow: creds → `ana` / `…`.
_STROKE_QUOTED = re.compile(
    rb"(?:login|user(?:name)?|cred(?:s|entials)?)(?: is| are)?[ :\-=>\x81]{1,5}[\"'`]%b[\"'`] ?[/:|] ?[\"'`]" % _USER
    + _VALUE
)
# In brackets after its keyword: `password(…)`.
_IN_BRACKETS = re.compile(rb"(?<![a-z])" + _PASSWORD + rb"\((?:default:)?" + _VALUE + rb"\)")
_IN_ONE = re.compile(
    rb"(?:basic_?auth[\"']?[ \t]{0,2}[:=][ \t]{0,2}[\"']?%b:|neo4j_auth=[\w\-]{1,32}/)(?P<value>[^\s\"',;{}]{4,128}+)"
    % _USER
)


# An address as the user: `ana@example.com:…`, as in lists of leaked logins. The destination of a copy command has the same form.
_AFTER_ADDRESS = re.compile(
    rb"@(?:[a-z0-9\-]{1,63}+\.){1,6}+[a-z]{2,24}+(?:[:|]|(?P<spaced> [:|/\-] |: ))(?P<value>[^\s\"'`<>,;:|/()\[\]{}]{6,64}+)(?![/(:])"
)
_COPIES = re.compile(rb"(?:scp|rsync|sftp|ssh|git|clone|remote|pull|push|borg|restic|mount)\b")
# Standard accounts with their password: `admin / …`, `root:…` alone on its line.
_KNOWN = re.compile(
    rb"(?<![\w.@/\-])(?:admin|administrator|root|postgres|superuser|sysadmin|guest)[\"'`]?(?:(?P<spaced> / )|:)[\"'`]?"
    rb"(?P<value>[^\s\"'`,;:<>()\[\]{}|/]{6,64}+)[\"'`]?(?=[.,;)]?(?:\s|$))"
)
# `log in as ana with …`
_WITH = re.compile(
    rb"(?:(?:log|sign)(?:ged|ging)?[ \-]?(?:in)?|get in(?:to)?|connect)(?: to [^\n]{1,40}?)? (?:as|with|using) [\"'`]?%b[\"'`]?"
    rb" (?:with|and|using|/)"
    rb"(?: the)?(?: password| pass| pw)? [\"'`]?" % _USER + _VALUE
)
# A heading for the lines below it: `the login for staging:`, and then `ana:…` or `ana / …`.
_ABOVE = re.compile(
    rb"(?:log[ \-]?in|sign[ \-]?in|creds?|credentials?|access|accounts?)(?![a-z])[^\n]{0,80}(?:\r?\n[ \t>]{0,8}){1,3}(?=[^\n])"
)
_LISTED = re.compile(
    rb"(?:[ \t]*(?:[\-*>\x81] |[0-9]{1,2}[.)] )?[\"'`]?%b[\"'`]? ?[:/|] ?[\"'`]?"
    rb"(?P<value>[^\s\"'`,;:<>()\[\]{}|/]{6,64}+)[\"'`]?[ \t]*(?:\r?\n|$))" % _USER
)
_MOST_LISTED = 16
_MARKS = b"!@#$%^&*+~?"
# A user and a password to use: `login: admin:…`, `use admin:… to log in`.
_TO_USE = re.compile(
    rb"(?:log[ \-]?in|sign[ \-]?in|creds|credentials?)(?: with| as| is| are| using| via)?"
    rb"(?:[ :]{1,2}[\"'`]?[a-z][\w.\-]{1,31}:(?P<value>[^\s\"'`<>()\[\]{}|/]{6,64}+)(?![/(]))?"
)
_USED = re.compile(
    rb"(?:^|[ \"'`])[a-z][\w.\-]{1,31}:(?P<value>[^\s\"'`<>()\[\]{}|/]{6,64})[\"'`]? (?:to|and|for|in order to)(?: you)? $"
)
# The address of a database in Go: `ana:…@tcp(db:3306)/shop`.
_USERPWD = re.compile(rb"userpwd[\"']?\s{0,2},\s{0,4}[\"'][^:\"'\s]{1,64}+:(?P<value>[^\"'\s]{4,64}+)[\"']")
_DIALLED = re.compile(rb"@(?:tcp|unix)\(")
_DIALLING_USER, _LONGEST_DIALLED = re.compile(rb"(?:[\w.\-]{1,48}=)?[\w.\-]{1,64}"), 160


def _without_end(view: View, match: re.Match[bytes]) -> tuple[int, int, bytes]:
    """Return the value of a match without the punctuation that ends the sentence, and its span."""
    start = match.start("value")
    value = view.raw[start : match.end("value")].rstrip(b".?:")
    return start, start + len(value), value


_LINE_ENDS = re.compile(rb"[ \t]*(?:\r?\n|$)")
_COUNTED = re.compile(rb"[a-z]{2,}[0-9]{2,}$", re.IGNORECASE)
_LONGEST_BULLET = 32


def _opens_line(raw: bytes, at: int) -> bool:
    """Return whether only a few marks of a list stand between the start of the line and `at`.

    Reads a fixed number of bytes: a line can be as long as the text.
    """
    before = raw[max(0, at - _LONGEST_BULLET) : at]
    line = before.rpartition(b"\n")[2]
    return len(line) < _LONGEST_BULLET and not line.strip(b" \t\"'`>*-")


def _of_known(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end, value = _without_end(view, match)
    numbered = is_spoken(value) and _COUNTED.fullmatch(value) is not None
    alone = _opens_line(view.raw, match.start()) and _LINE_ENDS.match(view.raw, match.end()) is not None
    if match["spaced"] is None and not alone:
        return None
    return (start, end) if numbered or is_made_up(value) else None


def _with(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end, value = _without_end(view, match)
    return (start, end) if is_made_up(value) else None


def _below(view: View, match: re.Match[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the passwords of a list of users below a heading that identifies them."""
    at = match.end()
    if view.judged.setdefault(("listed", b"%d" % at), False):
        return
    view.judged["listed", b"%d" % at] = True
    for _ in range(_MOST_LISTED):
        line = _LISTED.match(view.low, at)
        if line is None:
            return
        start, end, value = _without_end(view, line)
        if is_made_up(value):
            yield start, end
        at = line.end()


def _after_address(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end = match.span("value")
    if match["spaced"]:
        start, end, value = _without_end(view, match)
        good = is_made_up(value) and _LINE_ENDS.match(view.raw, end)
        return (start, end) if good else None
    if is_file(b"x/" + view.raw[start:end]) or _COPIES.search(view.low, max(0, match.start() - 80), match.start()):
        return None
    return _said(view, match)


def _to_use(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept a value with several kinds of characters, unlike image tags and host names, which occur in the same place."""
    used = match if match["value"] else _USED.search(view.low, max(0, match.start() - 120), match.start())
    if used is None:
        return None
    start = used.start("value")
    value = view.raw[start : used.end("value")].rstrip(b".,;:?")
    mixed = not value.islower() and not value.isupper()
    good = mixed and is_made_up(value) and any(c in _MARKS for c in value)
    return (start, start + len(value)) if good and is_spoken(value) else None


def _named(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _said(view, match) if _WHO.search(view.low, max(0, match.start() - 16), match.start()) else None


def _each(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _said(view, match) if _BEFORE_EACH.search(view.low, max(0, match.start() - 72), match.start()) else None


# Arguments of a call: `pass(state2)`, `password(min_length=8)`.
_ARGUMENT = re.compile(rb"[a-z_]+[0-9]{0,2}|\w+=.*")


def _bracketed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return None if _ARGUMENT.fullmatch(view.raw, *match.span("value")) else _said(view, match)


_ANY_WORDS = re.compile(rb"(?:login|user\w*|wi-?fi|wlan),|(?:log|sign) ")
_PART_OF_SITE = re.compile(rb" (?:page|form|screen|button|flow|view|route|endpoint|service) ?/")


def _said(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start = match.start("value")
    value = view.raw[start : match.end("value")].rstrip(b".?:")
    good = is_no_word(value)
    if match.re is _STROKE:
        vague = _ANY_WORDS.match(match.group()) is not None  # `login, logout / session2`
        made_up = is_made_up(value) or (is_said(value) and not value.islower())
        good = made_up if vague else good or (is_said(value) and not _PART_OF_SITE.search(match.group()))
    return (start, start + len(value)) if good else None


def _written(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, is_written)


def _dialled(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    end = match.start()
    before = view.raw[max(0, end - _LONGEST_DIALLED) : end]
    start = max(before.rfind(mark) for mark in (b" ", b'"', b"'", b"`", b"\n", b"\t")) + 1
    user, colon, value = before[start:].partition(b":")
    if not colon or not value or _DIALLING_USER.fullmatch(user) is None or TEMPLATE.fullmatch(value):
        return None
    return end - len(value), end


RULES = (
    LiteralRule(_USERPWD, _written, lower=True, anchored=True, needle=b"userpwd"),
    LiteralRule(_DIALLED, _dialled, lower=True, anchored=True, needle=b"@tcp("),
    LiteralRule(_DIALLED, _dialled, lower=True, anchored=True, needle=b"@unix("),
    *(
        LiteralRule(
            pattern,
            accept,
            lower=True,
            anchored=True,
            needle=word,
            opens=rb"(?:id|user(?:name)?|login|account|[\x80\x81]|\)) ?[)]?[/:&,( ]+\(?"
            + word
            + rb"[a-z]*[):(=\- /]|/ ?\(?"
            + word
            + rb"[a-z]*[):(=\- /]",
        )
        for pattern, accept in ((_NAMED, _named), (_EACH, _each))
        for word in (b"pw", b"pass")
    ),
    *(
        LiteralRule(_IN_BRACKETS, _bracketed, lower=True, anchored=True, needle=word, opens=word + rb"[a-z]*\(")
        for word in (b"pw", b"pass")
    ),
    *(
        LiteralRule(
            _STROKE,
            _said,
            lower=True,
            anchored=True,
            needle=word,
            opens=word + rb"[a-z]*(?: are| is|[:,])? [a-z0-9_.@: \-]+ ?/",
        )
        for word in (
            b"login",
            b"log in",
            b"log me in",
            b"log us in",
            b"sign in",
            b"user",
            b"wifi",
            b"wi-fi",
            b"wlan",
            b"cred",
        )
    ),
    LiteralRule(
        _AFTER_ADDRESS,
        _after_address,
        lower=True,
        anchored=True,
        fewest=1,
        needle=b"@",
        opens=rb"@[a-z0-9.\-]+ ?[:|/\-] ?[!-~]",
    ),
    *(
        LiteralRule(
            _KNOWN,
            _of_known,
            lower=True,
            anchored=True,
            fewest=1,
            needle=word,
            opens=word + rb"[\"'`]?(?: / |:)[\"'`]?[!-~]",
        )
        for word in (b"admin", b"root", b"postgres", b"superuser", b"sysadmin", b"guest")
    ),
    *(
        LiteralRule(
            _WITH,
            _with,
            lower=True,
            anchored=True,
            fewest=1,
            needle=word,
            opens=word + rb"(?:ged|ging)?[ \-]?(?:in)?(?: to [^\n]+)? (?:as|with|using) ",
        )
        for word in (b"log", b"sign", b"get in", b"connect")
    ),
    *(
        LiteralRule(
            _ABOVE,
            nothing,
            lower=True,
            anchored=True,
            fewest=1,
            needle=word,
            spread=_below,
            opens=word + rb"[^\n]*\n[ \t\r\n>]*(?:[\-*0-9.)\x81]+ )?[\"'`]?[a-z0-9_.@\-]+[\"'`]? ?[:/|] ?[\"'`]?[!-~]",
        )
        for word in (b"login", b"log in", b"log-in", b"sign in", b"sign-in", b"signin", b"cred", b"access", b"account")
    ),
    *(
        LiteralRule(
            _STROKE_QUOTED,
            _said,
            lower=True,
            anchored=True,
            needle=word,
            opens=word + rb"[a-z]*(?: is| are)?[ :\-=>\x81]+[\"'`][a-z0-9_.@\-]+[\"'`] ?[/:|]",
        )
        for word in (b"login", b"user", b"cred")
    ),
    *(
        LiteralRule(_TO_USE, _to_use, lower=True, anchored=True, fewest=1, needle=word, opens=opens)
        for word in (b"login", b"log in", b"sign in", b"sign-in", b"creds", b"credential")
        for opens in (word + rb"[a-z]*(?: with| as| using)?[ :]+[\"'`]?[a-z]+:[!-~]", rb"(?:to|and|for) " + word)
    ),
    LiteralRule(_AT_HOST, _said, lower=True, opens=rb"[0-9]\.[0-9]{1,3} ?\([a-z0-9_.@\-]+/"),
    *(
        LiteralRule(_IN_ONE, _written, lower=True, anchored=True, needle=word, opens=word + rb"[\"']?[ \t]*[:=]")
        for word in (b"basic_auth", b"basicauth", b"neo4j_auth")
    ),
)
