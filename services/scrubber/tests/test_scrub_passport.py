"""Passport numbers: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("passport no. X1234567", ["X1234567"], "passport no. [REDACTED]"),
    ("Passport number: 123456789.", ["123456789"], "Passport number: [REDACTED]."),
    ('{"passport_number": "AB123456"}', ["AB123456"], '{"passport_number": "[REDACTED]"}'),
    ("Reisepass C01X00T47", ["C01X00T47"], "Reisepass [REDACTED]"),
    (
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10",
        ["P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"],
        "[REDACTED]",
    ),
]
KEPT = [
    "X1234567",
    "passport application of 2024",
    "passport control at gate 12",
    "passportization 1234567",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_passport_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("passport", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_passport_stays(check: Callable[..., None], text: str) -> None:
    check("passport", text, [], text)
