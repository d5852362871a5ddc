"""Identity and tax numbers of persons, by country: check digits always, and either a telling shape or the word before.

The check digits are python-stdnum's; its modules load when a first candidate of their country turns up.
"""

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from assay_scrubber.announced import FILLERS, words_of
from assay_scrubber.family import Digits, Family, Rule, Shapes, View
from assay_scrubber.taxonomy import Category

#: What announces a number, and the modules of python-stdnum that check it; none: the word is enough.
ANNOUNCED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cpf", ("br.cpf",)),
    ("pesel", ("pl.pesel",)),
    ("bsn|burgerservicenummer|sofinummer", ("nl.bsn",)),
    ("dni|nif|nie|documento nacional", ("es.dni", "es.nie", "es.nif", "pt.nif", "ar.dni")),
    ("codice fiscale", ("it.codicefiscale",)),
    ("aadhaar|aadhar|uidai|adhaar", ("in_.aadhaar",)),
    ("sin|social insurance", ("ca.sin",)),
    ("tfn|tax file", ("au.tfn",)),
    ("personnummer|personnr|samordningsnummer", ("se.personnummer", "no.fodselsnummer")),
    ("f\x80dselsnummer|fodselsnummer", ("no.fodselsnummer",)),
    ("cpr", ("dk.cpr",)),
    ("hetu|henkil\x80tunnus|henkilotunnus", ("fi.hetu",)),
    ("pps|ppsn", ("ie.pps",)),
    ("steuer id|steuerid|steueridentifikationsnummer|idnr|identifikationsnummer|steuernummer", ("de.idnr",)),
    ("nir|insee|s\x80curit\x80 sociale|securite sociale", ("fr.nir",)),
    ("ahv|avs", ("ch.ssn",)),
    ("rijksregister|rijksregisternummer|registre national|insz|niss", ("be.nn",)),
    ("svnr|sozialversicherungsnummer|sv nummer", ("at.vnr",)),
    ("tckn|tc kimlik|kimlik", ("tr.tckimlik",)),
    ("teudat zehut|israeli id", ("il.idnr",)),
    ("south african id|rsa id|sa id", ("za.idnr",)),
    ("rrn|jumin|resident registration", ("kr.rrn",)),
    ("cnp|cod numeric personal", ("ro.cnp",)),
    ("egn", ("bg.egn",)),
    ("rodn\x80 \x80\x80slo|rodne cislo|rodn\x80 \x80islo|birth number", ("cz.rc",)),
    ("oib", ("hr.oib",)),
    ("amka", ("gr.amka",)),
    ("rut", ("cl.rut",)),
    ("cuit|cuil", ("ar.cuit",)),
    ("c\x80dula|cedula", ("ec.ci", "do.cedula")),
    ("isikukood", ("ee.ik",)),
    ("asmens kodas", ("lt.asmens",)),
    ("personas kods", ("lv.pk",)),
    ("emso|jmbg", ("rs.jmbg", "si.emso")),
    ("utr|unique taxpayer", ("gb.utr",)),
    ("kennitala", ("is_.kennitala",)),
    ("national insurance|nino|ni number", ()),
    ("nric|fin", ()),
    ("hkid", ()),
    ("my number|mynumber", ()),
    ("resident identity|shenfenzheng", ()),
    (
        "national id|nationalid|national identity|national identification|identity card|identity number|identity document",
        (),
    ),
    (
        "id card|citizen id|tax id|taxid|tax identification|taxpayer|tin|tax number|government id|personal id|personalausweis",
        (),
    ),
    ("ausweisnummer|carte d|personal identity|voter id|curp|pan card|npi", ()),
)

_BY_WORDS: dict[bytes, tuple[str, ...]] = {
    phrase.encode("latin-1"): modules for words, modules in ANNOUNCED for phrase in words.split("|")
}
#: The last word of each announcement: a number without one of these near costs one look.
_ANNOUNCING = frozenset(phrase.split()[-1] for phrase in _BY_WORDS)
_FILLERS = frozenset(word.encode() for word in FILLERS)
_FEW_WORDS = 7


def _announcing(before: bytes) -> tuple[str, ...] | None:
    """The checks that the words before a number ask for: the nearest word that is no filler decides."""
    words = words_of(before)[-_FEW_WORDS:]
    for index in range(len(words) - 1, -1, -1):
        word = words[index]
        found = _BY_WORDS.get(b"%b %b" % (words[index - 1], word)) if index else None
        if found is None:
            found = _BY_WORDS.get(word)
        if found is not None:
            return found
        if word not in _FILLERS and len(word) > 1:
            return None
    return None


_TOKEN = re.compile(rb"(?<![0-9])[0-9](?:[ .\-/+]{0,2}[0-9]){5,17}+(?![0-9])")
_LETTERS = re.compile(rb"[A-Za-z]{1,3}-?$")
_TRAILING = re.compile(rb"[ \-]{0,1}[A-Za-z]{1,2}(?![0-9A-Za-z])")


@lru_cache(maxsize=256)
def _module(name: str) -> Any:
    return import_module("stdnum." + name)


def valid(name: str, number: bytes) -> bool:
    """python-stdnum's judgement of an ASCII number."""
    return number.isascii() and bool(_module(name).is_valid(number.decode("ascii")))


def _passes(view: View, name: str, number: bytes) -> bool:
    known = view.judged.get((name, number))
    if known is None:
        known = view.judged[name, number] = not view.afford() or valid(name, number)
    return known


