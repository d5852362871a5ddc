"""Match international bank account numbers (ISO 13616): country, its length, and the check digits.

Check digits: ISO 7064 mod 97-10.
"""

import re

from assay_scrubber.family import Family, ShapeRule, Shapes, View
from assay_scrubber.taxonomy import Category

_LENGTHS = dict(
    re.findall(
        "([A-Z]{2})=([0-9]{2})",
        "AD=24 AE=23 AL=28 AT=20 AZ=28 BA=20 BE=16 BG=22 BH=22 BI=27 BR=29 BY=28 CH=21 CR=22 "
        "CY=28 CZ=24 DE=22 DJ=27 DK=18 DO=28 EE=20 EG=29 ES=24 FI=18 FK=18 FO=18 FR=27 GB=22 "
        "GE=22 GI=23 GL=18 GR=27 GT=28 HN=28 HR=21 HU=28 IE=22 IL=23 IQ=23 IR=26 IS=26 IT=27 "
        "JO=30 KW=30 KZ=20 LB=28 LC=32 LI=21 LT=20 LU=20 LV=21 LY=25 MC=27 MD=24 ME=22 MK=19 "
        "MN=20 MR=27 MT=31 MU=30 NI=28 NL=18 NO=15 OM=23 PK=24 PL=28 PS=29 PT=25 QA=29 RO=24 "
        "RS=22 RU=33 SA=24 SC=31 SD=18 SE=24 SI=19 SK=24 SM=27 SO=23 ST=25 SV=28 TL=23 TN=24 "
        "TR=26 UA=29 VA=22 VG=24 XK=20 YE=30 DZ=26 AO=25 BJ=28 BF=28 CV=25 CM=27 CF=27 TD=27 "
        "KM=27 CG=27 CI=28 GA=27 GQ=27 GW=25 MG=27 ML=28 MA=28 MZ=25 NE=28 SN=28 TG=28 ",
    )
)
_LENGTH = {country.encode(): int(length) for country, length in _LENGTHS.items()}
#: Countries whose account numbers have no letters, unlike parts of UUIDs.
_DIGITS_ONLY = frozenset(
    b"AE AT BA BE CR CZ DE DK EE ES FI FO GL HR HU IL IS LT LY ME MN MR NO PL PT RS SD SE SI SK SO TL TN VA XK".split()
)
_VALUES = {bytes([c]): b"%d" % (c - 55) for c in range(0x41, 0x5B)}
_SEPARATORS = b" -.\t\n\r\xa0"
# Only the first four characters are consumed: the next number may follow at once. At most two separators between letters and digits.
_CANDIDATE = re.compile(rb"AA99(?<![A9_]AA99)(?=([ .\-]{0,2}+(?:[A9]{1,30}+[ .\-\n]{0,2}+){1,12}))")
_IN_UUID = re.compile(rb"[0-9a-f]-")  # a later group of the UUID follows
_LETTER = re.compile(rb"[A-Z]")


def is_iban(number: bytes) -> bool:
    """Check upper-case ASCII letters and digits: a known country, its length, and the check digits."""
    country = number[:2]
    if _LENGTH.get(country) != len(number) or (country in _DIGITS_ONLY and not number[2:].isdigit()):
        return False
    turned = number[4:] + number[:4]
    return int(_LETTER.sub(lambda m: _VALUES[m.group()], turned)) % 97 == 1


def _iban(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start = match.start()
    if _IN_UUID.match(view.raw[max(0, start - 2) : start]):
        return None
    written = view.raw[start : match.end(1)]
    length = _LENGTH.get(written[:2].upper())
    if length is None:
        return None
    end = length
    number = written[:length].translate(None, _SEPARATORS)
    while len(number) < length and end < len(written):
        step = length - len(number)
        number += written[end : end + step].translate(None, _SEPARATORS)
        end += step
    if not number.isalnum() or not is_iban(number.upper()):
        return None
    after = view.raw[start + end : start + end + 1]
    return None if after.isalnum() else (start, start + end)


FAMILY = Family(
    name="iban",
    category=Category.PAYMENT_CARD,
    rank=55,
    gate=Shapes(rb"(?:^|[^A9_])AA99"),
    rules=(ShapeRule(_CANDIDATE, _iban, needle=b"AA99", anchored=True),),
    description="International bank account numbers: country, its length and the check digits; in groups of any size.",
    examples=("GB82 WEST 1234 5698 7654 32", "DE89370400440532013000"),
    counterexamples=("GB82 WEST 1234 5698 7654 33", "account numbers of one country (see `bank_account`)"),
)
