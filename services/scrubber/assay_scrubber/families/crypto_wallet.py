"""Match addresses of crypto wallets by their checksums: base58check, bech32 and bech32m, and EIP-55."""

import hashlib
import re

from assay_scrubber.family import Family, LongWords, View, WordRule
from assay_scrubber.keccak import keccak_256
from assay_scrubber.taxonomy import Category

_BASE58_DIGITS = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE58_VALUE = {digit: value for value, digit in enumerate(_BASE58_DIGITS)}
# Version bytes: Bitcoin, Litecoin, Dogecoin, Tron, Dash, Zcash (the first of two bytes), Bitcoin's test net.
_VERSIONS = frozenset((0x00, 0x05, 0x30, 0x32, 0x1E, 0x16, 0x41, 0x4C, 0x10, 0x1C, 0x6F, 0xC4))
_BASE58 = re.compile(rb"[1-9A-HJ-NP-Za-km-z]{25,36}(?![0-9A-Za-z_])")
_BECH32 = re.compile(
    rb"(?:(?:bc|tb|ltc|addr|stake|cosmos|osmo|nano|grs|vtc)1[02-9ac-hj-np-z]{11,108}"
    rb"|(?:BC|TB|LTC)1[02-9AC-HJ-NP-Z]{11,108})(?![0-9A-Za-z_])"
)
_BECH32_VALUE = {digit: value for value, digit in enumerate(b"qpzry9x8gf2tvdw0s3jn54khce6mua7l")}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_CONSTANTS = (1, 0x2BC830A3)  # BIP 173, BIP 350
_EIP55_COST, _BECH32_COST = 600, 3
_ETHEREUM = re.compile(rb"0x([0-9a-fA-F]{40})(?![0-9A-Za-z_])")


def base58check(written: bytes) -> bytes | None:
    """Return the payload with its version byte; None if the checksum is wrong."""
    number = 0
    for digit in written:
        number = number * 58 + _BASE58_VALUE[digit]
    zeros = len(written) - len(written.lstrip(b"1"))
    decoded = bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")
    payload, checksum = decoded[:-4], decoded[-4:]
    right = hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    return payload if checksum == right else None


def bech32(written: bytes) -> bool:
    """Check the checksum of BIP 173 or BIP 350 over an address in lower case."""
    prefix, _, data = written.rpartition(b"1")
    values = [c >> 5 for c in prefix] + [0] + [c & 31 for c in prefix] + [_BECH32_VALUE[c] for c in data]
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_GENERATOR):
            if top >> bit & 1:
                check ^= generator
    return check in _BECH32_CONSTANTS


def eip55(digits: bytes) -> bool:
    """Return whether the case of forty hex digits matches their hash.

    Digits in one case only carry no checksum.
    """
    low = digits.lower()
    if digits in (low, digits.upper()):
        return True
    hashed = keccak_256(low).hex()
    return all(c < 0x3A or (c < 0x60) == (h >= "8") for c, h in zip(digits, hashed, strict=False))


def _base58(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if view.raw[match.start() - 1 : match.start()] == b"." and match.start():
        return None  # part of a dotted name
    payload = base58check(match.group())
    return match.span() if payload and payload[0] in _VERSIONS and len(payload) in (21, 22) else None


def _bech32(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return match.span() if not view.afford(_BECH32_COST) or bech32(match.group().lower()) else None


def _ethereum(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    digits = match.group(1)
    if digits.strip(b"0") == b"" or len(set(digits.lower())) < 6:  # masks and the burn address
        return None
    if digits in (digits.lower(), digits.upper()) or not view.afford(_EIP55_COST):
        return match.span()
    return match.span() if eip55(digits) else None


FAMILY = Family(
    name="crypto_wallet",
    category=Category.ONLINE_IDENTIFIER,
    rank=65,
    gate=LongWords(),
    rules=(
        WordRule(_BASE58, _base58, anchored=True),
        WordRule(_BECH32, _bech32, anchored=True),
        WordRule(_ETHEREUM, _ethereum, anchored=True),
    ),
    description="Wallet addresses with a checksum: Bitcoin and its kin, Tron, Cardano, Cosmos, Ethereum and its kin.",
    examples=(
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    ),
    counterexamples=("addresses without a checksum: Solana, Monero", "0x and other than 40 hex digits", "hashes"),
)
