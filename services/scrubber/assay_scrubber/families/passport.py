"""Match passport numbers after a keyword, and the machine-readable zone of passports (ICAO 9303)."""

import re

from assay_scrubber.context_words import FILLER, rules_after, span_of_value
from assay_scrubber.family import Announced, AnnouncedRule, Family, LiteralRule, Literals, ShapeRule, Shapes, View
from assay_scrubber.lexicon import Announces
from assay_scrubber.taxonomy import Category

_WORDS = (
    "passport passports passportno passportnum passportnumber passportnr pasaporte passeport passeports reisepass reisepasses "
    "reisepassnummer reisepassnr passaporto passaporte paspoort paspoortnummer paspoortnr passnummer passnr passnumret passnummeret "
    "pasnummer passinumero paszport paszportu pasaport pasaportul pa\x80aport pa\x80aportului pasaportu putovnica putovnice "
    "personalausweisnummer personalausweisnr personalausweis ausweisnummer ausweisnr "
    "paspor pasporu pasu pasem \x80tlev\x80l \x80tlev\x80lsz\x80m pasport pasos paso\x80"
)
#: Letters and digits in any order, or in the groups that passports print: two letters or digits apart from the rest.
_NUMBER = (
    rb"((?:[a-z]{1,3}|[0-9]{1,2}[a-z]{1,2}|[a-z][0-9]{1,2})[ \-][0-9]{2,8}(?:[ \-][0-9]{2,5}){0,2}[a-z]?"
    rb"|(?=[a-z]{0,8}[0-9])[a-z0-9]{6,10}|[0-9]{2,4}[ \-][0-9]{2,7}(?:[ \-][0-9]{2,5})?)(?![a-z0-9\x80])"
)
#: After a few words that further describe the passport, only an unambiguous number counts.
_FAR_NUMBER = (
    rb"(?:[^a-z0-9\x80\n]{1,3}+[a-z\x80]{1,14}(?![a-z0-9\x80])){1,5}?[^a-z0-9\x80\n]{1,4}+"
    rb"([a-z]{1,2}[ \-]?[0-9]{6,8}|[0-9]{2}[a-z]{2}[0-9]{5}|[0-9]{9}|(?=[a-z]{1,8}[0-9])[a-z0-9]{9,10})(?![a-z0-9\x80])"
)
_FILLERS = re.compile(rb"<<[A-Z0-9<]*+")
_DATES = re.compile(rb"9999999[A<]9999999")
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
            return None  # German numbers have no vowels
    return span_of_value(view, match)


