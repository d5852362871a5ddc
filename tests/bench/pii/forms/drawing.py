"""Drawing of characters, days and patterns from a generator with a seed."""

import random
import string
from collections.abc import Callable
from datetime import date, timedelta

Maker = Callable[[random.Random], str]
ALNUM = string.ascii_letters + string.digits


def chars(rng: random.Random, alphabet: str, count: int) -> str:
    """`count` characters of the alphabet."""
    return "".join(rng.choice(alphabet) for _ in range(count))


def digits(rng: random.Random, count: int) -> str:
    """`count` digits."""
    return chars(rng, string.digits, count)


def day(rng: random.Random) -> date:
    """A birthday of the twentieth century."""
    return date(1945, 1, 1) + timedelta(days=rng.randrange(20_000))


def luhn(body: str) -> str:
    """The digits with the check digit of ISO/IEC 7812-1 after them."""
    total = sum(sum(divmod(int(digit) * (2 - place % 2), 10)) for place, digit in enumerate(reversed(body)))
    return f"{body}{-total % 10}"


def drawn(rng: random.Random, pattern: str) -> str:
    """The pattern with `#` as a digit, `~` as a digit but 0 and 1, `@` as a capital, and %-codes as parts of one birthday."""
    signs = {"#": string.digits, "~": "23456789", "@": string.ascii_uppercase}
    text = "".join(rng.choice(signs[sign]) if sign in signs else sign for sign in pattern)
    return day(rng).strftime(text) if "%" in text else text
