"""Match dates of birth after a keyword, in the usual orders, in digits or with the month's name."""

import re

from assay_scrubber.context_words import rules_after, span_of_value
from assay_scrubber.family import Announced, AnnouncedRule, Family, View
from assay_scrubber.lexicon import Announces
from assay_scrubber.taxonomy import Category

_WORDS = (
    "birth birthday birthdate birthdates bday born dob d.o.b dateofbirth birthdt "
    "geburtsdatum geburtstag geboren geb geburtsdat geboortedatum geboorte geboortedag "
    "naissance n\x80 n\x80e nacimiento nac nacido nacida naci\x80 nascita nato nata nascimento nascido nascida nasceu naixement nascut "
    "f\x80dselsdato f\x80dt f\x80dselsdag f\x80dd f\x80delsedatum syntym\x80aika syntym\x80p\x80iv\x80 syntynyt "
    "urodzenia urodzony urodzona ur narozen\x80 narozen narozena narodenia narozen\x80n sz\x80let\x80s sz\x80let\x80si sz\x80letett "
    "sz\x80l n\x80scut n\x80scut\x80 na\x80terii nasterii ro\x80en ro\x80ena ro\x80enja rojstva rojen rojena do\x80um dogum lahir"
)
_MONTH = (
    rb"(?:jan|feb|m\x80r|mar|apr|mai|may|maj|jun|jul|aug|ago|sep|okt|oct|ott|out|nov|dez|dec|dic|ene|gen|abr|avr|f\x80v|fev|d\x80c|ao\x80|juin|"
    rb"juil|mag|giu|lug|set|mei)[a-z\x80]{0,8}"
)
_ANY_MONTH = rb"[a-z\x80]{3,12}"  # between a day and a year of four digits, no other word is likely in any language
_DAY = rb"(?:0?[1-9]|[12][0-9]|3[01])"
_YEAR = rb"(?:1[89]|20)[0-9]{2}"
_SHORT_YEAR = rb"(?:%b|'?[0-9]{2})" % _YEAR
_SEPARATOR = rb"[ ]?[./\- ][ ]?"
_ORDINAL = rb"(?:st|nd|rd|th|er|\.|\x80|o|a|e)?"
_OF = rb"(?:of |day of |de |d')?"
_DATE = rb"".join(
    (
        rb"((?:",
        rb"%b%b(?:0?[1-9]|1[0-2])%b%b" % (_YEAR, _SEPARATOR, _SEPARATOR, _DAY),
        rb"|%b%b%b%b%b" % (_DAY, _SEPARATOR, rb"(?:0?[1-9]|[12][0-9]|3[01])", _SEPARATOR, _SHORT_YEAR),
        rb"|%b%b[ \-/]?%b[ ]?%b\.?,?[ \-/]?(?:de |del )?%b" % (_DAY, _ORDINAL, _OF, _MONTH, _SHORT_YEAR),
        rb"|%b%b[ \-/]%b%b\.?,?[ \-/](?:de |del )?%b" % (_DAY, _ORDINAL, _OF, _ANY_MONTH, _YEAR),
        rb"|%b\.?[ \-/]?%b%b,?[ \-/]{1,2}%b" % (_MONTH, _DAY, _ORDINAL, _SHORT_YEAR),
        rb"|%b(?:\.|,| m\.)?[ \-/]%b\.?[ \-/]%b" % (_YEAR, _ANY_MONTH, _DAY),
        rb"|(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])",
        rb"|(?:0[1-9]|[12][0-9]|3[01]){2}(?:19|20)[0-9]{2}",
        rb"|%b\x81 ?[0-9]{1,2}\x81 ?[0-9]{1,2}\x81" % _YEAR,  # year, month and day with their ideographs
        rb"))(?![0-9])",
    )
)
#: Text before the date: its format (`dd/mm/yyyy`), a gender ending (`(e)`), an article, the day of the week.
_ASIDE = (
    rb"(?:\(?(?:[dmyjat]{1,4}[./\- ]?){2,3}\)?[^a-z0-9\x80]{1,4})?(?:\(?-?[ae]\)? )?(?:(?:il|le|el|em|am|den|op|on|dne|the) )?"
    rb"(?:[a-z\x80]{2,10}(?:day|tag|dag|di|feira)(?:,? the|,? den|,? dem)?[^a-z0-9\x80]{1,3})?"
)
_OTHER_SCRIPTS = AnnouncedRule(Announces.BIRTH.before(_DATE), span_of_value, needle=Announces.BIRTH.byte)
# The date stands before the keyword: `am 4. Mai 1982 in Bonn geboren`, `op 3 juni 1980 geboren`.
_BORN_ON = re.compile(rb"(?:am|op|den) %b(?: (?:in|te) [a-z\x80]{2,24})?,? $" % _DATE)
_LONGEST_BEFORE = 64


def _before(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    at = match.start()
    date = _BORN_ON.search(match.string, max(0, at - _LONGEST_BEFORE), at)
    return date.span(1) if date is not None else None


_BORN = AnnouncedRule(re.compile(rb"geboren(?![a-z\x80])"), _before, needle=b"geboren")
_RULES = (*rules_after(_WORDS, _ASIDE + _DATE), _OTHER_SCRIPTS, _BORN)

FAMILY = Family(
    name="date_of_birth",
    category=Category.DEMOGRAPHIC_PROTECTED,
    rank=90,
    gate=Announced(),
    rules=_RULES,
    description="Dates of birth: a date after a keyword such as `born`, `DOB` or `Geburtsdatum`.",
    examples=("born on 12 March 1985", "DOB: 1985-03-12", '"birth_date": "12/03/1985"'),
    counterexamples=("1985-03-12", "founded on 12 March 1985", "a year alone: born in 1985", "an age"),
)
