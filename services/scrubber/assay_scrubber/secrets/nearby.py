"""Match passwords near a word for them, without a verb or mark between: `I tried …, wrong password`."""

import re

from assay_scrubber.family import LiteralRule, View

from .values import is_made_up, is_said

_REACH = 100
# A value without quotes: up to a space, or the end of a clause.
_ALONE = rb"(?P<value>[^\s\"'`,;<>()\[\]{}|]{5,128}+)"
# Four groups of four letters, as Google and Apple write the passwords of apps.
_OF_APP = re.compile(
    rb"app(?:[ \-]specific)? password(?: [a-z]{2,12}){0,4}?(?: is| was|:| =){0,2} "
    rb"(?P<value>[a-z]{4}(?P<gap>[ \-])(?:[a-z]{4}(?P=gap)){2}[a-z]{4})(?![a-z\-])"
)
_VOWELS = b"aeiouy"


def _of_app(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Reject words: `the app password must have four ends`."""
    groups = match["value"].split(match["gap"])
    words = sum(any(letter in _VOWELS for letter in group) for group in groups)
    return match.span("value") if words < len(groups) or match["gap"] == b"-" else None


# What was typed as a password that the same line mentions: `I tried … and it says wrong password`.
_TRYING = rb"typ(?:ed|ing) |tr(?:ied|ying) |enter(?:ed|ing) |set it (?:back )?to |changed it to "
_TRIED = re.compile(rb"(?<![a-z])(?:%b)[\"'`]?" % _TRYING + _ALONE)
_IN_LINE = re.compile(rb"(?<![a-z0-9_\-])(?:passwords?|passphrase|pass|pw)(?![a-z0-9_\-])")
_CLAUSE_GOES_ON = re.compile(
    rb"[\"'`]?(?:[,.;:!?]|\s*$|\s*\n| (?:and|but|as|or|for my|it|which|then|now|again|so|yet|still)\b)"
)


def _tried(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, nearest, furthest = match.start("value"), match.start() - _REACH, match.end() + _REACH
    first = max(0, nearest, view.low.rfind(b"\n", max(0, nearest), match.start()) + 1)
    last = view.low.find(b"\n", match.end(), furthest)
    last = last if last >= 0 else furthest
    if view.low.find(b"pass", first, last) < 0 and view.low.find(b"pw", first, last) < 0:
        return None
    value = view.raw[start : match.end("value")].rstrip(b".?:")
    if not (is_made_up(value) or (is_said(value) and not value.islower())):
        return None
    if _CLAUSE_GOES_ON.match(view.low, start + len(value)) is None:
        return None
    return (start, start + len(value)) if _IN_LINE.search(view.low, first, last) else None


# Words with a mark and a number, near a word for a password: `the vpn one is Maple!402`.
_NEARBY = re.compile(
    rb"(?<![^\s\"'`(])(?P<value>[A-Z][a-z]{2,24}+(?:[_.\-][A-Za-z]{2,24}+|[A-Z][a-z]{1,24}+){0,2}+[!$&#?][0-9]{1,4}+[!?]?)(?=[\s\"'`),.;:]|$)"
)
_ABOUT = re.compile(
    rb"(?<![a-z])(?:passwords?|passphrase|pass|pw|pwd|log-?in|log in|sign in|credentials?|creds|unlock|vpn|passwort|kennwort|contrase\x80a"
    rb"|senha|has\x80o|haslo|wachtwoord|mot de passe)(?![a-z])"
)
_TICKET = re.compile(rb"[A-Za-z\-]+#[0-9]+")  # `see Keycloak#45`
_AMOUNT = re.compile(rb"[A-Za-z]+\$[0-9]+")


def _nearby(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    value = match["value"]
    if _AMOUNT.fullmatch(value) or (_TICKET.fullmatch(value) and (len(value.rpartition(b"#")[2]) > 3)):
        return None
    near = view.low[max(0, match.start() - _REACH) : match.end() + _REACH]
    return match.span("value") if _ABOUT.search(near) else None


RULES = (
    LiteralRule(_OF_APP, _of_app, lower=True, anchored=True, needle=b"app password"),
    LiteralRule(_OF_APP, _of_app, lower=True, anchored=True, needle=b"app-specific password"),
    LiteralRule(
        _TRIED,
        _tried,
        lower=True,
        fewest=2,
        opens=rb"(?:%b)[\"'`]?[!-~]*[0-9]" % _TRYING,
    ),
    LiteralRule(_NEARBY, _nearby, fewest=1, opens=rb"[a-z][!$&#?][0-9]"),
)
