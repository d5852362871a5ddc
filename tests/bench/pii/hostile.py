"""Texts made to be slow: repetitions that keep every gate open. The later ones were found by `make fuzz SUITE=scrub`."""

import random
import re

UNITS = (
    "a.a.", "@", "eyJ", "aaaaaaaa.", "1-", "5105 ", "4111 1111 1111 1112 ", "call 5551234567, ", "+44 20 7946 0958 ",
    "1234567 a ", "1.1.1.", "%40", "\\", "://", "bearer ", "\u200b", "я", "４１１１ ", ".", "1.1.1.1 ", ":::", "a:", "AA99",
    "DE89 3704 ", "0x1", "-----BEGIN", "api_key=", "key: 'a", "born on 1/1/", "account 1234 ", "passport A1 ", "00:1b:",
    "4111 1111 1111 1112 a@b.co\u00a0\u200b", ".:::4111 1111 1111 1112 a@b.co::\u200b",
    "a@b.co\\n\\\\4111 1111 1111 1112 \U0001f600**",
    "4111 1111 1111 1112 ://&#64;\u200b+44 20 7946 0958 \\n@", "born dot dot @phone \u200b\u200b5105 5105 5105 5105 5105 5105 ",
    "%\U0001f600\u200b\u200b5105 5105 5105 00:1b:44:11:3a:b7+44 20 7946 0958 account ",
    "Jan 1, 1990\\@\u200bprivate-lines5105 123123123\r\n",
    "-----BEGIN\"token '123-45-6789" + "eyJhbGciOi" * 40,
)  # fmt: skip
OPEN_ALL_GATES = (
    "@ :// eyJ bearer phone ssn 1234567 + 00 key secret token password -----BEGIN passport born dob account routing iban "
    "AA99 9.9 a:b ::1 0x bc1 "
)


def text(unit: str, size: int) -> str:
    """About `size` characters: openers of gates, then the unit over and over."""
    return OPEN_ALL_GATES + (unit * (size // len(unit) + 1))[:size]


def varied(unit: str, size: int) -> str:
    """`text`, with every digit but the first of a number drawn at random: what has been seen before is of no use here."""
    rng = random.Random(unit)
    return re.sub(r"(?<=[0-9])[0-9]", lambda _: rng.choice("0123456789"), text(unit, size))
