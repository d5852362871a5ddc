"""Match identity and tax numbers of persons, by country.

Every number needs valid check digits, and either a distinctive format or a keyword before it.

The checks are in `national_id_checks`.
"""

import re
from typing import Any

from assay_scrubber.automaton import whole_phrase
from assay_scrubber.context_words import FILLERS, rules_after, words_of
from assay_scrubber.family import Announced, AnnouncedRule, Digits, Family, RunRule, ShapeRule, Shapes, View
from assay_scrubber.lexicon import Announces
from assay_scrubber.national_id_checks import valid
from assay_scrubber.taxonomy import Category

#: Keywords, and the checks of the number after them (`national_id_checks`); without a check, the keyword is enough.
ANNOUNCED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cpf", ("br.cpf",)),
    ("pesel|peselu|peselem", ("pl.pesel",)),
    ("bsn|burgerservicenummer|sofinummer|bsnnummer|bsn nummer", ("nl.bsn",)),
    ("dni|nif|nie|documento nacional|documento identidad", ("es.dni", "es.nie", "es.nif", "pt.nif", "ar.dni")),
    ("contribuinte|cart\x80o cidad\x80o", ("pt.nif", "pt.cc")),
    ("codice fiscale|codicefiscale", ("it.codicefiscale",)),
    ("aadhaar|aadhar|uidai|adhaar", ("in_.aadhaar",)),
    ("sin|social insurance|assurance sociale", ("ca.sin",)),
    ("tfn|tax file", ("au.tfn",)),
    (
        "personnummer|personnr|personnummeret|samordningsnummer|samordningsnr|personbeteckning",
        ("se.personnummer", "no.fodselsnummer", "own.finnish"),
    ),
    (
        "f\x80dselsnummer|fodselsnummer|f\x80dselsnummeret|fodselsnummeret|f\x80dselsnr|fodselsnr|fnr|d nummer|dnummer",
        ("no.fodselsnummer",),
    ),
    ("cpr|cprnr|cprnummer|cpr nummer|personnummer", ("dk.cpr",)),
    (
        "hetu|henkil\x80tunnus|henkilotunnus|henkil\x80tunnukseni|henkil\x80tunnuksesi|henkil\x80tunnuksen",
        ("own.finnish",),
    ),
    ("pps|ppsn", ("ie.pps",)),
    (
        "steuer id|steuerid|steueridentifikationsnummer|idnr|identifikationsnummer|steuernummer|steuer identifikationsnummer|steueridnr",
        ("de.idnr",),
    ),
    ("nir|insee|s\x80curit\x80 sociale|securite sociale|num\x80ro s\x80cu", ("fr.nir",)),
    ("ahv|avs|ahvnr|ahv nummer|ahvnummer", ("ch.ssn",)),
    ("rijksregister|rijksregisternummer|registre national|insz|niss", ("be.nn", "be.bis")),
    ("svnr|sozialversicherungsnummer|sv nummer|versicherungsnummer", ("at.vnr",)),
    (
        "tckn|tc kimlik|kimlik|k\x80ml\x80k|kimli\x80i|kimli\x80im|vatanda\x80l\x80k|vatandaslik|tckimlik|tckimlikno|tc no|turkish id",
        ("tr.tckimlik",),
    ),
    ("teudat zehut|israeli id", ("il.idnr",)),
    ("south african id|rsa id|sa id", ("za.idnr",)),
    ("rrn|jumin|resident registration|korean id", ("own.korean",)),
    ("cnp|cnpul|cod numeric personal|codul numeric|numeric personal", ("ro.cnp",)),
    ("egn", ("bg.egn", "bg.pnf")),
    (
        "rodn\x80 \x80\x80slo|rodne cislo|rodn\x80 \x80islo|rodn\x80 \x80\x80sla|birth number|rodn\x80ho \x80\x80sla",
        ("cz.rc", "sk.rc"),
    ),
    ("oib|identifikacijski broj", ("hr.oib",)),
    ("de extranjero", ("es.nie",)),
    ("ic no|ic number", ("my.nric",)),
    ("id nommer", ("za.idnr",)),
    ("amka", ("gr.amka",)),
    ("rut|rol \x80nico", ("cl.rut",)),
    ("cuit|cuil", ("ar.cuit",)),
    ("c\x80dula v|c\x80dula e|cedula v|cedula e", ()),
    ("c\x80dula|cedula", ("ec.ci", "do.cedula")),
    ("isikukood|isikukoodi|isikukoodiga", ("ee.ik",)),
    ("asmens kodas|asmens kod\x80|asmens kodo", ("lt.asmens",)),
    ("personas kods|personas kodu|personas koda", ("lv.pvn",)),
    ("emso|em\x80o|jmbg", ("si.emso",)),
    ("utr|unique taxpayer", ("gb.utr",)),
    ("kennitala|kennit\x80lu|kennitalan", ("is_.kennitala",)),
    ("thai id|thai national id", ("th.pin",)),
    ("mykad", ("my.nric",)),
    ("cnic|snic|nicop", ("pk.cnic",)),
    ("nik|ktp", ("id.nik",)),
    ("rntrc|rnokpp", ("ua.rntrc",)),
    ("resident identity|shenfenzheng|chinese id|shenfen", ("own.chinese",)),
    ("my number|mynumber|individual number|kojin bango", ("own.japanese",)),
    ("afm", ("gr.vat",)),
    ("nip|numer nip", ("pl.nip",)),
    ("szem\x80lyi sz\x80m|szem\x80lyi azonos\x80t\x80|ad\x80azonos\x80t\x80 jel|ad\x80azonos\x80t\x80", ()),
    ("r\x80|r \x80|identifika\x80n\x80 \x80\x80slo", ("cz.rc",)),
    ("s\x80curit\x80 sociale|num\x80ro s\x80cu|n\x80 s\x80cu|carte vitale", ("fr.nir",)),
    ("num\x80ro national", ("be.nn",)),
    ("num\x80ro fiscal", ()),
    ("bvn|nin|cccd|cmnd|c\x80n c\x80\x80c|ghana card|huduma|kenya id|emirates id|egypt national|abha|philsys|sss", ()),
    ("nomor ktp|nomor nik|no ktp", ()),
    ("id number|id no|id nr|id card number", ("za.idnr", "il.idnr", "ee.ik", "own.chinese", "pk.cnic")),
    ("rg|dui|dpi|pis|nss|seguridad social|t\x80tulo de eleitor|t\x80tulo eleitor|eleitor|clave elector", ()),
    ("c\x80dula ciudadan\x80a|c\x80dula identidad|de ciudadan\x80a|de identidad", ()),
    ("medicare", ()),
    ("ird|ird number", ("nz.ird",)),
    ("dav\x80na \x80tevilka", ()),
    (
        (
            "ausweisnr|ausweis nr|ausweis nummer|matricule|personal number|numri personal|kra pin|c\x80ng d\x80n|"
            "numero identificaci\x80n|de identificaci\x80n|ob\x80ansk\x80 pr\x80kaz"
        ),
        (),
    ),
    ("partita iva|p iva|piva", ("it.iva",)),
    ("saudi id|iqama", ()),
    ("taj|taj sz\x80m|taj sz\x80ma", ()),
    ("national insurance|nino|ni number", ()),
    ("nric|fin", ()),
    ("hkid", ()),
    (
        "national id|nationalid|national identity|national identification|identity card|identity number|identity document",
        (),
    ),
    (
        "id card|citizen id|tax id|taxid|tax identification|taxpayer|tin|tax number|government id|personal id|personalausweis",
        (),
    ),
    (
        (
            "ausweisnummer|personalausweisnummer|carte d|d identit\x80|identit\x80 nationale|personal identity|voter id|curp|pan card|npi|"
            "dow\x80d osobisty|dowodu osobistego|identiteitskaart|identidade|legitimationsnummer|identidad"
        ),
        (),
    ),
)

