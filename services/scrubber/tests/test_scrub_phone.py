"""Telephone numbers: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("call 555-123-4567", ["555-123-4567"], "call [REDACTED]"),
    ("tel (555) 123-4567 ext 4", ["(555) 123-4567"], "tel [REDACTED] ext 4"),
    ("intl +1 555 123 4567", ["+1 555 123 4567"], "intl [REDACTED]"),
    ("1-800-555-1234", ["1-800-555-1234"], "[REDACTED]"),
    ("555.123.4567", ["555.123.4567"], "[REDACTED]"),
    ("555 123-4567", ["555 123-4567"], "[REDACTED]"),
    ("(555)1234567", ["(555)1234567"], "[REDACTED]"),
    ("555-123-4567x89", ["555-123-4567"], "[REDACTED]x89"),
    ("+15551234567", ["+15551234567"], "[REDACTED]"),
    ("+44 20 7946 0958", ["+44 20 7946 0958"], "[REDACTED]"),
    ("+44 (0)20 7946 0958", ["+44 (0)20 7946 0958"], "[REDACTED]"),
    ("+33 1 23 45 67 89 or +49-30-123456", ["+33 1 23 45 67 89", "+49-30-123456"], "[REDACTED] or [REDACTED]"),
    ("+44.2079460958", ["+44.2079460958"], "[REDACTED]"),
    ("0044 20 7946 0958", ["0044 20 7946 0958"], "[REDACTED]"),
    ("+44 20 7946 0958 4111 1111 1111 1111", ["+44 20 7946 0958"], "[REDACTED] [REDACTED]"),
    ("555-123-4567 555-987-6543", ["555-123-4567", "555-987-6543"], "[REDACTED] [REDACTED]"),
    ("phone 020 7946 0958", ["020 7946 0958"], "phone [REDACTED]"),
    ("Tel.: 030/1234567", ["030/1234567"], "Tel.: [REDACTED]"),
    ("mobile number is 5551234567", ["5551234567"], "mobile number is [REDACTED]"),
    ("call me at 5551234567", ["5551234567"], "call me at [REDACTED]"),
    ("call 021 555 7788", ["021 555 7788"], "call [REDACTED]"),
    ("please ring (01) 555 0199", ["(01) 555 0199"], "please ring [REDACTED]"),
    ("text me at 06 20 555 8812", ["06 20 555 8812"], "text me at [REDACTED]"),
    ("you can reach us on 912 345 999", ["912 345 999"], "you can reach us on [REDACTED]"),
    ("phone number changed to 3555 7788", ["3555 7788"], "phone number changed to [REDACTED]"),
    ("5551234567 (mobile)", ["5551234567"], "[REDACTED] (mobile)"),
    ("phone 5551234567 or 5551234568", ["5551234567", "5551234568"], "phone [REDACTED] or [REDACTED]"),
    ('{"phone":"5551234567"}', ["5551234567"], '{"phone":"[REDACTED]"}'),
    ("５５５－１２３－４５６７", ["５５５－１２３－４５６７"], "[REDACTED]"),
    ("٥٥٥-١٢٣-٤٥٦٧", ["٥٥٥-١٢٣-٤٥٦٧"], "[REDACTED]"),
    ("555\u00a0123\u20114567", ["555\u00a0123\u20114567"], "[REDACTED]"),
    ("555-12\u200b3-4567", ["555-12\u200b3-4567"], "[REDACTED]"),
    ("电话555-123-4567请", ["555-123-4567"], "电话[REDACTED]请"),
    (r"a\n555-123-4567\nb", ["555-123-4567"], r"a\n[REDACTED]\nb"),
    ("call%20555-123-4567", ["555-123-4567"], "call%20[REDACTED]"),
]
KEPT = [
    "order 123-456-7890123",
    "123.4567890",
    "192.168.100.1234",
    "5551234567",
    "020 7946 0958",
    "at 1714558953 and 1714558953123 ms",
    "tool call 5551234567 took 3 ms",
    "phone bill of 2024-01-15",
    "phone order id 1234567890",
    "hotel 12345678",
    "call 1714558953",
    "2024-05-01T10:22:33+00:00",
    "ISBN 978-3-16-148410-0",
    "id 12345678-1234-1234-1234-123456789012",
    "+0123456789012",
    "n+1000000000",
    "12345678.0 + 12345678.0",
    "+12345678.0",
    "+1980-02-29 01:02:03",
    "clause 252.227-7014",
    "released in 2026, v0.21.0",
    "see PR #123456 and issue #789012",
    "phone at 127.168.10.100",
    "rows 100 200 3000 4000",
    "call 12345678 of the tool",
    "text 100 200 300",
    "912 345 999 rows",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_phone_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("phone", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_phone_stays(check: Callable[..., None], text: str) -> None:
    check("phone", text, [], text)
