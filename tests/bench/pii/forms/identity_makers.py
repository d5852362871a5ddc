"""National numbers: drawn by their pattern until python-stdnum finds the check digits right, and written as people write them."""

import random
from importlib import import_module

from .drawing import Maker, chars, day, digits, drawn

#: Kind: the module of python-stdnum, what is drawn (see `drawn`), and how it is written: each `#` is the next sign.
_CHECKED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "us ssn": ("us.ssn", "~########", ("###-##-####",)),
    "us ssn spaced": ("us.ssn", "~########", ("### ## ####",)),
    "us ssn dotted": ("us.ssn", "~########", ("###.##.####",)),
    "us ssn digits": ("us.ssn", "~########", ("#########",)),
    "us ssn in items": ("us.ssn", "~########", ('"###", "##", "####"',)),
    "us itin": ("us.itin", "9##7#####", ("###-##-####",)),
    "ar dni": ("ar.dni", "~#######", ("########", "##.###.###")),
    "ar cuit": ("ar.cuit", "20#########", ("##-########-#", "###########")),
    "at svnr": ("at.vnr", "~###%d%m%y", ("#### ######", "##########")),
    "au tfn": ("au.tfn", "~########", ("### ### ###", "#########")),
    "be nn": ("be.nn", "%y%m%d#####", ("##.##.##-###.##", "###########")),
    "bg egn": ("bg.egn", "%y%m%d####", ("##########",)),
    "br cpf": ("br.cpf", "~##########", ("###.###.###-##", "###########")),
    "ca sin": ("ca.sin", "4########", ("### ### ###", "###-###-###", "#########")),
    "ch ahv": ("ch.ssn", "756##########", ("###.####.####.##", "#############")),
    "cl rut": ("cl.rut", "1########", ("##.###.###-#", "########-#")),
    "cn ric": ("cn.ric", "110101%Y%m%d####", ("##################",)),
    "co cc": ("co.nit", "1#########", ("#.###.###.###", "##########")),
    "cr cedula": ("cr.cpf", "01########", ("##-####-####",)),
    "cu ni": ("cu.ni", "%y%m%d#####", ("###########",)),
    "cz rc": ("cz.rc", "%y%m%d####", ("######/####",)),
    "de idnr": ("de.idnr", "~##########", ("## ### ### ###", "###########")),
    "dk cpr": ("dk.cpr", "%d%m%y####", ("######-####",)),
    "do cedula": ("do.cedula", "001########", ("###-#######-#",)),
    "ec ci": ("ec.ci", "17########", ("##########", "#########-#")),
    "ee ik": ("ee.ik", "3%y%m%d####", ("###########",)),
    "es dni": ("es.dni", "~#######@", ("#########", "########-#")),
    "es nie": ("es.nie", "X#######@", ("#########", "#-#######-#")),
    "fi hetu": ("fi.hetu", "%d%m%y-###@", ("###########",)),
    "fr nir": ("fr.nir", "1%y%m75########", ("# ## ## ## ### ### ##", "###############")),
    "gb nhs": ("gb.nhs", "4#########", ("### ### ####", "##########")),
    "gb utr": ("gb.utr", "~#########", ("##########", "##### #####")),
    "gr amka": ("gr.amka", "%d%m%y#####", ("###########",)),
    "gr afm": ("gr.vat", "1########", ("#########",)),
    "hr oib": ("hr.oib", "~##########", ("###########",)),
    "id nik": ("id.nik", "317101%d%m%y####", ("################",)),
    "ie pps": ("ie.pps", "~######@", ("########",)),
    "il id": ("il.idnr", "~########", ("#########", "########-#")),
    "in aadhaar": ("in_.aadhaar", "~###########", ("#### #### ####", "############")),
    "in pan": ("in_.pan", "@@@P@####@", ("##########",)),
    "is kennitala": ("is_.kennitala", "%d%m%y####", ("######-####",)),
    "it cf": ("it.codicefiscale", "RSSMRA%yA15H5##@", ("################",)),
    "jp my number": ("jp.in_", "~###########", ("#### #### ####", "############")),
    "ke pin": ("ke.pin", "A#########@", ("###########",)),
    "kr rrn": ("kr.rrn", "%y%m%d1######", ("######-#######",)),
    "lt asmens": ("lt.asmens", "3%y%m%d####", ("###########",)),
    "lv pk": ("lv.pvn", "%d%m%y1####", ("######-#####",)),
    "mx curp": ("mx.curp", "LOPA%y%m%dHDFRRN0#", ("##################",)),
    "mx rfc": ("mx.rfc", "LOPA%y%m%d@@#", ("#############", "####-######-###")),
    "my nric": ("my.nric", "%y%m%d14####", ("######-##-####",)),
    "nl bsn": ("nl.bsn", "~########", ("#########", "####.##.###")),
    "no fnr": ("no.fodselsnummer", "%d%m%y#####", ("###########", "###### #####")),
    "nz ird": ("nz.ird", "4#######", ("##-###-###",)),
    "pe dni": ("pe.cui", "4#######", ("########",)),
    "pk cnic": ("pk.cnic", "35202########", ("#####-#######-#", "#############")),
    "pl pesel": ("pl.pesel", "%y%m%d#####", ("###########",)),
    "pl nip": ("pl.nip", "5#########", ("###-###-##-##", "##########")),
    "pt nif": ("pt.nif", "2########", ("#########", "### ### ###")),
    "ro cnp": ("ro.cnp", "1%y%m%d40####", ("#############",)),
    "rs jmbg": ("si.emso", "%d%m9%y71####", ("#############",)),
    "ru inn": ("ru.inn", "77##########", ("############",)),
    "se pnr": ("se.personnummer", "%y%m%d-####", ("###########",)),
    "si emso": ("si.emso", "%d%m9%y50####", ("#############",)),
    "sk rc": ("sk.rc", "%y%m%d####", ("######/####",)),
    "th pin": ("th.pin", "3############", ("#-####-#####-##-#", "#############")),
    "tr tckn": ("tr.tckimlik", "~##########", ("###########",)),
    "ua rnokpp": ("ua.rntrc", "~#########", ("##########",)),
    "za id": ("za.idnr", "%y%m%d5###08#", ("#############", "###### #### ###")),
    "it iva": ("it.iva", "0##########", ("###########", "IT###########")),
    "de vat": ("de.vat", "~########", ("DE#########",)),
    "at uid": ("at.uid", "U########", ("AT#########",)),
    "nl btw": ("nl.btw", "NL#########B##", ("##############",)),
    "es vat": ("es.nif", "~#######@", ("ES#########",)),
}


