"""Dates of birth: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("born on 12 March 1985", ["12 March 1985"], "born on [REDACTED]"),
    ("DOB: 1985-03-12", ["1985-03-12"], "DOB: [REDACTED]"),
    ("Date of birth 12/03/1985.", ["12/03/1985"], "Date of birth [REDACTED]."),
    ("birthday is March 12th, 1985", ["March 12th, 1985"], "birthday is [REDACTED]"),
    ('{"birth_date": "12.03.85"}', ["12.03.85"], '{"birth_date": "[REDACTED]"}'),
    ("Geburtsdatum: 12.03.1985", ["12.03.1985"], "Geburtsdatum: [REDACTED]"),
    ("fecha de nacimiento: 12 de marzo de 1985", ["12 de marzo de 1985"], "fecha de nacimiento: [REDACTED]"),
    ("D.O.B.: 03-12-1985", ["03-12-1985"], "D.O.B.: [REDACTED]"),
    ("DOB (dd/mm/yyyy): 12/03/1985", ["12/03/1985"], "DOB (dd/mm/yyyy): [REDACTED]"),
    ("born 12-Mar-1985", ["12-Mar-1985"], "born [REDACTED]"),
    ("born 12 Mar 85", ["12 Mar 85"], "born [REDACTED]"),
    ("geboren am Dienstag, den 12. März 1985", ["12. März 1985"], "geboren am Dienstag, den [REDACTED]"),
    ("né(e) le 1er mars 1985", ["1er mars 1985"], "né(e) le [REDACTED]"),
    ("nato il 12 marzo 1985", ["12 marzo 1985"], "nato il [REDACTED]"),
    ("nascido em 12 de março de 1985", ["12 de março de 1985"], "nascido em [REDACTED]"),
    ("geboren op 12 maart 1985", ["12 maart 1985"], "geboren op [REDACTED]"),
    ("född den 12 mars 1985", ["12 mars 1985"], "född den [REDACTED]"),
    ("urodzony 12 marca 1985 r.", ["12 marca 1985"], "urodzony [REDACTED] r."),
    ("született: 1985. március 12.", ["1985. március 12"], "született: [REDACTED]."),
    ("Ich wurde am 12.03.1985 in Bonn geboren", ["12.03.1985"], "Ich wurde am [REDACTED] in Bonn geboren"),
    ("am 7. Oktober 1969 geboren", ["7. Oktober 1969"], "am [REDACTED] geboren"),
    ("Ik ben op 3 juni 1980 geboren", ["3 juni 1980"], "Ik ben op [REDACTED] geboren"),
    ("doğum tarihi: 12.03.1985", ["12.03.1985"], "doğum tarihi: [REDACTED]"),
]
KEPT = [
    "am 4. Mai 1982 geschlossen",
    "geboren am Montag",
    "1985-03-12",
    "founded on 12 March 1985",
    "born in 1985",
    "stillborn 12/03/1985",
    "born to run 2024",
    "born 12 of us in 1985",
    "nato 2024-2025 budget",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_date_of_birth_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("date_of_birth", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_date_of_birth_stays(check: Callable[..., None], text: str) -> None:
    check("date_of_birth", text, [], text)
