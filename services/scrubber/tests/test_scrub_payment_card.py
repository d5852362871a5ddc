"""Payment cards: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("card 4111 1111 1111 1111 expires 12/26", ["4111 1111 1111 1111"], "card [REDACTED] expires 12/26"),
    ("card 4111 1111 1111 1111 12/26", ["4111 1111 1111 1111"], "card [REDACTED] 12/26"),
    ("4111111111111111 123", ["4111111111111111"], "[REDACTED] 123"),
    ("12/26 4111111111111111", ["4111111111111111"], "12/26 [REDACTED]"),
    ("4111-1111-1111-1111", ["4111-1111-1111-1111"], "[REDACTED]"),
    ("4111.1111.1111.1111", ["4111.1111.1111.1111"], "[REDACTED]"),
    ("4111  1111  1111  1111", ["4111  1111  1111  1111"], "[REDACTED]"),
    ("3782 822463 10005", ["3782 822463 10005"], "[REDACTED]"),
    ("378282246310005, 6011111111111117", ["378282246310005", "6011111111111117"], "[REDACTED], [REDACTED]"),
    ("5555555555554444 2223003122003222", ["5555555555554444", "2223003122003222"], "[REDACTED] [REDACTED]"),
    ("5234 4111 1111 1111 1111", ["4111 1111 1111 1111"], "5234 [REDACTED]"),
    ("4111 1111 1111 1111 555-123-4567", ["4111 1111 1111 1111"], "[REDACTED] [REDACTED]"),
    ("41 11 1111 1111 1111", ["41 11 1111 1111 1111"], "[REDACTED]"),
    ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", ["4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"], "[REDACTED]"),
    ("card_4111111111111111", ["4111111111111111"], "card_[REDACTED]"),
    ("４１１１ １１１１ １１１１ １１１１", ["４１１１ １１１１ １１１１ １１１１"], "[REDACTED]"),
    ("4111\u00a01111\u00a01111\u00a01111", ["4111\u00a01111\u00a01111\u00a01111"], "[REDACTED]"),
    ("41\u200b11111111111111", ["41\u200b11111111111111"], "[REDACTED]"),
    ("卡4111111111111111。", ["4111111111111111"], "卡[REDACTED]。"),
    ("pan=4111%201111%201111%201111", ["4111%201111%201111%201111"], "pan=[REDACTED]"),
]
KEPT = [
    "order id 1234567890123456",
    "4111 1111 1111 1112",
    "1000 2000 3000 4000",
    "0000000000000000",
    "1714558953123",
    "0.4111111111111111",
    "$4111111111111111",
    "a4111111111111111",
    "4111111111111111b",
    "41111111111111114111111111111111",
    "IMEI 356938035643809",
    "ISBN 9783161484100",
    "id 58067230-8059-4098-a3bc-e6b5b15ef290",
    "DE88 3704 0044 0532 0130 00",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_payment_card_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("payment_card", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_payment_card_stays(check: Callable[..., None], text: str) -> None:
    check("payment_card", text, [], text)
