"""US social security numbers: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("ssn is 123-45-6789 on file", ["123-45-6789"], "ssn is [REDACTED] on file"),
    ("123-45-6789", ["123-45-6789"], "[REDACTED]"),
    ("000-00-0000", ["000-00-0000"], "[REDACTED]"),
    ("id_123-45-6789_x", ["123-45-6789"], "id_[REDACTED]_x"),
    ("12 123-45-6789 3", ["123-45-6789"], "12 [REDACTED] 3"),
    ("SSN 123 45 6789", ["123 45 6789"], "SSN [REDACTED]"),
    ("social security number: 123456789", ["123456789"], "social security number: [REDACTED]"),
    ("ssn123.45.6789", ["123.45.6789"], "ssn[REDACTED]"),
    ("tax id 900-70-1234", ["900-70-1234"], "tax id [REDACTED]"),
    ("１２３－４５－６７８９", ["１２３－４５－６７８９"], "[REDACTED]"),
    ("123–45–6789", ["123–45–6789"], "[REDACTED]"),
    ("123-4\u200b5-6789", ["123-4\u200b5-6789"], "[REDACTED]"),
    ('{"ssn": "123456789"}', ["123456789"], '{"ssn": "[REDACTED]"}'),
    ("123.45.6789", ["123.45.6789"], "[REDACTED]"),
    ("SS# 123 45 6789", ["123 45 6789"], "SS# [REDACTED]"),
]
KEPT = [
    "123456789",
    "123 45 6789",
    "part 1123-45-6789",
    "123-45-67890",
    "123-45-6789-0001",
    "10-123-45-6789",
    "ssn 000000000",
    "X123-45-6789",
    "987.65.4321",
    "123.45.6789.1",
    "000 12 3456",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_us_ssn_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("us_ssn", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_us_ssn_stays(check: Callable[..., None], text: str) -> None:
    check("us_ssn", text, [], text)
