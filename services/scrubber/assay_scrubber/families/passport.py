"""Passport numbers after the word, and the machine-readable zone of passports (ICAO 9303)."""

import re

from assay_scrubber.announced import FILLER, rules_after, span_of_value
from assay_scrubber.family import Announced, Family, Literals, Rule, View
from assay_scrubber.taxonomy import Category

_WORDS = (
    "passport passports passportno passportnum passportnumber passportnr pasaporte passeport passeports reisepass reisepasses "
    "reisepassnummer reisepassnr passaporto passaporte paspoort paspoortnummer paspoortnr passnummer passnr passnumret passnummeret "
    "pasnummer passinumero paszport paszportu pasaport pasaportul pa\x80aport pa\x80aportului pasaportu putovnica putovnice "
    "\x80tlev\x80l \x80tlev\x80lsz\x80m pasport pasos paso\x80"
)
#: Letters and digits in any order, or in the groups that passports print: two letters or digits apart from the rest.
_NUMBER = (
    rb"((?:[a-z]{1,3}|[0-9]{1,2}[a-z]{1,2}|[a-z][0-9]{1,2})[ \-][0-9]{2,8}(?:[ \-][0-9]{2,5}){0,2}[a-z]?"
    rb"|(?=[a-z]{0,8}[0-9])[a-z0-9]{6,10}|[0-9]{2,4}[ \-][0-9]{2,7}(?:[ \-][0-9]{2,5})?)(?![a-z0-9\x80])"
)
#: After a few words that say more of the passport only what looks like a number of one counts.
_FAR_NUMBER = (
    rb"(?:[^a-z0-9\x80\n]{1,3}+[a-z\x80]{1,14}(?![a-z0-9\x80])){1,5}?[^a-z0-9\x80\n]{1,4}+"
    rb"([a-z]{1,2}[ \-]?[0-9]{6,8}|[0-9]{2}[a-z]{2}[0-9]{5}|[0-9]{9}|(?=[a-z]{1,8}[0-9])[a-z0-9]{9})(?![a-z0-9\x80])"
)
_ZONE = re.compile(
    rb"P[A-Z<][A-Z]{3}[A-Z]{1,39}<[A-Z<]{2,38}(?:\s{0,3}(?:\\[nr]){0,2}[A-Z0-9<]{9}[0-9][A-Z]{3}[0-9]{7}[MFX<][0-9]{7}[A-Z0-9<]{14}[0-9<][0-9])?"
)
_FEWEST_DIGITS, _SHORTEST = 4, 6
_FEWEST_AMONG_CAPITALS, _SHORTEST_MIXED = 2, 8
_DATE = re.compile(
    rb"(?:[0-9]{1,2}[ \-][0-9]{1,2}[ \-](?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}[ \-][0-9]{1,2}[ \-][0-9]{1,2})"
)


def _number(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    number, start = match.group(1), match.start(1) - len(view.hint)
    digits = sum(c in b"0123456789" for c in number)
    length = len(number) - sum(c in b" -" for c in number)
    if length < _SHORTEST or _DATE.fullmatch(number) or number.startswith(b"0x"):
        return None
    if digits < _FEWEST_DIGITS:
        if start < 0 or not view.raw[start : start + len(number)].isupper() or length < _SHORTEST_MIXED:
            return None
        if digits < _FEWEST_AMONG_CAPITALS and number.translate(None, b"aeiou") != number:
            return None  # Germany's have no vowels
    return span_of_value(view, match)


def _far_number(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    number, start = match.group(1), match.start(1) - len(view.hint)
    in_capitals = start >= 0 and view.raw[start : start + len(number)].isupper()
    return _number(view, match) if in_capitals or number.isdigit() else None


# `pass` alone is a word of every program.
_PASS_NUMBER = re.compile(rb"(?<![a-z\x80])pass[ \-](?:nr|no|nummer)(?![a-z\x80])%b%b" % (FILLER, _NUMBER))
_SHORT_WORDS = tuple(
    Rule(_PASS_NUMBER, _number, needle=word) for word in (b"pass-nr", b"pass nr", b"pass no", b"pass-nummer")
)


_FAR_WORDS = rb"passport|passeport|pasaporte|reisepass|passaporto|passaporte|paspoort|paszport|travel document"
_FAR = tuple(
    Rule(re.compile(rb"(?<![a-z\x80])%b(?![a-z\x80])%b" % (word, _FAR_NUMBER)), _far_number, needle=word)
    for word in _FAR_WORDS.split(b"|")
)


def _zone(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span() if b"<<" in match.group() and len(match.group()) >= 40 else None  # of 44 or 88


FAMILY = Family(
    name="passport",
    category=Category.GOVERNMENT_ID,
    rank=57,
    gate=Announced(),
    rules=(*rules_after(_WORDS, _NUMBER, _number), *_SHORT_WORDS, *_FAR),
    description="Passport numbers after the word or under its key, and machine-readable zones.",
    finds=("passport no. X1234567", '"passport_number": "123456789"', "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<"),
    not_finds=("X1234567", "passport application 2024"),
    more=((Literals((b"<<",), mark=b"<"), (Rule(_ZONE, _zone),)),),
)
