"""Match driving licence and vehicle identification numbers after a keyword.

Every state has its own licence format.
"""

import re

from assay_scrubber.context_words import rules_after, span_of_value
from assay_scrubber.family import Announced, AnnouncedRule, Family, View
from assay_scrubber.lexicon import Announces
from assay_scrubber.taxonomy import Category

_WORDS = (
    "licence licences license licenses driverlicense driverslicense driverlicence fuehrerschein f\x80hrerschein rijbewijs "
    "rijbewijsnummer fuehrerscheinnummer f\x80hrerscheinnummer f\x80hrerscheinnr dln cnh jogos\x80tv\x80ny"
)
_PHRASES = (
    b"permis de conduire", b"permiso de conducir", b"carnet de conducir", b"patente di guida",
    b"carta de condu\x80\x80o", b"carteira de motorista", b"k\x80rkort", b"k\x80rekort", b"f\x80rerkort", b"ajokortti", b"prawo jazdy",
    b"prawa jazdy", b"\x80idi\x80sk\x80 pr\x80kaz", b"vodi\x80sk\x80 preukaz", b"permis de conducere", b"ehliyet",
    b"licencia de conducir", b"carteira de habilita\x80\x80o",
    b"dvla", b"dvla licence", b"drivers lic", b"driver lic", b"dl:", b"dl#", b"dl #", b"dl no", b"dl number", b"dl_number",
    b"gi\x80y ph\x80p l\x80i xe", b"vodi\x80sk\x80 pr\x80kaz",
)  # fmt: skip
_NUMBER = (
    rb"([0-9]{5}/[0-9]{2}/[0-9]{4}"
    rb"|(?=[a-z0-9 \-]{0,6}[0-9])[a-z0-9]{1,18}(?:[ \-][a-z]{0,2}[0-9][a-z0-9]{0,12}){0,4})(?![a-z0-9])"
)
# Two letters that also have other meanings.
_SHORT = AnnouncedRule(
    re.compile(rb"(?<![a-z0-9])dl[ #:.]{1,3}([a-z][0-9]{7,12})(?![a-z0-9])"), span_of_value, needle=b"dl"
)
_DRIVING = re.compile(rb"driv(?:er|ers|er's|ing)[^a-z0-9]{1,6}$")
_FEWEST_DIGITS, _SHORTEST = 4, 5


def _number(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if match.group().startswith(b"licen") and not _DRIVING.search(
        match.string, max(0, match.start() - 16), match.start()
    ):
        return None  # a software or trade licence
    written = match.group(1)
    digits = sum(c in b"0123456789" for c in written)
    return match.span(1) if digits >= _FEWEST_DIGITS and len(written) >= _SHORTEST else None


# ISO 3779: seventeen letters and digits without I, O and Q; nearly every maker uses digits for the last four.
_VEHICLE = tuple(
    rules_after(
        "vin vins fahrgestellnummer fahrgestellnr fahrzeugidentifikationsnummer fahrzeugidentnummer"
        " fin chassis chasis telaio ch\x80ssis bastidor",
        rb"((?=[0-9]{0,12}[a-z])[a-hj-npr-z0-9]{13}[0-9]{4})(?![a-z0-9])",
        phrases=(b"vehicle identification", b"vehicle id", b"numer nadwozia"),
    )
)
_OTHER_SCRIPTS = AnnouncedRule(Announces.LICENCE.before(_NUMBER), _number, needle=Announces.LICENCE.byte)

FAMILY = Family(
    name="driver_licence",
    category=Category.GOVERNMENT_ID,
    rank=58,
    gate=Announced(),
    rules=(*rules_after(_WORDS, _NUMBER, _number, phrases=_PHRASES), _SHORT, *_VEHICLE, _OTHER_SCRIPTS),
    description="Driving licence and vehicle identification numbers after a keyword or under its key.",
    examples=(
        "driver's license D1234567",
        "driving licence number MORGA657054SM9IJ",
        '"drivers_license": "D123-4567-8901"',
        "VIN 1M8GDM9AXKP042788",
    ),
    counterexamples=("D1234567", "driver version 535.104", "licensed in 2024"),
)
