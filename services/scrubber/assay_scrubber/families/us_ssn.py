"""Match US social security numbers (and the taxpayer numbers of the same format)."""

import re

from assay_scrubber.family import Digits, Family, RunRule, View
from assay_scrubber.taxonomy import Category

_CONTEXT = re.compile(rb"ssn|social|soc\.? ?sec|s\.s\.n|\bss ?#|tax(?:payer)?[ _\-]?id|itin")

_DASHED = re.compile(
    rb"(?<![0-9A-Za-z\x80])(?<![0-9][\-.])[0-9]{3}-[0-9]{2}-[0-9]{4}(?![0-9A-Za-z\x80]|[\-.][0-9])",
)
_LOOSE = re.compile(
    rb"(?<![0-9])([0-9]{3})(?: ?[\-./] ?| )?([0-9]{2})(?: ?[\-./] ?| )?([0-9]{4})(?![0-9])",
)


def _dashed(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    return match.span()


_APART = re.compile(
    rb"(?<![0-9A-Za-z\x80])(?<![0-9][ .\-,])([0-9]{3})\.([0-9]{2})\.([0-9]{4})(?![0-9A-Za-z\x80]|[ .,\-][0-9])"
)


def _apart(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    area, group, serial = match.groups()
    if area in (b"000", b"666") or area[:1] == b"9" or group == b"00" or serial == b"0000":
        return None
    return match.span()


def _in_context(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    area, group, serial = match.groups()
    if area in (b"000", b"666") or group == b"00" or serial == b"0000":
        return None
    return match.span() if _CONTEXT.search(view.before(match.start())) else None


FAMILY = Family(
    name="us_ssn",
    category=Category.GOVERNMENT_ID,
    rank=70,
    gate=Digits(9),
    rules=(
        RunRule(_DASHED, _dashed, shape=b"999-99-9999"),
        RunRule(_APART, _apart, most=9, shape=b"999-99-9999", fallback=True),
        RunRule(_LOOSE, _in_context, near=_CONTEXT.pattern, fallback=True),
    ),
    description="US social security numbers, and taxpayer numbers of the same format.",
    examples=("123-45-6789", "SSN 123 45 6789", "tax id 123456789"),
    counterexamples=("123456789", "123-45-6789-01"),
)
