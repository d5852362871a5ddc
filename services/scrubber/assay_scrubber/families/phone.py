"""Telephone numbers.

Four shapes: North American formatting, `+` and a country code, `00`/`011` and a country code, and any national number
that a word (or the key of a JSON value) announces. Bare digits that nothing announces are left alone: order numbers,
timestamps and ids look exactly like them.
"""

import re

from assay_scrubber.family import Digits, Family, Rule, View
from assay_scrubber.taxonomy import Category

_NOT_DIGITS = bytes(b for b in range(256) if b not in b"0123456789")

_TWO_DIGIT_CODES = frozenset(
    code
    for first, last in (
        (20, 20), (27, 27), (30, 34), (36, 36), (39, 41), (43, 49), (51, 58), (60, 66), (81, 82), (84, 84), (86, 86),
        (90, 95), (98, 98),
    )
    for code in range(first, last + 1)
)  # fmt: skip
_THREE_DIGIT_CODES = frozenset(
    code
    for first, last in (
        (211, 213), (216, 216), (218, 218), (220, 269), (290, 291), (297, 299), (350, 359), (370, 383), (385, 387),
        (389, 389), (420, 421), (423, 423), (500, 509), (590, 599), (670, 670), (672, 692), (800, 800), (808, 808),
        (850, 850), (852, 853), (855, 856), (870, 870), (878, 878), (880, 883), (886, 886), (888, 888), (960, 968),
        (970, 977), (979, 979), (992, 996), (998, 998),
    )
    for code in range(first, last + 1)
)  # fmt: skip
# Digits with the country code where the plan has one length: tells where the number ends when more digits follow.
_FIXED_LENGTHS = {
    1: 11, 7: 11, 27: 11, 30: 12, 31: 11, 33: 11, 34: 11, 41: 11, 44: 12, 45: 10, 47: 10, 48: 11, 51: 11, 52: 12,
    57: 12, 61: 11, 63: 12, 65: 10, 66: 11, 81: 12, 82: 12, 86: 13, 90: 12, 91: 12, 92: 12, 351: 12, 353: 12, 420: 12,
    852: 11, 971: 12, 972: 12,
}  # fmt: skip
_LONGEST = 15  # ITU-T E.164
_SHORTEST_SEPARATED = 8
_SHORTEST_SOLID = 10


def country_code(digits: bytes) -> int | None:
    """The assigned ITU-T country code that `digits` start with."""
    if digits[:1] in (b"1", b"7"):
        return int(digits[:1])
    if int(digits[:2] or b"0") in _TWO_DIGIT_CODES:
        return int(digits[:2])
    return int(digits[:3]) if int(digits[:3] or b"0") in _THREE_DIGIT_CODES else None


_LEFT = rb"(?<![0-9A-Za-z\x80])(?<![0-9][\-./_])"
_RIGHT = rb"(?![0-9]|[\-./_][0-9]|(?!x[0-9]|ext)[A-Za-z\x80])"
_BETWEEN = rb"(?: ?[.\-/] ?| )"
_AMERICAN = re.compile(
    _LEFT + rb"(?:\+?1(?: ?[.\-] ?| )?)?"
    rb"(?:(\([0-9]{3}\)) {0,2}[.\-]?[0-9]{3}(?: ?[.\-] ?| )?[0-9]{4}"
    rb"|([0-9]{3})(%b)([0-9])[0-9]{2}(%b)[0-9]{4})" % (_BETWEEN, _BETWEEN) + _RIGHT
)
_PLUS = re.compile(rb"(?<![0-9A-Za-z\x80+])\+\(?[1-9](?:[ .\-()/]{0,3}[0-9]){6,32}+(?![A-Za-z\x80])")
_ZEROS = re.compile(rb"(?<![0-9A-Za-z\x80])(?<![0-9][\-./_ ])(?:00|011)([ .\-]?)[1-9](?:[ .\-()/]{0,3}[0-9]){6,32}+")
_ANY = re.compile(
    rb"(?<![0-9A-Za-z\x80.$,])(?<![0-9][ \-/_)])\(?[0-9](?:[ .\-()/]{0,3}[0-9]){6,14}(?![0-9A-Za-z\x80]|[.,][0-9])"
)
_DECIMAL = re.compile(rb"\+[0-9]{4,}\.[0-9]+")
_GROUPS = re.compile(rb"[0-9]++")
_DATE = re.compile(
    rb"(?:19|20)[0-9]{2}[\-./ ](?:0?[1-9]|1[0-2])[\-./ ](?:[0-2]?[0-9]|3[01])(?![0-9])"
    rb"|(?:[0-2]?[0-9]|3[01])[\-./](?:[0-2]?[0-9]|3[01])[\-./](?:19|20)[0-9]{2}(?![0-9])"
    rb"|(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9])"
)

