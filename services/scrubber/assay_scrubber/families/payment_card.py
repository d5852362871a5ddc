"""Match payment cards: a card's grouping, an issuer's prefix and length, and the Luhn check digit.

All three, because one random number in ten passes Luhn alone. Windows inside a longer run of digits are tried, so that an expiry date, a
CVV or another number next to the card does not hide it. The rest of a magnetic stripe is redacted with the number.
"""

import re

from assay_scrubber.family import Digits, Family, RunRule, ShapeRule, Shapes, View
from assay_scrubber.taxonomy import Category

_NOT_DIGITS = bytes(b for b in range(256) if b not in b"0123456789")
_DOUBLED = bytes(
    0x30 + sum(divmod(2 * (b - 0x30), 10)) if 0x30 <= b <= 0x39 else b for b in range(256)
)  # '0'..'9' -> digit sum of the double

_ISSUERS = (
    # first prefix, last prefix (four digits), lengths
    (4000, 4999, (13, 16, 19)),  # Visa
    (5100, 5599, (16,)),  # Mastercard
    (2221, 2720, (16,)),  # Mastercard, second range
    (3400, 3499, (15,)),  # American Express
    (3700, 3799, (15,)),
    (6011, 6011, (16, 17, 18, 19)),  # Discover
    (6440, 6599, (16, 17, 18, 19)),  # Discover, RuPay
    (6200, 6299, (16, 17, 18, 19)),  # UnionPay
    (8100, 8199, (16, 17, 18, 19)),  # UnionPay, RuPay
    (3528, 3589, (16, 17, 18, 19)),  # JCB
    (3000, 3059, (14, 16)),  # Diners Club
    (3095, 3095, (14, 16)),
    (3600, 3699, (14, 16)),
    (3800, 3999, (14, 16)),
    (2200, 2204, (16, 17, 18, 19)),  # Mir
    (5000, 5099, (13, 14, 15, 16, 17, 18, 19)),  # Maestro, Verve, Elo
    (5600, 5899, (13, 14, 15, 16, 17, 18, 19)),  # Maestro
    (6304, 6304, (13, 14, 15, 16, 17, 18, 19)),
    (6390, 6399, (13, 14, 15, 16, 17, 18, 19)),
    (6700, 6799, (13, 14, 15, 16, 17, 18, 19)),
    (6000, 6010, (16,)),  # RuPay
    (6012, 6099, (16,)),
    (9792, 9792, (16,)),  # Troy
)

_LENGTHS = {b"%d" % prefix: lengths for first, last, lengths in _ISSUERS for prefix in range(first, last + 1)}


def luhn(digits: bytes) -> bool:
    """Check the Luhn digit (ISO/IEC 7812-1 annex B) of ASCII digits."""
    total = sum(digits[-1::-2]) + sum(digits[-2::-2].translate(_DOUBLED)) - 0x30 * len(digits)
    return total % 10 == 0


def is_card(digits: bytes) -> bool:
    """Check ASCII digits: a known issuer's prefix, that issuer's length, and the Luhn digit."""
    return len(digits) in _LENGTHS.get(digits[:4], ()) and luhn(digits)


# The contribution of four digits at an even distance from the right to the Luhn sum: a text full of groups of four is cheap.
_SUMS = {
    group: sum(group[1::2]) + sum(group[::2].translate(_DOUBLED)) - 4 * 0x30
    for group in (b"%04d" % number for number in range(10_000))
}
_SEPARATOR = rb"[ .\-]{1,2}"
_LEFT = rb"(?<![0-9A-Za-z\x80$+])(?<![0-9]\.)"
# Programs may print a number with `.0`; a stripe has a letter on either side.
_RIGHT = rb"(?![0-9A-CE-Za-z\x80]|D[^0-9]|\.[1-9]|\.0[1-9])"
_SOLID = re.compile(_LEFT + rb"B?([2-9][0-9]{12,18}+)" + _RIGHT)
# ISO/IEC 7813: expiry, service code and the issuer's data, after the number and, on track 1, the name.
_TRACK = re.compile(
    rb"\^[^^\n]{1,32}\^[0-9]{4}[0-9A-Za-z ^*]{0,64}\??|[=D][0-9]{4}[0-9]{0,32}\??|\|[01]?[0-9]\|(?:20)?[0-9]{2}\|[0-9]{3,4}(?![0-9A-Za-z])"
)
# A look-ahead, so that only one group is consumed and the next window starts at the next group.
_GROUPED = re.compile(
    rb"(?<![0-9A-Za-z\x80$+])(?=([2-9][0-9]{3}(?:"
    + rb"(?:%b[0-9]{4}){3}(?![0-9A-Za-z\x80])" % _SEPARATOR
    + rb"|%b[0-9]{6}%b[0-9]{4,5}(?![0-9A-Za-z\x80])" % (_SEPARATOR, _SEPARATOR)
    + rb"|(?:%b[0-9]{3}){3}(?![0-9A-Za-z\x80])" % _SEPARATOR
    + rb"))(%b[0-9]{1,3}(?![0-9A-Za-z\x80]))?)[0-9]{4}" % _SEPARATOR
)
# Any grouping, if the whole run is one candidate and not part of a UUID.
_WHOLE = re.compile(
    rb"(?<![0-9A-Za-z\x80$+.])(?<![0-9] )(?<![0-9A-Za-z]-)[2-9](?:[ \-]?[0-9]){12,18}+"
    rb"(?![ \-]{0,2}[0-9]|-?[A-Za-z\x80]|\.[0-9])"
)
_ANNOUNCED = re.compile(
    rb"card|karte|karta|kart(?![a-z])|kort|carte|tarjeta|cart\x80o|carta |visa|master|amex|maestro|\x8a|(?<![a-z])(?:cc|pan)(?![a-z])"
)
# Four groups of four with the same few signs between them, or a wrapped line: `4111|1111|1111|1111`, `**4111** **1111** ...`.
_APART = rb"(?:[^A9\x80]{1,8}|[ ]?<AA[ ]?/?>[^A9\x80]{0,2})"
_SPLIT_GATE = rb"9999%b9999%b9999%b9999" % (_APART, _APART, _APART)
_WRAPPED = rb"(?:[ \-]?\r?\n[ \-]?|[ \-])"
_SPLIT = re.compile(
    rb"9999(?<![A9\x80]9999)(?:(?P<between>%b)9999(?P=between)9999(?P=between)|%b9999%b9999%b)9999(?![A9\x80])"
    % (_APART, _WRAPPED, _WRAPPED, _WRAPPED)
)
_MOST_SPREAD = 2000  # rules out an ordered list: 4000, 4100, 4200, 4300
_SHORTEST_TRACK = 7
_USUAL = 16  # digits in four groups of four
_MOST_GROUPS = 6
_LONGEST = 19
_ARTICLE = 13  # digits of an article number (EAN); one in ten of those with a card's prefix pass as a card


