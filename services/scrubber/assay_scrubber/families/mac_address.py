"""Match hardware addresses (EUI-48, EUI-64).

Six or eight pairs with colons or hyphens, or three groups of four with dots.
"""

import re

from assay_scrubber.family import Family, Seen, ShapeRule, Shapes, View
from assay_scrubber.taxonomy import Category

_X = rb"[0-9A-Fa-f]"
_COLONS = re.compile(rb":(?<=%b{2}:)%b{2}(?::%b{2}){4}(?::%b{2}:%b{2})?+(?![0-9A-Za-z:])" % (_X, _X, _X, _X, _X))
_HYPHENS = re.compile(rb"-(?<=%b{2}-)%b{2}(?:-%b{2}){4}(?:-%b{2}-%b{2})?+(?![0-9A-Za-z\-])" % (_X, _X, _X, _X, _X))
_DOTS = re.compile(rb"\.(?<=[A9]{4}\.)[A9]{4}\.[A9]{4}(?![A9]|\.[A9])")  # runs on the text's shape
_NO_LEFT = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:-._\x80"
_NOT_HEX_LETTERS = bytes(b for b in range(256) if b not in b"abcdefABCDEF")
_ANNOUNCED = re.compile(
    rb"(?<![a-z])(?:mac|macaddr|hwaddr|hwaddress|ether|hardware address|bssid|lladdr|physical address|ethernet)(?![a-z])[^\n]{0,16}$"
)
_TIME = re.compile(rb"(?<![a-z])(?:time|timecode|timestamp|clock|tc|smpte)[ :=]{1,3}$")
_ALPHABET = b"0123456789abcdef:-."


def _address(view: View, match: re.Match[bytes], size: int, *, letter: bool) -> tuple[int, int] | None:
    start, end = match.start() - size, match.end()
    if start < 0 or (start and view.raw[start - 1] in _NO_LEFT) or view.raw[max(0, start - 2) : start] == b"[*":
        return None
    if not letter and _TIME.search(view.low, max(0, start - 16), start):
        return None  # `time 12:34:56:78:9a:bc`
    written = view.low[start:end]
    if written.translate(None, _ALPHABET):
        return None
    if letter and not written.translate(None, _NOT_HEX_LETTERS) and not _ANNOUNCED.search(view.before(start)):
        return None
    digits = written.translate(None, b":-.")
    return None if digits.strip(b"0") == b"" or digits.strip(b"f") == b"" else (start, end)


def _pairs(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _address(view, match, 2, letter=False)


def _hyphened(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _address(view, match, 2, letter=True)  # 01-02-03-04-05-06 is a list of numbers


def _fours(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    return _address(view, match, 4, letter=True)


FAMILY = Family(
    name="mac_address",
    category=Category.ONLINE_IDENTIFIER,
    rank=74,
    gate=Seen(rb"(?::[A9]{2}){4}:"),
    rules=(ShapeRule(_COLONS, _pairs),),
    description="Hardware addresses of network devices: EUI-48 and EUI-64 with colons, hyphens or dots.",
    examples=("00:1A:2B:3C:4D:5E", "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e"),
    counterexamples=("ff:ff:ff:ff:ff:ff", "12:34:56", "fingerprints of more pairs", "001a2b3c4d5e"),
    more=(
        (Seen(rb"(?:-[A9]{2}){4}-"), (ShapeRule(_HYPHENS, _hyphened),)),
        (Shapes(rb"[A9]{4}\.[A9]{4}\.[A9]{4}"), (ShapeRule(_DOTS, _fours),)),
    ),
)
