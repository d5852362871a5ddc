"""Passport numbers after the word, and the machine-readable zone of passports (ICAO 9303)."""

import re

from assay_scrubber.announced import rules_after, span_of_value
from assay_scrubber.family import Announced, Family, Literals, Rule, View
from assay_scrubber.taxonomy import Category

_WORDS = (
    "passport passports passportno passportnum passportnumber pasaporte passeport reisepass reisepassnummer passaporto passaporte "
    "paspoort paspoortnummer passnummer"
)
_NUMBER = rb"([a-z]{0,3}[ \-]?[0-9]{6,9}[a-z]?|[a-z][a-z0-9](?=[a-z0-9]{0,7}[0-9])[a-z0-9]{5,7})(?![a-z0-9\x80])"
_ZONE = re.compile(
    rb"P[A-Z<][A-Z]{3}[A-Z]{1,39}<[A-Z<]{2,38}(?:\s{0,3}(?:\\[nr]){0,2}[A-Z0-9<]{9}[0-9][A-Z]{3}[0-9]{7}[MFX<][0-9]{7}[A-Z0-9<]{14}[0-9<][0-9])?"
)
_FEWEST_DIGITS = 4


def _number(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    digits = sum(c in b"0123456789" for c in match.group(1))
    return span_of_value(view, match) if digits >= _FEWEST_DIGITS else None


def _zone(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span() if b"<<" in match.group() and len(match.group()) >= 40 else None  # of 44 or 88


FAMILY = Family(
    name="passport",
    category=Category.GOVERNMENT_ID,
    rank=57,
    gate=Announced(),
    rules=tuple(rules_after(_WORDS, _NUMBER, _number)),
    description="Passport numbers after the word or under its key, and machine-readable zones.",
    finds=("passport no. X1234567", '"passport_number": "123456789"', "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<"),
    not_finds=("X1234567", "passport application 2024"),
    more=((Literals((b"<<",), mark=b"<"), (Rule(_ZONE, _zone),)),),
)