def _is_article(view: View, start: int, end: int) -> bool:
    return end - start == _ARTICLE and not _ANNOUNCED.search(view.before(start))


def _card(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end = match.span(1)
    if not is_card(match.group(1)) or _is_article(view, start, end):
        return None
    after = view.raw[end : end + 1]
    if after == b"." and end - start < _USUAL - 1 and view.raw[end + 1 : end + 2] == b"0":
        return None  # milliseconds
    if after in (b"^", b"=", b"D", b"|"):
        track = _TRACK.match(view.raw, end)
        if track is not None and (after != b"=" or track.end() - end > _SHORTEST_TRACK):
            return match.start(), track.end()
        if after == b"D":
            return None
    return (start, _with_code(view, end)) if start == match.start() else None  # a letter before it is a stripe's


# The code on the back, after a slash or after the expiry date: `…/737`, `… 12/27 737`. The date is redacted with it.
_CODE_BEHIND = re.compile(
    rb"(?: [/|] (?=[0-9]{3}(?![0-9]))|[/|]|[ ,;/|]{1,2}(?:exp(?:\.|iry|ires)?:? ?)?(?:0[1-9]|1[0-2]) ?[/\-] ?(?:20)?[2-4][0-9][ ,;/|]{1,3})"
    rb"[0-9]{3,4}(?![0-9A-Za-z\x80]|[/.\-][0-9])"
)


def _with_code(view: View, end: int) -> int:
    """Return the end of a card that ends at `end`, including a code that follows."""
    code = _CODE_BEHIND.match(view.low, end)
    return code.end() if code is not None else end


def _grouped(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    card, tail = match.groups()
    lengths = _LENGTHS.get(card[:4])
    if lengths is None:
        return None
    if tail and lengths[-1] > _USUAL and is_card((card + tail).translate(None, _NOT_DIGITS)):
        return match.start(1), match.end(2)
    if len(card) == _USUAL + 3 and card[5:6].isdigit():  # four groups of four, one character between them
        total = _SUMS[card[:4]] + _SUMS[card[5:9]] + _SUMS[card[10:14]] + _SUMS[card[15:]]
        return (match.start(1), _with_code(view, match.end(1))) if total % 10 == 0 and _USUAL in lengths else None
    digits = card.translate(None, _NOT_DIGITS)
    return (match.start(1), _with_code(view, match.end(1))) if len(digits) in lengths and luhn(digits) else None


def _split(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept four groups that do not form one run of digits. Without a keyword, they must not look like a list of numbers."""
    start, end = match.span()
    number = view.raw[start:end].translate(None, _NOT_DIGITS)
    if not is_card(number):
        return None
    if _ANNOUNCED.search(view.before(start)):
        return start, end
    between = match["between"]
    if between is not None:
        shape, size = view.shape(), len(between) + 4
        if _of_four(shape[end : end + size], between) or _of_four(
            shape[max(0, start - size) : start], between, before=True
        ):
            return None  # a longer list
    groups = [int(number[place : place + 4]) for place in range(0, _USUAL, 4)]
    in_order = groups == sorted(groups) or groups == sorted(groups, reverse=True)
    return None if in_order and abs(groups[0] - groups[-1]) < _MOST_SPREAD else (start, end)


def _of_four(shape: bytes, between: bytes, *, before: bool = False) -> bool:
    return shape == (b"9999" + between if before else between + b"9999")


def _whole(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    digits = match.group().translate(None, _NOT_DIGITS)
    gaps = len(match.group()) - len(digits)
    if _MOST_GROUPS <= gaps < len(digits) - 1:  # a list of small numbers, neither groups nor single digits
        return None
    return match.span() if is_card(digits) and not _is_article(view, *match.span()) else None


FAMILY = Family(
    name="payment_card",
    category=Category.PAYMENT_CARD,
    rank=60,
    gate=Digits(13),
    rules=(
        RunRule(_SOLID, _card, shape=b"9" * 13),
        RunRule(_GROUPED, _grouped, shape=b"9999-"),
        RunRule(
            _WHOLE, _whole, most=_LONGEST, shape=rb"^(?!9{4}-9{4}-9{4}-9{4}-*$)", fallback=True
        ),  # `_GROUPED` judges that
    ),
    description="Payment cards: a card's grouping, an issuer's prefix and length, and the Luhn check digit.",
    more=((Shapes(_SPLIT_GATE), (ShapeRule(_SPLIT, _split),)),),
    examples=("4111 1111 1111 1111", "4111-1111-1111-1111", "4111111111111111 12/26"),
    counterexamples=("1000 2000 3000 4000", "1234567890123456"),
)
