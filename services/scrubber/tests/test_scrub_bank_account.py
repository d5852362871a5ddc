"""Account numbers of one country: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("routing number 021000021", ["021000021"], "routing number [REDACTED]"),
    ("ABA: 0210-0002-1", ["0210-0002-1"], "ABA: [REDACTED]"),
    ("bank account 000123456789", ["000123456789"], "bank account [REDACTED]"),
    ("account number: 12345678", ["12345678"], "account number: [REDACTED]"),
    ("sort code 12-34-56, acct no 12345678", ["12-34-56", "12345678"], "sort code [REDACTED], acct no [REDACTED]"),
    ('{"account_number": "12345678"}', ["12345678"], '{"account_number": "[REDACTED]"}'),
]
KEPT = [
    "021000021",
    "routing number 021000022",
    "account 12345678",
    "database 123456789",
    "sort 12-34-56",
    "routing table of 123456789 rows",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_bank_account_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("bank_account", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_bank_account_stays(check: Callable[..., None], text: str) -> None:
    check("bank_account", text, [], text)