def _far_number(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    number, start = match.group(1), match.start(1) - len(view.hint)
    in_capitals = start >= 0 and view.raw[start : start + len(number)].isupper()
    return _number(view, match) if in_capitals or number.isdigit() else None


# `pass` alone is common in every program.
_PASS_NUMBER = re.compile(rb"(?<![a-z\x80])pass[ \-](?:nr|no|nummer)(?![a-z\x80])%b%b" % (FILLER, _NUMBER))
_SHORT_WORDS = tuple(
    AnnouncedRule(_PASS_NUMBER, _number, needle=word) for word in (b"pass-nr", b"pass nr", b"pass no", b"pass-nummer")
)


_FAR_WORDS = rb"passport|passeport|pasaporte|reisepass|passaporto|passaporte|paspoort|paszport|travel document|ausweis"
_FAR = tuple(
    AnnouncedRule(re.compile(rb"(?<![a-z\x80])%b(?![a-z\x80])%b" % (word, _FAR_NUMBER)), _far_number, needle=word)
    for word in _FAR_WORDS.split(b"|")
)


#: Visas, residence permits and identity cards, whose numbers have no letters or begin with them.
_PAPERS = (
    b"residence permit", b"aufenthaltstitel", b"aufenthaltserlaubnis", b"green card", b"titre de s\x80jour", b"carte de s\x80jour",
    b"permesso di soggiorno", b"permiso de residencia", b"verblijfsvergunning", b"uppeh\x80llstillst\x80nd", b"karta pobytu",
    b"carta d'identit\x80", b"dow\x80d osobisty", b"dowodu osobistego",
    b"h\x80 chi\x80u", b"carta di identit\x80", b"visa number", b"visa_number", b"visa no", b"visa_no", b"visumnummer",
)  # fmt: skip
_PAPER_NUMBER = rb"([a-z]{0,3}[ \-]?[0-9]{5,13}[a-z]{0,2})(?![a-z0-9\x80])"

#: After keywords in other scripts; Russian ones have a sign between series and number.
_AFTER_MARK = (
    rb"([a-z][0-9]{3}[a-z][0-9]{4}|[a-z]{0,3}[ \-]?[0-9]{2,9}(?:[^a-z0-9\n]{1,9}[0-9]{2,7}){0,2}[a-z]?)(?![a-z0-9])"
)
_OTHER_SCRIPTS = AnnouncedRule(Announces.PASSPORT.before(_AFTER_MARK), _number, needle=Announces.PASSPORT.byte)


_LONGEST_LINE = 92  # two lines of 44 whose separator was lost
_NEXT_LINE = re.compile(rb"(?:[ \t\r\n|]|\\[nr]){1,4}[A-Z0-9<]{28,46}(?![A-Za-z0-9<_])")
_MOST_LINES = 3
_SHORTEST_LINE, _FEWEST_FILLERS = 28, 3
_LINE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789<"
_WEIGHTS = (7, 3, 1, 7, 3, 1)


def _stretch(view: View, start: int, end: int) -> tuple[int, int]:
    """Return the run of letters, digits and fillers of a zone around `start` to `end`."""
    left = view.raw[max(0, start - _LONGEST_LINE) : start]
    right = view.raw[end : end + _LONGEST_LINE]
    return start - len(left) + len(left.rstrip(_LINE)), end + len(right) - len(right.lstrip(_LINE))


def _filled(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match a line of names or of an identity card's number: capitals, digits and fillers, of a zone's length."""
    start, end = _stretch(view, *match.span())
    if view.raw[start - 1 : start] == b"\\" and start:
        start += 1  # the letter belongs to an escape
    line = view.raw[start:end]
    if len(line) < _SHORTEST_LINE or line.count(b"<") < _FEWEST_FILLERS or not line[:1].isalnum():
        return None
    for _ in range(_MOST_LINES - 1):
        after = _NEXT_LINE.match(view.raw, end)
        if after is None:
            break
        end = after.end()
    return start, end


def _checked(field: bytes) -> bool:
    """Check the check digit of a date (ICAO 9303 part 3, 4.9)."""
    return sum(w * (d - 0x30) for w, d in zip(_WEIGHTS, field[:6], strict=True)) % 10 == field[6] - 0x30


def _data(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Match the line with the dates of birth and expiry, both with their check digits, and the sex between them."""
    raw, (start, end) = view.raw, match.span()
    if raw[start + 7] not in b"MFX<" or not (_checked(raw[start : start + 7]) and _checked(raw[start + 8 : end])):
        return None
    first, last = _stretch(view, start, end)
    return (first, last) if last - first >= _SHORTEST_LINE else None


FAMILY = Family(
    name="passport",
    category=Category.GOVERNMENT_ID,
    rank=57,
    gate=Announced(),
    rules=(
        *rules_after(_WORDS, _NUMBER, _number),
        *rules_after("", _PAPER_NUMBER, _number, phrases=_PAPERS),
        *_SHORT_WORDS,
        *_FAR,
        _OTHER_SCRIPTS,
    ),
    description="Passport numbers after a keyword or under its key, and machine-readable zones.",
    examples=(
        "passport no. X1234567",
        '"passport_number": "123456789"',
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<",
    ),
    counterexamples=("X1234567", "passport application 2024"),
    more=(
        (Literals((b"<<",), mark=b"<"), (LiteralRule(_FILLERS, _filled, needle=b"<<", anchored=True),)),
        (Shapes(rb"9999999(?:A|<)9999999"), (ShapeRule(_DATES, _data),)),
    ),
)