_BY_WORDS: dict[bytes, tuple[str, ...]] = {}
for _words, _checks in ANNOUNCED:
    for _phrase in _words.encode("latin-1").split(b"|"):
        _BY_WORDS[_phrase] = (*_BY_WORDS.get(_phrase, ()), *_checks)
#: A number with none of these nearby costs one look-up.
_ANNOUNCING = whole_phrase(_BY_WORDS)
_MOST_WORDS, _MOST_STRANGERS = 10, 4
#: Short unambiguous words; a shorter or more common one must stand right before its number.
_DISTINCT = frozenset((b"cnp", b"bsn", b"cpf", b"fnr", b"tckn", b"hetu", b"amka", b"jmbg", b"emso"))
_SHORTEST_DISTINCT = 5
#: Owners of a number, which can stand between a keyword and the number as filler.
_QUALIFIERS = FILLERS | frozenset(
    b"argentina chile uruguay uy peru colombia venezuela ecuador brasil brazil portugal polska poland deutschland italia osoby".split()
)


def _announcing(before: bytes) -> tuple[str, ...] | None:
    """Return the checks that the nearest keyword before a number requires.

    Filler may stand between them, or a few words of any language if check digits decide in the end.
    """
    words, strangers = words_of(before)[-_MOST_WORDS:], 0
    for index in range(len(words) - 1, -1, -1):
        word = words[index]
        phrase = b"%b %b" % (words[index - 1], word) if index else word
        found = _BY_WORDS.get(phrase)
        if found is None:
            phrase, found = word, _BY_WORDS.get(word)
        if found is not None:
            distinct = found and (len(phrase) >= _SHORTEST_DISTINCT or phrase in _DISTINCT)
            return found if distinct or not strangers else None
        if word not in _QUALIFIERS and len(word) > 1:
            strangers += 1
            if strangers > _MOST_STRANGERS:
                return None
    return None


