"""Identity and tax numbers: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

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
    ('{"tax_id": "36574261809"}', ["36574261809"], '{"tax_id": "[REDACTED]"}'),
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
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_national_id_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("national_id", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_national_id_stays(check: Callable[..., None], text: str) -> None:
    check("national_id", text, [], text)
