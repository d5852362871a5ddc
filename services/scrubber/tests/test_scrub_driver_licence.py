"""Driving licence numbers: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("driver's license D1234567", ["D1234567"], "driver's license [REDACTED]"),
    ("Driving licence number MORGA657054SM9IJ!", ["MORGA657054SM9IJ"], "Driving licence number [REDACTED]!"),
    ('{"driver_license": "D123-4567-8901"}', ["D123-4567-8901"], '{"driver_license": "[REDACTED]"}'),
    ("driver license no: 123456789", ["123456789"], "driver license no: [REDACTED]"),
    ("permis de conduire n° 13AA00002", ["13AA00002"], "permis de conduire n° [REDACTED]"),
    ("patente di guida: U1B23456C7", ["U1B23456C7"], "patente di guida: [REDACTED]"),
    ("Führerschein: B072RRE2I55", ["B072RRE2I55"], "Führerschein: [REDACTED]"),
    ("водительское удостоверение 77 12 123456", ["77 12 123456"], "водительское удостоверение [REDACTED]"),
    ("运転免許 1, 運転免許証 123456789012", ["123456789012"], "运転免許 1, 運転免許証 [REDACTED]"),
    ("운전면허 11-12-123456-01", ["11-12-123456-01"], "운전면허 [REDACTED]"),
    ("rijbewijsnummer 1234567890", ["1234567890"], "rijbewijsnummer [REDACTED]"),
    ("DL# D400-1234-5678 expired", ["D400-1234-5678"], "DL# [REDACTED] expired"),
    ("dl no: K1234567", ["K1234567"], "dl no: [REDACTED]"),
    ("CA DL D1234567", ["D1234567"], "CA DL [REDACTED]"),
    ("driving licence no. MH12 20110012345", ["MH12 20110012345"], "driving licence no. [REDACTED]"),
    ("prawo jazdy nr 12345/67/8901", ["12345/67/8901"], "prawo jazdy nr [REDACTED]"),
]
KEPT = [
    "D1234567",
    "driver version 535.104",
    "licensed in 2024",
    "license 20240101 of this software",
    "drivers license required",
    "DL 1234567 bytes",
    "dl number of layers 12",
    "DL 2024 report",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_driver_licence_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("driver_licence", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_driver_licence_stays(check: Callable[..., None], text: str) -> None:
    check("driver_licence", text, [], text)
