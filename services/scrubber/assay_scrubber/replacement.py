"""Make replacements of findings, and recognise them."""

import hmac
import re
import unicodedata
from collections.abc import Callable, Iterable

from .family import Family
from .policy import Action, Policy
from .registry import FAMILIES, WITHOUT_RULES
from .taxonomy import Category

HASH_LETTERS = 24
"""Letters a to p, four bits each: 96 bits of HMAC-SHA-256. Without digits, no family matches a hash as a number."""

_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
# Families whose values mean the same with and without separators.
_COMPACT = frozenset({Category.PAYMENT_CARD, Category.GOVERNMENT_ID, Category.FINANCIAL})

Render = Callable[[str], str]


def label(family: str) -> str:
    """Return the label of a family in a text: `[EMAIL]`."""
    return f"[{family.upper()}]"


def hashed(key: bytes, family: Family, text: str) -> str:
    """Return `[EMAIL:...]`, equal for equal values of one family under one key.

    It reveals nothing about the value without the key. Full-width and other compatibility forms count as their plain ones, invisible
    characters are ignored, and case matters only in credentials. For cards, identity numbers, accounts and telephone numbers only letters
    and digits count. Escapes (`%40`) are hashed as they are written.
    """
    value = "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")
    if family.category is not Category.CREDENTIAL:
        value = value.casefold()
    if family.category in _COMPACT or family.name == "phone":
        value = "".join(str(unicodedata.decimal(c, c)) for c in value if c.isalnum())
    digest = hmac.digest(key, f"{family.name}\0{value}".encode("utf-8", "surrogatepass"), "sha256")
    return f"{label(family.name)[:-1]}:{digest.hex()[:HASH_LETTERS].translate(_LETTERS)}]"


def renderers(policy: Policy, families: Iterable[Family]) -> dict[int, Render] | None:
    """Return functions that render findings, by rank; None if each replacement is `policy.replacement`."""
    rows = {family.rank: _renderer(policy, family) for family in families}
    return {rank: row or (lambda _: policy.replacement) for rank, row in rows.items()} if any(rows.values()) else None


def _renderer(policy: Policy, family: Family) -> Render | None:
    action, key = policy.action(family.name), policy.hash_key
    if action is Action.LABEL:
        shown = label(family.name)
        return lambda _: shown
    if action is Action.HASH and key is not None:
        return lambda text: hashed(key, family, text)
    return None


def markers(policy: Policy) -> re.Pattern[str]:
    """Return a pattern for the replacements of this policy, and of others without custom patterns."""
    return re.compile(rf"{re.escape(policy.replacement)}|\[REDACTED\]|{_labels(policy)}")


def _labels(policy: Policy) -> str:
    names = "|".join(
        re.escape(name.upper()) for name in sorted({*FAMILIES, *WITHOUT_RULES, *(f.name for f in policy.custom)})
    )
    return rf"\[(?:{names})(?::[a-p]{{{HASH_LETTERS}}})?\]"


def silencer(policy: Policy) -> Callable[[bytes], bytes]:
    """Return a function that keeps labels and hashes in a projected text from acting as keywords.

    They then have no more effect than `[REDACTED]`, in the same number of bytes.

    `[PHONE]` means that a telephone number was there, not that the next number is one.
    """
    labels = re.compile(_labels(policy).encode("ascii"))
    return lambda raw: labels.sub(lambda match: b"[%b]" % b"N".ljust(len(match.group()) - 2, b"~"), raw)