# Not the digits of an escape: the unescaped text is searched too.
_TOKEN = re.compile(rb"(?<![0-9])(?<!\\[ux])[0-9](?:[ .\-/+]{0,2}[0-9]){5,17}+(?![0-9])")
_LETTERS = re.compile(rb"[A-Za-z]{1,3}-?$")
# A parcel's number (UPU S10): its two letters are not a word.
_PARCEL = re.compile(rb"[A-Z]{2}[0-9]{9}[A-Z]{2}(?![0-9A-Za-z])")
_TRAILING = re.compile(rb"[ \-]{0,1}[A-Za-z]{1,2}(?![0-9A-Za-z])")


def _passes(view: View, name: str, number: bytes) -> bool:
    known = view.judged.get((name, number))
    if known is None:
        known = view.judged[name, number] = not view.afford() or valid(name, number)
    return known


def _announced(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end = match.span()
    modules = _announcing(view.before(start))
    left = _LETTERS.search(view.raw, max(0, start - 3), start)
    if left is not None:
        if _PARCEL.match(view.raw, left.start()):
            return None
        before = view.raw[max(0, left.start() - 1) : left.start()]
        if not before.isalnum() and before != b"\\":  # its letter would belong to an escape
            start = left.start()
            modules = _announcing(view.before(start)) if modules is None else modules
    if modules is None:
        return None
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
    """Accept a number that one of the modules validates; `upper`: only in capitals, as such numbers are written."""

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


def _health_service(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span(1) if _passes(view, "own.nhs", match.group(1).translate(None, b" -.")) else None


def _nino(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span() if _NINO.fullmatch(view.raw, *match.span()) else None


def nric(number: str) -> bool:
    """Check Singapore's NRIC and FIN."""
    total = sum(weight * int(digit) for weight, digit in zip(_NRIC_WEIGHTS, number[1:8], strict=True))
    total += {"T": 4, "G": 4, "M": 3}.get(number[0], 0)
    letters = _NRIC_LETTERS[number[0]]
    return letters[10 - total % 11 if number[0] == "M" else total % 11] == number[8]


def _nine(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Accept a letter, seven digits and a letter: Spain's NIE, Singapore's NRIC."""
    number = view.raw[slice(*match.span())]
    if _NRIC.fullmatch(number) and nric(number.decode("ascii")):
        return match.span()
    return match.span() if number[:1] in b"XYZ" and number.isupper() and valid("es.nie", number) else None


def _shape(shape: bytes) -> re.Pattern[bytes]:
    """Return a rule for `shape` as a whole word; it begins with literals, which the search skips to."""
    return re.compile(rb"%b(?<![A9_\-.\x80]%b)(?![A9_]|[\-.]9)" % (re.escape(shape), re.escape(shape)))


#: An approximation for RE2, which has no look-around.
_STANDING_ALONE = rb"(?:^|[^A9_\-.])%b(?:$|[^A9_])"


def _run_shape(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![0-9A-Za-z\x80_.\-])%b(?![0-9A-Za-z\x80_]|[.\-][0-9])" % pattern)


_LETTERED = (
    # shape in letters and digits, check
    (b"AAAAAA99A99A999A", _checked("it.codicefiscale")),
    (b"AAAA999999AAAAAA99", _checked("mx.curp", upper=True)),
    (b"AAAA999999AAAAAAA9", _checked("mx.curp", upper=True)),
    (b"99999999A", _checked("es.dni", upper=True)),
    (b"99999999-A", _checked("es.dni", "cl.rut", upper=True)),
    (b"9999999-A", _checked("cl.rut", upper=True)),
    (b"A9999999A", _nine),
    (b"AA999999A", _nino),
    (b"AA 99 99 99 A", _nino),
    (b"AAAAA9999A", _checked("in_.pan", upper=True)),
    (b"999999-999A", _checked("own.finnish", upper=True)),
    (b"999999A999A", _checked("own.finnish", upper=True)),
    (b"999999A9999", _checked("own.finnish", upper=True)),
    (b"99999999999999999A", _checked("own.chinese", upper=True)),
    (b"999999A99999999", _checked("fr.nir", upper=True)),
    (b"9 99 99 9A 999 999 99", _checked("fr.nir", upper=True)),
)
_TELLING = (
    # shape of the run, pattern, modules, fewest and most digits
    (b"999-999-999-99", rb"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", ("br.cpf",), 11, 40),
    (b"999-9999-9999-99", rb"756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}", ("ch.ssn",), 13, 40),
    (b"99-99-99-999-99", rb"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}", ("be.nn",), 11, 40),
    (b"999999-9999999", rb"[0-9]{6}-[0-9]{7}", ("own.korean_checked",), 13, 40),
    (b"99-999-999-9", rb"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9]", ("cl.rut",), 8, 9),
    (b"99-99999999-9", rb"(?:2[03457]|3[034])-[0-9]{8}-[0-9]", ("ar.cuit",), 11, 11),
    (b"9-9999-99999-99-9", rb"[1-8]-[0-9]{4}-[0-9]{5}-[0-9]{2}-[0-9]", ("th.pin",), 13, 13),
    (b"99999-9999999-9", rb"[1-7][0-9]{4}-[0-9]{7}-[0-9]", ("pk.cnic",), 13, 13),
    (b"999999-9999", rb"(?:19|20)?[0-9]{6}[\-+][0-9]{4}", ("se.personnummer", "own.finnish"), 10, 12),
    (b"9-99-99-99-999-999", rb"[12378] [0-9]{2} [0-9]{2} [0-9]{2} [0-9]{3} [0-9]{3} [0-9]{2}", ("fr.nir",), 15, 40),
    (b"9" * 15, rb"[12][0-9]{2}(?:0[1-9]|1[0-2])[0-9]{10}", ("fr.nir",), 15, 15),
    (b"9" * 18, rb"[1-8][0-9]{5}(?:1[89]|20)[0-9]{2}[01][0-9][0-3][0-9]{5}", ("own.chinese",), 18, 18),
)

# Without a keyword it looks like an American telephone number, one in eleven of which would pass its check.
_NHS = tuple(rules_after("nhs nhsnumber nhsno", rb"([0-9]{3}([ \-.]?)[0-9]{3}\2[0-9]{4})(?![0-9])", _health_service))

# Numbers that contain letters, so they do not form one run of digits.
_INSIDE = (
    *rules_after(
        "sozialversicherungsnummer sozialversicherungsnr rentenversicherungsnummer rentenversicherungsnr versicherungsnummer svnr rvnr",
        rb"([0-9]{2}[ ]?[0-3][0-9][01][0-9]{3}[ ]?[a-z][ ]?[0-9]{3})(?![a-z0-9])",
    ),
    # Germany's health insurance and tax numbers, the United States' Medicare number.
    *rules_after(
        "kvnr krankenversichertennummer krankenversichertennr krankenversicherungsnummer krankenversicherungsnr"
        " versichertennummer versichertennr"
        " gesundheitskarte egk kvn",
        rb"([a-z][ ]?[0-9]{3}[ ]?[0-9]{3}[ ]?[0-9]{3})(?![a-z0-9])",
    ),
    *rules_after(
        "steuernummer steuernr stnr steuernum",
        rb"([0-9]{2,3}[/ ][0-9]{3,4}[/ ][0-9]{4,5}|[0-9]{5}/[0-9]{5}|[0-9]{10,11}|[0-9]{13})(?![0-9a-z]|/[0-9])",
        phrases=(b"st.-nr", b"st.nr", b"st-nr", b"steuer-nr", b"steuer nr"),
    ),
    *rules_after(
        "mbi medicare beneficiary",
        rb"([1-9][ac-hjkmnp-rt-y][0-9ac-hjkmnp-rt-y][0-9]-?[ac-hjkmnp-rt-y][0-9ac-hjkmnp-rt-y][0-9]-?[ac-hjkmnp-rt-y]{2}[0-9]{2})(?![a-z0-9])",
        phrases=(b"beneficiary identifier",),
    ),
    *rules_after("", rb"([0-9]{1,3}(?:\.[0-9]{3}){1,3}|[0-9]{6,10})(?![0-9a-z])", phrases=(b"c.c.",)),
    *rules_after(
        "rfc contribuyentes",
        rb"([a-z\x80&]{3,4}[ \-]?[0-9]{2}(?:0[1-9]|1[0-2])[0-3][0-9][ \-]?[a-z0-9]{2}[0-9a])(?![a-z0-9])",
    ),
    *rules_after(
        "",
        rb"([0-9]{8}[ \-]?[0-9][ \-]?[a-z0-9]{2}[0-9])(?![a-z0-9])",
        phrases=(b"cart\x80o de cidad\x80o", b"cart\x80o do cidad\x80o", b"cartao de cidadao"),
    ),
)

_MARKED = rb"([a-z]{0,2}[0-9](?:[ .\-/]{0,2}[0-9]){6,17}(?:-?[a-z])?)(?![a-z0-9])"


def _marked(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    """Accept a number after a keyword in another script, which requires no check, as after a general keyword."""
    return match.span(1)


# A VAT number identifies a person who trades under their own name; the country's letters stand before it.
_VAT = tuple(
    rules_after(
        "vat vatno idnr vatnumber tva ust ustid ustidnr mwst btw btwnummer iva nif piva moms cvr mva uid alv dph pvm \x80fa afa dds",
        rb"((?:at[ ]?u|be|bg|ch[ ]?e|cy|cz|de|dk|ee|el|gr|es|eu|fi|fr|gb|xi|hr|hu|ie|it|lt|lu|lv|mt|nl|no|pl|pt|ro|rs|se|si|sk)[ \-]?"
        rb"[a-z0-9]{0,2}[ .\-]?[0-9](?:[ .\-]?[0-9]){5,11}(?:b[0-9]{2}|[a-z]{1,2})?)(?![a-z0-9])",
    )
)
_OTHER_SCRIPTS = AnnouncedRule(Announces.NATIONAL_ID.before(_MARKED), _marked, needle=Announces.NATIONAL_ID.byte)

FAMILY = Family(
    name="national_id",
    category=Category.GOVERNMENT_ID,
    rank=72,
    gate=Digits(7),
    rules=(
        *(
            RunRule(_run_shape(pattern), _checked(*modules), shape=shape, fewest=fewest, most=most)
            for shape, pattern, modules, fewest, most in _TELLING
        ),
        RunRule(_TOKEN, _announced, most=18, near=_ANNOUNCING, fallback=True),
    ),
    description="Identity and tax numbers of about 40 countries: check digits, and a distinctive format or a keyword before them.",
    examples=(
        "СНИЛС 112-233-445 95",
        "VAT no. DE136695976",
        "529.982.247-25",
        "PESEL 44051401359",
        "12345678Z",
        "AB123456C",
        "756.9217.0769.85",
        "national id 1234567890",
    ),
    counterexamples=("44051401359", "529.982.247-26", "11 digits without a keyword", "tax numbers of companies"),
    more=(
        *(
            (
                Shapes(_STANDING_ALONE % re.escape(shape)),
                (ShapeRule(_shape(shape), check, needle=shape, anchored=True),),
            )
            for shape, check in _LETTERED
        ),
        (Announced(), (*_NHS, *_VAT, *_INSIDE, _OTHER_SCRIPTS)),
    ),
)
