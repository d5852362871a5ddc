"""Dates that a word announces as somebody's birth, in the usual orders, in digits or with the month's name."""

from assay_scrubber.announced import rules_after
from assay_scrubber.family import Announced, Family
from assay_scrubber.taxonomy import Category

_WORDS = (
    "birth birthday birthdate birthdates bday born dob dateofbirth geburtsdatum geburtstag geboren geb naissance nacimiento nacido "
    "nacida nascita nato nata nascimento nascido nascida f\x80dselsdato geboortedatum"
)
_MONTH = (
    rb"(?:jan|feb|m\x80r|mar|apr|mai|may|maj|jun|jul|aug|ago|sep|okt|oct|ott|out|nov|dez|dec|dic|ene|gen|abr|avr|f\x80v|fev|d\x80c|ao\x80|juin|"
    rb"juil|mag|giu|lug|set|mei)[a-z\x80]{0,8}"
)
_DAY = rb"(?:0?[1-9]|[12][0-9]|3[01])"
_YEAR = rb"(?:1[89]|20)[0-9]{2}"
_SHORT_YEAR = rb"(?:%b|'?[0-9]{2})" % _YEAR
_SEPARATOR = rb"[ ]?[./\- ][ ]?"
_DATE = rb"".join(
    (
        rb"((?:",
        rb"%b%b(?:0?[1-9]|1[0-2])%b%b" % (_YEAR, _SEPARATOR, _SEPARATOR, _DAY),
        rb"|%b%b%b%b%b" % (_DAY, _SEPARATOR, rb"(?:0?[1-9]|[12][0-9]|3[01])", _SEPARATOR, _SHORT_YEAR),
        rb"|%b(?:st|nd|rd|th|\.)?[ \-]?(?:of |de )?[ ]?%b\.?,?[ \-]?(?:de )?%b" % (_DAY, _MONTH, _SHORT_YEAR),
        rb"|%b\.?[ \-]?%b(?:st|nd|rd|th)?,?[ \-]{1,2}%b" % (_MONTH, _DAY, _SHORT_YEAR),
        rb"|(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])",
        rb"|%b\x81 ?[0-9]{1,2}\x81 ?[0-9]{1,2}\x81" % _YEAR,  # year, month and day with their ideographs
        rb"))(?![0-9])",
    )
)
_RULES = tuple(rules_after(_WORDS, rb"(?:il )?(?:(?:[a-z]{3,9}day)[^a-z0-9]{1,3})?" + _DATE))

FAMILY = Family(
    name="date_of_birth",
    category=Category.DEMOGRAPHIC_PROTECTED,
    rank=90,
    gate=Announced(),
    rules=_RULES,
    description="Dates of birth: a date after a word or key such as `born`, `DOB` or `Geburtsdatum`.",
    finds=("born on 12 March 1985", "DOB: 1985-03-12", '"birth_date": "12/03/1985"'),
    not_finds=("1985-03-12", "founded on 12 March 1985", "a year alone: born in 1985", "an age"),
)