def _announced(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    modules = _announcing(view.before(match.start()))
    if modules is None:
        return None
    start, end = match.span()
    left = _LETTERS.search(view.raw, max(0, start - 3), start)
    if left is not None and (left.start() == 0 or not view.raw[left.start() - 1 : left.start()].isalnum()):
        start = left.start()
    right = _TRAILING.match(view.raw, end)
    ends = (right.end(), end) if right is not None else (end,)
    if not modules:
        glued = right is not None and view.raw[end : end + 1].isalpha()
        return (start, ends[0] if glued else end)
    for stop in ends:
        number = view.raw[start:stop]
        for name in modules:
            if _passes(view, name, number):
                return start, stop
    return None


def _checked(*names: str, upper: bool = False) -> Any:
    """Accepts what one of the modules finds valid; `upper`: written in capitals, as such numbers are."""

    def accept(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
        start, end = match.span()
        number = view.raw[start:end]
        if upper and number != number.upper():
            return None
        return (start, end) if any(_passes(view, name, number) for name in names) else None

    return accept


_NINO = re.compile(rb"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]")
_NRIC = re.compile(rb"[STFGM][0-9]{7}[A-Z]")
_NRIC_WEIGHTS = (2, 7, 6, 5, 4, 3, 2)
_NRIC_LETTERS = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "F": "XWUTRQPNMLK", "G": "XWUTRQPNMLK", "M": "XWUTRQPNJLK"}


def _nino(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span() if _NINO.fullmatch(view.raw, *match.span()) else None


def nric(number: str) -> bool:
    """Singapore's NRIC and FIN."""
    total = sum(weight * int(digit) for weight, digit in zip(_NRIC_WEIGHTS, number[1:8], strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(number[0], 0)
    letters = _NRIC_LETTERS[number[0]]
    return letters[10 - total % 11 if number[0] == "M" else total % 11] == number[8]


def _nine(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """A letter, seven digits, a letter: Spain's NIE, Singapore's NRIC."""
    number = view.raw[slice(*match.span())]
    if _NRIC.fullmatch(number) and nric(number.decode("ascii")):
        return match.span()
    return match.span() if number[:1] in b"XYZ" and number.isupper() and valid("es.nie", number) else None


def _shape(shape: bytes) -> re.Pattern[bytes]:
    """`shape` standing alone; it begins with literals, which the search skips to."""
    return re.compile(rb"%b(?<![A9_\-.\x80]%b)(?![A9_]|[\-.]9)" % (re.escape(shape), re.escape(shape)))


def _run_shape(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![0-9A-Za-z\x80_.\-])%b(?![0-9A-Za-z\x80_]|[.\-][0-9])" % pattern)


_LETTERED = (
    # shape in letters and digits, check
    (b"AAAAAA99A99A999A", _checked("it.codicefiscale")),
    (b"AAAA999999AAAAAA99", _checked("mx.curp", upper=True)),
    (b"AAAA999999AAAAAAA9", _checked("mx.curp", upper=True)),
    (b"99999999A", _checked("es.dni", upper=True)),
    (b"99999999-A", _checked("es.dni", upper=True)),
    (b"A9999999A", _nine),
    (b"AA999999A", _nino),
    (b"AA 99 99 99 A", _nino),
    (b"AAAAA9999A", _checked("in_.pan", upper=True)),
    (b"999999-999A", _checked("fi.hetu", upper=True)),
    (b"99999999999999999A", _checked("cn.ric", upper=True)),
)
_TELLING = (
    # shape of the run, pattern, modules, fewest and most digits
    (b"999-999-999-99", rb"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", ("br.cpf",), 11, 40),
    (b"999-9999-9999-99", rb"756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}", ("ch.ssn",), 13, 40),
    (b"99-99-99-999-99", rb"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}", ("be.nn",), 11, 40),
    (b"999999-9999999", rb"[0-9]{6}-[1-8][0-9]{6}", ("kr.rrn",), 13, 40),
    (b"999999-9999", rb"(?:19|20)?[0-9]{6}[\-+][0-9]{4}", ("se.personnummer", "fi.hetu"), 10, 12),
    (b"9-99-99-99-999-999", rb"[12378] [0-9]{2} [0-9]{2} [0-9]{2} [0-9]{3} [0-9]{3} [0-9]{2}", ("fr.nir",), 15, 40),
    (b"9" * 15, rb"[12][0-9]{2}(?:0[1-9]|1[0-2])[0-9]{10}", ("fr.nir",), 15, 15),
    (b"9" * 18, rb"[1-9][0-9]{5}(?:1[89]|20)[0-9]{2}[01][0-9][0-3][0-9]{5}", ("cn.ric",), 18, 18),
)

FAMILY = Family(
    name="national_id",
    category=Category.GOVERNMENT_ID,
    rank=85,
    gate=Digits(7),
    rules=(
        *(
            Rule(_run_shape(pattern), _checked(*modules), shape=shape, fewest=fewest, most=most)
            for shape, pattern, modules, fewest, most in _TELLING
        ),
        Rule(_TOKEN, _announced, most=18, words=_ANNOUNCING, fallback=True),
    ),
    description="Identity and tax numbers of persons in some forty countries: check digits, and a telling shape or the word before.",
    finds=(
        "529.982.247-25",
        "PESEL 44051401359",
        "12345678Z",
        "AB123456C",
        "756.9217.0769.85",
        "national id 1234567890",
    ),
    not_finds=("44051401359", "529.982.247-26", "11 digits without a word", "tax numbers of companies"),
    more=tuple(
        (gate, tuple(Rule(_shape(shape), check, shape=shape) for shape, check in _LETTERED if gate.pattern in shape))
        for gate in (Shapes(4, b"999A"), Shapes(8, b"99-A"), Shapes(6, b" 99 99 99 A"))
    ),
)
