"""A user and a password together: `ID/PW: ana/…`, `login ana / …`, `10.0.0.1 (ana/…)`, `basic_auth: ana:…`."""

import re

from assay_scrubber.family import Rule, View

from .extent import judged
from .values import is_file, is_no_word, is_spoken, is_written

_USER = rb"[\w.@\-]{1,48}"
_VALUE = rb"(?P<value>[^\s\"'`,;<>()\[\]{}|/]{5,128}+)(?!/)"
_PASSWORD = rb"(?:pw|pwd|pass(?:word|wd)?)"
_WHO = re.compile(rb"(?:(?<![a-z])(?:id|user(?:name)?|login|account)|[\x80\x81]{2,3})[ )]{0,2}[/:&,( ]{1,2}\(?$")

# Both words, and then both of what they name: `ID/PW: ana/…`, `(ID&PWD) ana:…`, `id pw ana // …`.
_NAMED = re.compile(
    _PASSWORD
    + rb"(?:[)]?(?: for %b)?[ \t]{0,2}(?:->|=>|[:=\-(])?[ \t]{0,2}\(?%b(?:[ \t]{0,2}/{1,2}[ \t]{0,2}|[:,(]|[ \t]{1,2}))"
    % (_USER, _USER)
    + _VALUE
)
# Each word with its own: `id(ana)/pwd(…)`, `(ID)ana/(PW)…`, `ID-ana / PASS - …`.
_EACH = re.compile(_PASSWORD + rb"\)?[ \t]{0,2}[\-:(]?[ \t]{0,2}" + _VALUE)
_BEFORE_EACH = re.compile(rb"(?<![a-z])(?:id|user(?:name)?|login|account)\)?[\-:( ]{0,3}%b\)? ?/ ?\(?$" % _USER)
# What the password opens, by one word, and both with a stroke between: `login ana / …`, `wifi: guests / …`, `creds: ana/…`.
_STROKE = re.compile(
    rb"(?:(?:login|user(?:name)?|wi-?fi|wlan)(?: is|:)? %b / |cred(?:s|entials)(?: are|:) %b ?/ ?)" % (_USER, _USER)
    + _VALUE
)
_AT_HOST = re.compile(rb"[0-9]{1,3}\.[0-9]{1,3} ?\(%b/" % _USER + _VALUE + rb"[,) ]")
# In brackets after its word: `password(…)`.
_IN_BRACKETS = re.compile(rb"(?<![a-z])" + _PASSWORD + rb"\((?:default:)?" + _VALUE + rb"\)")
_IN_ONE = re.compile(
    rb"(?:basic_?auth[\"']?[ \t]{0,2}[:=][ \t]{0,2}[\"']?%b:|neo4j_auth=[\w\-]{1,32}/)(?P<value>[^\s\"',;{}]{4,128}+)"
    % _USER
)


# An address as the user: `ana@example.com:…`, as lists of them are written. What a copy names has the same form.
_AFTER_ADDRESS = re.compile(
    rb"@(?:[a-z0-9\-]{1,63}+\.){1,6}+[a-z]{2,24}+[:|](?P<value>[^\s\"'`<>,;:|/()\[\]{}]{6,64}+)(?![/(:])"
)
_COPIES = re.compile(rb"(?:scp|rsync|sftp|ssh|git|clone|remote|pull|push|borg|restic|mount)\b")
# A user and a password that one is to use: `login: admin:…`, `use admin:… to log in`.
_TO_USE = re.compile(
    rb"(?:log[ \-]?in|sign[ \-]?in|creds|credentials?)(?: with| as| is| are| using| via)?"
    rb"(?:[ :]{1,2}[\"'`]?[a-z][\w.\-]{1,31}:(?P<value>[^\s\"'`<>()\[\]{}|/]{6,64}+)(?![/(]))?"
)
_USED = re.compile(
    rb"(?:^|[ \"'`])[a-z][\w.\-]{1,31}:(?P<value>[^\s\"'`<>()\[\]{}|/]{6,64})[\"'`]? (?:to|and|for|in order to)(?: you)? $"
)
_MARKS, _DIGITS = b"!@#$%^&*+~?", b"0123456789"


def _after_address(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end = match.span("value")
    if is_file(b"x/" + view.raw[start:end]) or _COPIES.search(view.low, max(0, match.start() - 80), match.start()):
        return None
    return _said(view, match)


def _to_use(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Of several kinds of characters, since tags of images and names of hosts stand so too."""
    used = match if match["value"] else _USED.search(view.low, max(0, match.start() - 120), match.start())
    if used is None:
        return None
    start = used.start("value")
    value = view.raw[start : used.end("value")].rstrip(b".,;:?")
    mixed = not value.islower() and not value.isupper()
    good = mixed and any(c in _MARKS for c in value) and any(c in _DIGITS for c in value)
    return (start, start + len(value)) if good and is_spoken(value) else None


def _named(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _said(view, match) if _WHO.search(view.low, max(0, match.start() - 16), match.start()) else None


def _each(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _said(view, match) if _BEFORE_EACH.search(view.low, max(0, match.start() - 72), match.start()) else None


# What a call is given: `pass(state2)`, `password(min_length=8)`.
_ARGUMENT = re.compile(rb"[a-z_]+[0-9]{0,2}|\w+=.*")


def _bracketed(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return None if _ARGUMENT.fullmatch(view.raw, *match.span("value")) else _said(view, match)


def _said(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start = match.start("value")
    value = view.raw[start : match.end("value")].rstrip(b".?:")
    return (start, start + len(value)) if is_no_word(value) else None


def _written(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return judged(view, match, is_written)


RULES = (
    *(
        Rule(
            pattern, accept, lower=True, anchored=True, needle=word, opens=rb"[/:&,( ]\(?" + word + rb"[a-z]*[):(=\- /]"
        )
        for pattern, accept in ((_NAMED, _named), (_EACH, _each))
        for word in (b"pw", b"pass")
    ),
    *(
        Rule(_IN_BRACKETS, _bracketed, lower=True, anchored=True, needle=word, opens=word + rb"[a-z]*\(")
        for word in (b"pw", b"pass")
    ),
    *(
        Rule(
            _STROKE,
            _said,
            lower=True,
            anchored=True,
            needle=word,
            opens=word + rb"[a-z]*(?: are| is|:)? [a-z0-9_.@\-]+ ?/",
        )
        for word in (b"login", b"user", b"wifi", b"wi-fi", b"wlan", b"cred")
    ),
    Rule(
        _AFTER_ADDRESS,
        _after_address,
        lower=True,
        anchored=True,
        fewest=1,
        needle=b"@",
        opens=rb"@[a-z0-9.\-]+[:|][!-~]",
    ),
    *(
        Rule(_TO_USE, _to_use, lower=True, anchored=True, fewest=1, needle=word, opens=opens)
        for word in (b"login", b"log in", b"sign in", b"sign-in", b"creds", b"credential")
        for opens in (word + rb"[a-z]*(?: with| as| using)?[ :]+[\"'`]?[a-z]+:[!-~]", rb"(?:to|and|for) " + word)
    ),
    Rule(_AT_HOST, _said, lower=True, opens=rb"[0-9]\.[0-9]{1,3} ?\([a-z0-9_.@\-]+/"),
    *(
        Rule(_IN_ONE, _written, lower=True, anchored=True, needle=word, opens=word + rb"[\"']?[ \t]*[:=]")
        for word in (b"basic_auth", b"basicauth", b"neo4j_auth")
    ),
)
