"""Crypto wallets: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("to 1BoatSLRHtKNngkdXEeobR76b53LETtpyT now", ["1BoatSLRHtKNngkdXEeobR76b53LETtpyT"], "to [REDACTED] now"),
    ("3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", ["3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"], "[REDACTED]"),
    (
        "bitcoin:bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4?amount=1",
        ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
        "bitcoin:[REDACTED]?amount=1",
    ),
    (
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        ["bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"],
        "[REDACTED]",
    ),
    ("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", ["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"], "[REDACTED]"),
    ("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", ["0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"], "[REDACTED]"),
]
KEPT = [
    "1BoatSLRHtKNngkdXEeobR76b53LETtpyU",
    "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD",
    "0x0000000000000000000000000000000000000000",
    "5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
    "0xffffffffffffffffffffffffffffffffffffffff",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_crypto_wallet_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("crypto_wallet", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_crypto_wallet_stays(check: Callable[..., None], text: str) -> None:
    check("crypto_wallet", text, [], text)
