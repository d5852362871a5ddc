"""Check digits of identity and tax numbers, by country.

From python-stdnum, and our own where its rule is narrower than actual use. A module is loaded with the first candidate of its country.
Checks are named after its modules; ours begin with `own.`.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from importlib import import_module
from typing import Any

_MARKS = str.maketrans("", "", " .-/+")
# First two digits of the place: the provinces (GB/T 2260), including former ones, and the special regions.
_CHINESE_PROVINCES = frozenset(
    (*range(11, 16), *range(21, 24), *range(31, 38), *range(41, 47), *range(50, 55), *range(61, 66), 71, 81, 82, 83)
)
_CHINESE_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CHINESE_CHECKS = "10X98765432"
_KOREAN_WEIGHTS = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
_KOREAN_CENTURIES = {"9": 1800, "0": 1800, "1": 1900, "2": 1900, "5": 1900, "6": 1900}


def _is_date(year: int, month: str, day: str) -> bool:
    try:
        date(year, int(month), int(day))
    except ValueError:
        return False
    return True


def chinese(number: str) -> bool:
    """Check a resident identity number (GB 11643): province, date of birth, ISO 7064 mod 11-2.

    Districts change too often for a table.
    """
    number = number.translate(_MARKS).upper()
    if not re.fullmatch(r"[1-8][0-9]{5}(?:1[89]|20)[0-9]{9}[0-9X]", number):
        return False
    if int(number[:2]) not in _CHINESE_PROVINCES or not _is_date(int(number[6:10]), number[10:12], number[12:14]):
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_CHINESE_WEIGHTS, number[:17], strict=True))
    return _CHINESE_CHECKS[total % 11] == number[17]


def korean(number: str) -> bool:
    """Check a resident registration number: date of birth, century.

    Numbers issued since October 2020 have no check digit.
    """
    number = number.translate(_MARKS)
    if not re.fullmatch(r"[0-9]{13}", number):
        return False
    return _is_date(_KOREAN_CENTURIES.get(number[6], 2000) + int(number[:2]), number[2:4], number[4:6])


def korean_checked(number: str) -> bool:
    """Check as `korean` does, and also the check digit of numbers issued before October 2020."""
    if not korean(number):
        return False
    digits = number.translate(_MARKS)
    total = sum(weight * int(digit) for weight, digit in zip(_KOREAN_WEIGHTS, digits[:12], strict=True))
    return (11 - total % 11) % 10 == int(digits[12])


def finnish(number: str) -> bool:
    """Check a personal identity code, with the century marks of 2023 and with temporary numbers."""
    return bool(_module("fi.hetu").is_valid(number, allow_temporary=True))


def nhs(number: str) -> bool:
    """Check a UK NHS number: modulus 11. Ten equal digits pass the check digit but are not numbers."""
    return len(set(number.translate(_MARKS))) > 1 and bool(_module("gb.nhs").is_valid(number))


def japanese(number: str) -> bool:
    """Check an individual number ("My Number"): twelve digits, modulus 11."""
    number = number.translate(_MARKS)
    if not re.fullmatch(r"[0-9]{12}", number):
        return False
    total = sum(
        int(digit) * (place + 1 if place <= 6 else place - 5) for place, digit in enumerate(reversed(number[:11]), 1)
    )
    return (11 - total % 11 if total % 11 > 1 else 0) == int(number[11])


OWN: Mapping[str, Callable[[str], bool]] = {
    "own.chinese": chinese,
    "own.korean": korean,
    "own.korean_checked": korean_checked,
    "own.finnish": finnish,
    "own.nhs": nhs,
    "own.japanese": japanese,
}


@lru_cache(maxsize=256)
def _module(name: str) -> Any:
    return import_module("stdnum." + name)


def valid(name: str, number: bytes) -> bool:
    """Return the verdict of the check called `name` on an ASCII number."""
    if not number.isascii():
        return False
    own, written = OWN.get(name), number.decode("ascii")
    return own(written) if own is not None else bool(_module(name).is_valid(written))
