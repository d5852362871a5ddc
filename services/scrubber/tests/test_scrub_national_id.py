"""Identity and tax numbers: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable
from importlib import import_module

import pytest

from assay_scrubber.families.national_id import ANNOUNCED
from assay_scrubber.national_id_checks import OWN, valid

FOUND = [
    # text, found, output
    ("cpf 529.982.247-25", ["529.982.247-25"], "cpf [REDACTED]"),
    ("o numero 529.982.247-25 serve", ["529.982.247-25"], "o numero [REDACTED] serve"),
    ("CPF: 52998224725", ["52998224725"], "CPF: [REDACTED]"),
    ("PESEL 44051401359", ["44051401359"], "PESEL [REDACTED]"),
    ("DNI 12345678Z, NIE X1234567L", ["12345678Z", "X1234567L"], "DNI [REDACTED], NIE [REDACTED]"),
    ("AB123456C", ["AB123456C"], "[REDACTED]"),
    ("AB 12 34 56 C", ["AB 12 34 56 C"], "[REDACTED]"),
    ("S1234567D", ["S1234567D"], "[REDACTED]"),
    ("RSSMRA85T10A562S", ["RSSMRA85T10A562S"], "[REDACTED]"),
    ("756.9217.0769.85", ["756.9217.0769.85"], "[REDACTED]"),
    ("aadhaar 2341 2341 2346", ["2341 2341 2346"], "aadhaar [REDACTED]"),
    ("BSN: 111222333", ["111222333"], "BSN: [REDACTED]"),
    ("131052-308T", ["131052-308T"], "[REDACTED]"),
    ("national id 1234567890", ["1234567890"], "national id [REDACTED]"),
    (r'{"national id": "\nAB1234567"}', ["AB1234567"], r'{"national id": "\n[REDACTED]"}'),
    ('{"tax_id": "36574261809"}', ["36574261809"], '{"tax_id": "[REDACTED]"}'),
    ("NHS number: 943 476 5919", ["943 476 5919"], "NHS number: [REDACTED]"),
    ("nhs no 9434765919", ["9434765919"], "nhs no [REDACTED]"),
    ("fødselsnummeret mitt er 15108695088", ["15108695088"], "fødselsnummeret mitt er [REDACTED]"),
    ("Numer PESEL pacjenta to 44051401359", ["44051401359"], "Numer PESEL pacjenta to [REDACTED]"),
    ("CNP-ul pacientului este 1630615123457", ["1630615123457"], "CNP-ul pacientului este [REDACTED]"),
    ("T.C. kimlik numarası: 10000000146", ["10000000146"], "T.C. kimlik numarası: [REDACTED]"),
    ("?kimlik%20numaras%C4%B1=10000000146", ["10000000146"], "?kimlik%20numaras%C4%B1=[REDACTED]"),
    ("131052A308T", ["131052A308T"], "[REDACTED]"),
    ("110101200001018899", ["110101200001018899"], "[REDACTED]"),
    ("1 85 05 2A 123 456 33", ["1 85 05 2A 123 456 33"], "[REDACTED]"),
    ("NIR 185052A12345633", ["185052A12345633"], "NIR [REDACTED]"),
    ("personas kods 161175-19997", ["161175-19997"], "personas kods [REDACTED]"),
    ("JMBG 0101006500006", ["0101006500006"], "JMBG [REDACTED]"),
    ("resident registration number 990101-1234567", ["990101-1234567"], "resident registration number [REDACTED]"),
    ("carte d'identité : 123456789012", ["123456789012"], "carte d'identité : [REDACTED]"),
    ("СНИЛС 112-233-445 95", ["112-233-445 95"], "СНИЛС [REDACTED]"),
    ("आधार संख्या 234123412346", ["234123412346"], "आधार संख्या [REDACTED]"),
    ("身份证号码：110101200001018899", ["110101200001018899"], "身份证号码：[REDACTED]"),
    ("주민등록번호 990101-1234567", ["990101-1234567"], "주민등록번호 [REDACTED]"),
    ("תעודת זהות 123456782", ["123456782"], "תעודת זהות [REDACTED]"),
    ("الرقم القومي 29001011234567", ["29001011234567"], "الرقم القومي [REDACTED]"),
    ("VAT no GB980780684", ["GB980780684"], "VAT no [REDACTED]"),
    ("20-12345678-6", ["20-12345678-6"], "[REDACTED]"),
    ("12.345.678-5", ["12.345.678-5"], "[REDACTED]"),
    ("ΑΦΜ 094259216", ["094259216"], "ΑΦΜ [REDACTED]"),
    ("CUIL (Argentina) 20-05536168-2", ["20-05536168-2"], "CUIL (Argentina) [REDACTED]"),
    ("cédula V-12.345.678", ["V-12.345.678"], "cédula [REDACTED]"),
    ("Sozialversicherungsnummer 12 010180 M 999", ["12 010180 M 999"], "Sozialversicherungsnummer [REDACTED]"),
    ("Cartão de Cidadão 12345678 9 AB1", ["12345678 9 AB1"], "Cartão de Cidadão [REDACTED]"),
    ("RFC: GODE561231GR8", ["GODE561231GR8"], "RFC: [REDACTED]"),
    ("C.C. 52.123.456", ["52.123.456"], "C.C. [REDACTED]"),
    ("KRA PIN A123456789B", ["A123456789B"], "KRA PIN [REDACTED]"),
    ("numri personal: J12345678K", ["J12345678K"], "numri personal: [REDACTED]"),
    ("USt-IdNr.: DE136695976", ["DE136695976"], "USt-IdNr.: [REDACTED]"),
]
KEPT = [
    "44051401359",
    "529.982.247-26",
    "PESEL 44051401358",
    "12345678A",
    "AB123456E",
    "S1234567A",
    "RSSMRA85T10A562T",
    "rows 12345678 of 44051401359",
    "RFC 2045-2047",
    "943 476 5919x",
    "131052A308S",
    "110101200001018898",
    "110101200013018899",
    "1 85 05 2A 123 456 34",
    "sin of the angle 046454286",
    "PESEL\nrows of the table 44051401358",
    "vat rate 20 of 1234567",
    "12.345.678-6",
    "run 9394383-9",
    "1234567-K",
    "part 12345678 9 AB1",
    "RG519956299SH is in transit",
    "RFC: 2616 of 1999",
    "a run of c-c31456789-4f",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_national_id_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("national_id", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_national_id_stays(check: Callable[..., None], text: str) -> None:
    check("national_id", text, [], text)


def test_every_check_exists() -> None:
    names = {name for _, names in ANNOUNCED for name in names}
    assert {name for name in names if name.startswith("own.")} <= set(OWN)
    for name in sorted(names - set(OWN)):
        assert callable(import_module(f"stdnum.{name}").is_valid)


VALID = [
    ("own.chinese", "11010519491231002X"),
    ("own.korean_checked", "971013-9019902"),
    ("own.finnish", "131052-308T"),
    ("own.nhs", "9434765919"),
    ("own.japanese", "123456789018"),
]


@pytest.mark.parametrize(("name", "number"), VALID)
def test_our_own_checks_know_numbers_of_their_country(name: str, number: str) -> None:
    assert valid(name, number.encode())
    wrong = [number[:-1] + digit for digit in "0123456789" if digit != number[-1]]
    assert not any(valid(name, other.encode()) for other in wrong)
    assert not valid(name, b"")
    assert not valid(name, b"\x80" * len(number))