_TAIL = (
    rb"(?:[^a-z\x80]++|(?:numbers?|nbr|num|no|nr|nos|me|us|him|her|them|at|on|is|are|was|my|our|his|their|your|via|or|and"
    rb"|to|the|by|from|direct|work|home|office|mobile|cell|cellphone|fax|tel|phone|please|redacted|back|line|support"
    rb"|value|text|new|old|main|alt|changed|change|became|now|under|as|be|being|today|again|directly|primary|secondary|contact|customer|client|country|code|intl|international)(?![a-z\x80]))*+$"
)
_STRONG_WORDS = (
    b"phone", b"phones", b"telephone", b"telephones", b"cellphone", b"smartphone", b"mobilephone", b"phonenumber",
    b"phonenumbers", b"tel", b"telno", b"mobile", b"mobiles", b"mob", b"cell", b"cellular", b"fax", b"whatsapp",
    b"sms", b"msisdn", b"hotline", b"landline", b"helpline", b"dial", b"dialed", b"dialled", b"callback",
    b"telefono", b"tel\x80fono", b"telefon", b"telefone", b"telephon", b"t\x80l\x80phone", b"t\x80l", b"movil",
    b"m\x80vil", b"celular", b"handy", b"handynummer", b"telefonnummer", b"cellulare", b"rufnummer", b"portable",
)  # fmt: skip
_WEAK_WORDS = (b"call", b"called", b"ring", b"rang", b"text", b"texted", b"reach", b"reached")
_WORDS_AFTER = (b"mobile", b"cell", b"office", b"fax", b"tel", b"phone", b"home", b"work", b"m", b"h", b"w", b"o")
_ANNOUNCING = frozenset((*_STRONG_WORDS, *_WEAK_WORDS, *_WORDS_AFTER))
# Words are searched without a left boundary first, which lets the search skip by first letter.
_STRONG = re.compile(
    rb"(?:%b)(?![a-z\x80])" % b"|".join(rb"%b(?<![a-z\x80]%b)" % (word, word) for word in _STRONG_WORDS) + _TAIL
)
_WEAK = re.compile(
    rb"(?:call|called|ring|rang|text|texted|reach|reached)(?![a-z])(?<![a-z]call)(?<![a-z]ring)(?<![a-z]text)"
    rb"(?<!tool call)(?<!function call)(?<!api call)(?<!rpc call)" + _TAIL
)
_THREE_BY_THREE = re.compile(rb"[5-9][0-9]{2}([ .])[0-9]{3}\1[0-9]{3}")
_AFTER = re.compile(rb" ?\((?:%b)\)" % b"|".join(_WORDS_AFTER))


def _american(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    parenthesised, area, first, exchange, second = match.groups()
    if parenthesised or b"+" in match.group() or (b"-" in first and b"-" in second):
        return match.span()
    if area[:1] in (b"0", b"1") or {first, second} == {b".", b"-"}:  # 252.227-7014 is a clause number
        return None
    if first == second == b" " and exchange in b"01":
        # "300 150 4000" in a row of numbers; alone it is a telephone number written with spaces
        raw, (start, end) = match.string, match.span()
        if raw[start - 2 : start - 1].isdigit() or raw[end + 1 : end + 2].isdigit():
            return None
    return match.span()


def _end_of_number(match: re.Match[bytes], start: int, digits_before: int, code: int) -> int | None:
    """Where the number that starts with `code` ends, at the boundary of a group; None when it is no number."""
    fixed, count, best = _FIXED_LENGTHS.get(code), 0, None
    for group in _GROUPS.finditer(match.string, start, match.end()):
        count += group.end() - group.start()
        total = count - digits_before
        if total > _LONGEST:
            break
        best = (group.end(), total)
        if total == fixed:
            break
    if best is None:
        return None
    end, total = best
    solid = _GROUPS.match(match.string, start)
    is_solid = solid is not None and solid.end() == end
    if code == 1 and total != fixed:
        return None
    return end if total >= (_SHORTEST_SOLID if is_solid else _SHORTEST_SEPARATED) else None


def _international(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    code = country_code(match.group().translate(None, _NOT_DIGITS))
    if code is None or _DECIMAL.fullmatch(match.group()):
        return None
    first = _GROUPS.search(match.string, match.start())
    end = _end_of_number(match, first.start(), 0, code) if first else None
    return (match.start(), end) if end is not None else None


_CLOCK = re.compile(rb"[0-9]:$")


def _after_zeros(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if _CLOCK.search(view.raw, max(0, match.start() - 3), match.start()):
        return None  # 15:19:00.817955 is a time of day
    digits = match.group().translate(None, _NOT_DIGITS)
    zeros = 3 if digits.startswith(b"011") else 2
    code = country_code(digits[zeros:])
    group = _GROUPS.match(match.string, match.start())
    if code is None or group is None:
        return None
    written_apart = len(group.group()) in (zeros, zeros + len(str(code)))
    end = _end_of_number(match, match.start(), zeros, code)
    if end is None or not (written_apart or _STRONG.search(view.before(match.start()))):
        return None
    return match.start(), end


def _announced(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    number = match.group()
    if _DATE.match(number):
        return None
    before = view.before(match.start())
    if _STRONG.search(before) or _AFTER.match(view.low, match.end()):
        return match.span()
    digits = number.translate(None, _NOT_DIGITS)
    # A trunk prefix, an area in parentheses, or three groups of three: no order number is written so.
    national = digits[:1] == b"0" or number[:1] == b"(" or _THREE_BY_THREE.fullmatch(number) is not None
    american = digits[:1] not in b"01" if len(digits) == 10 else len(digits) == 11 and digits[:1] == b"1"
    if (american or national) and _WEAK.search(before):
        return match.span()
    return None


FAMILY = Family(
    name="phone",
    category=Category.CONTACT,
    rank=80,
    gate=Digits(7),
    rules=(
        Rule(_AMERICAN, _american, fewest=10, shape=b"9999"),
        Rule(_PLUS, _international, near=re.compile(rb"\+")),
        Rule(_ZEROS, _after_zeros, near=re.compile(b"0[01]"), fewest=10, fallback=True),
        Rule(_ANY, _announced, words=_ANNOUNCING, fallback=True),
    ),
    description="Telephone numbers: North American, international, and national ones that a word or key announces.",
    finds=(
        "555-123-4567",
        "(555) 123-4567",
        "+15551234567",
        "+44 20 7946 0958",
        "0044 20 7946 0958",
        "phone 020 7946 0958",
    ),
    not_finds=(
        "5551234567",
        "order 123-456-7890123",
        "1714558953",
        "978-3-16-148410-0",
        "E0718 15:19:00.817955   97042 row.go:361]",
    ),
)
