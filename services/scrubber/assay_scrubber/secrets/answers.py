"""Match a secret in the line after the one that asks for it or announces it, as in chats and mails.

Also `the Wi-Fi is called Annex, key …`, where the network precedes the keyword.
"""

import re

from assay_scrubber.family import LiteralRule, View

from .assigned import is_clear
from .values import is_made_up, is_said, is_token, is_unmistakable

_LINE = rb"[ \t]{0,8}+(?:\r?\n[ \t>]{0,8}+){1,3}+"
# The time and the name of who writes: `[14:03] You: `, `<mia> `, `A: `.
_SPEAKER = rb"(?:\[[0-9:. \-/apm]{4,20}\] ?)?(?:<[^>\n]{1,32}> ?|[a-z\x80][\w .\-\x80]{0,31}: ?)?"
_SAYS = (
    rb"(?:(?:yes|yeah|yep|sure|ok(?:ay)?|hi|oh|so|well|it'?s|it is|it was|that'?s|that is|should be|used to be|i think|probably|maybe|still"
    rb"|just|try|the password is|my password is|i used|we used|i set it to|now|is)[,:]? ){0,4}"
)
# The whole rest of the line, or a value that ends the clause.
_VALUE = rb"[\"'`]?(?P<value>[^\s\"'`,;<>()\[\]{}|]{6,128}+)[\"'`]?(?=[ \t]*(?:[,;]|\r?\n|$))"
_ASKED = re.compile(
    rb"(?:password|passphrase|passcode|passwort|kennwort|contrase\x80a|mot de passe)[^\n?]{0,80}\?"
    + _LINE
    + _SPEAKER
    + _SAYS
    + _VALUE
)
_HERE = re.compile(rb"(?:token|key|secret)(?: [a-z][\w'\-.]{0,15}){1,5}:[ \t]{1,3}" + _VALUE)
_ANNOUNCED = re.compile(
    rb"(?:(?P<password>password|passphrase|passcode)|token|key|secret)(?: [a-z][\w'\-.]{0,15}){0,6}:" + _LINE + _VALUE
)
_ALONE = re.compile(rb"[\"'`]?[ \t]*(?:\r?\n|$)")
# A code alone on its line, below the words that ask for it.
_CODE = re.compile(
    rb"(?:(?:verification|security|login|log-in|sign-in|one[ \-]time|confirmation|authentication|2fa|sms)[ \-](?:pass)?code"
    rb"|passcode|otp|code (?:that )?(?:we|i|they)(?:'ve| have)? (?:just )?(?:sent|texted|e-?mailed|messaged))"
    rb"(?: [^\n]{0,60}|[.:?!])?"
    + _LINE
    + _SPEAKER
    + _SAYS
    + rb"(?P<code>[0-9]{4,8}|[0-9]{3}[ \-][0-9]{3})(?=[.!]?[ \t]*(?:\r?\n|$))"
)
# The key of a network that was named before.
_OF_NETWORK = re.compile(
    rb"(?:wi-?fi|wlan|ssid|network|hotspot)(?![a-z])[^\n]{0,60}?[,;:/|\-] ?(?:the )?(?:key|pass|pw|password)(?: is|:| ->)? [\"'`]?"
    rb"(?P<value>[^\s\"'`,;<>()\[\]{}|]{6,64}+)"
)


def _spoken(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start = match.start("value")
    value = view.raw[start : match.end("value")].rstrip(b".?:")
    return (start, start + len(value)) if is_said(value) else None


def _announced(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept a token that is a whole line; a key of another kind (`the cache key for lookups:`) is a name."""
    start, end = match.span("value")
    value = view.raw[start:end]
    if _ALONE.match(view.raw, end) is None:
        return None
    if match["password"]:
        return (start, end) if is_said(value) else None
    good = is_unmistakable(value) or (is_token(value) and is_clear(view.low, match.start()))
    return (start, end) if good else None


def _here(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start = match.start("value")
    value = view.raw[start : match.end("value")].rstrip(b".")
    return (start, start + len(value)) if is_token(value) and is_clear(view.low, match.start()) else None


def _code(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    code = match["code"]
    return None if len(code) == 4 and code[:2] in (b"19", b"20") else match.span("code")


def _of_network(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start = match.start("value")
    value = view.raw[start : match.end("value")].rstrip(b".?:")
    good = is_made_up(value) or (is_said(value) and not value.islower())
    return (start, start + len(value)) if good else None


_ASKING = (
    b"password", b"passphrase", b"passcode", b"passwort", b"kennwort", b"contrase\x80a", b"mot de passe",
)  # fmt: skip
_CODES = (
    b"verification code", b"security code", b"login code", b"log-in code", b"sign-in code", b"confirmation code", b"authentication code",
    b"one-time code", b"one time code", b"2fa code", b"sms code", b"passcode", b"otp",
)  # fmt: skip
RULES = (
    *(
        LiteralRule(_ASKED, _spoken, lower=True, anchored=True, needle=word, opens=word + rb"[^\n?]*\?[ \t]*\r?\n")
        for word in _ASKING
    ),
    *(
        LiteralRule(
            _ANNOUNCED, _announced, lower=True, anchored=True, needle=word, opens=word + rb"[a-z0-9 '.\-]*:[ \t]*\r?\n"
        )
        for word in (b"password", b"passphrase", b"passcode", b"token", b"key", b"secret")
    ),
    *(
        LiteralRule(
            _HERE, _here, lower=True, anchored=True, fewest=2, needle=word, opens=word + rb" [a-z0-9 '.\-]+:[ \t]+[!-~]"
        )
        for word in (b"token", b"key", b"secret")
    ),
    *(LiteralRule(_CODE, _code, lower=True, anchored=True, fewest=4, needle=word) for word in _CODES),
    LiteralRule(
        _CODE,
        _code,
        lower=True,
        anchored=True,
        fewest=4,
        needle=b"code ",
        opens=rb"code (?:that )?(?:we|i|they)[a-z' ]* (?:sent|texted|e-?mailed|messaged)",
    ),
    *(
        LiteralRule(
            _OF_NETWORK,
            _of_network,
            lower=True,
            anchored=True,
            fewest=1,
            needle=word,
            opens=rb"[,;:/|\-] (?:the )?(?:key|pass|pw)[a-z]*[ :]",
        )
        for word in (b"wifi", b"wi-fi", b"wlan", b"ssid", b"network", b"hotspot")
    ),
)