def _written(text: str, pattern: str) -> str:
    signs = iter(text)
    return "".join(next(signs) if sign == "#" else sign for sign in pattern)


def _checked(module: str, pattern: str, forms: tuple[str, ...]) -> Maker:
    def make(rng: random.Random) -> str:
        is_valid = import_module(f"stdnum.{module}").is_valid
        for _ in range(100_000):
            number = drawn(rng, pattern)
            if is_valid(number):
                return _written(number, rng.choice(forms))
        raise ValueError(f"no valid number of {module} by {pattern}")

    return make


def _snils(rng: random.Random) -> str:
    """Nine digits, and the sum by weights 9 to 1, modulo 101."""
    body = "1" + digits(rng, 8)
    check = sum(int(digit) * (9 - place) for place, digit in enumerate(body)) % 101 % 100
    return f"{body[:3]}-{body[3:6]}-{body[6:]} {check:02}"


def _nric(rng: random.Random) -> str:
    """S, seven digits by weights 2, 7, 6, 5, 4, 3, 2, and the letter of the sum modulo 11."""
    body = digits(rng, 7)
    return f"S{body}{'JZIHGFEDCBA'[sum(int(d) * w for d, w in zip(body, (2, 7, 6, 5, 4, 3, 2), strict=True)) % 11]}"


def _taiwan(rng: random.Random) -> str:
    """A for Taipei (10), sex, seven digits, and what fills the weighted sum up to a multiple of ten."""
    body = rng.choice("12") + digits(rng, 7)
    total = 1 + sum(int(d) * w for d, w in zip(body, range(8, 0, -1), strict=True))
    return f"A{body}{-total % 10}"


def _nino(rng: random.Random) -> str:
    """Two letters in use, six digits, a letter from A to D (HMRC, NIM39110)."""
    parts = [
        rng.choice(("AB", "CE", "JK", "PR", "WX")),
        digits(rng, 2),
        digits(rng, 2),
        digits(rng, 2),
        rng.choice("ABCD"),
    ]
    return rng.choice(["", " "]).join(parts)


MAKERS: dict[str, Maker] = {
    **{kind: _checked(*row) for kind, row in _CHECKED.items()},
    "ru snils": _snils,
    "sg nric": _nric,
    "tw id": _taiwan,
    "gb nino": _nino,
    "al nid": lambda rng: f"{rng.choice('HIJ')}{day(rng):%m%d}0{digits(rng, 3)}{chars(rng, 'ABCDEFGHIJKLMN', 1)}",
    "ng nin": lambda rng: "3" + digits(rng, 10),
    "ph philsys": lambda rng: f"{rng.randint(2000, 9999)}-{digits(rng, 4)}-{digits(rng, 4)}-{digits(rng, 4)}",
    "sa nid": lambda rng: "10" + digits(rng, 8),
    "vn cccd": lambda rng: f"001{rng.randint(0, 1)}{day(rng):%y}{digits(rng, 6)}",
}
