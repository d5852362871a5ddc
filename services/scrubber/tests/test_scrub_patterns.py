"""No pattern of the scrubber nests repeats whose matches can be cut in several ways: a value of thirty letters would hang it."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import assay_scrubber
from assay_scrubber.engine import Scrubber
from assay_scrubber.family import Rule

#: Nested, but each repeat begins with a character that the one inside cannot match: there is one way to cut it.
UNAMBIGUOUS = {
    "secrets.assigned._LIST", "secrets.headers._NOT_OPAQUE", "secrets.values._PROSE", "secrets.values._NAMES_WITH_DIGITS",
}  # fmt: skip
_MANY = 8
_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT)
#: What is in these is never cut again by what stands round it.
_ALONE = (constants.POSSESSIVE_REPEAT, constants.ATOMIC_GROUP, constants.ASSERT, constants.ASSERT_NOT)


def _inside(value: Any) -> Iterator[Any]:
    """The patterns that a node of a pattern is made of."""
    if isinstance(value, parser.SubPattern):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _inside(part)


def _nested(pattern: Any, repeats: int = 0) -> bool:
    """Whether a repeat of many stands in another; `repeats`: those that `pattern` stands in."""
    for kind, value in pattern:
        varies = kind in _REPEATS and value[1] > _MANY and value[1] != value[0]
        depth = 0 if kind in _ALONE else repeats + varies
        if (varies and repeats) or any(_nested(inside, depth) for inside in _inside(value)):
            return True
    return False


def _patterns(value: Any, deep: int = 0) -> Iterator[re.Pattern[bytes]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Rule):
        yield value.pattern
    elif isinstance(value, tuple | list | dict) and deep < 4:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _patterns(each, deep + 1)


def test_no_pattern_can_be_cut_in_many_ways() -> None:
    named: dict[bytes, str] = {}  # the pattern itself stands before the tables that hold it
    for module in pkgutil.walk_packages(assay_scrubber.__path__, "assay_scrubber."):
        if not module.name.endswith(("__main__", "vendor_keys")):
            for name, value in vars(importlib.import_module(module.name)).items():
                for pattern in _patterns(value):
                    named.setdefault(pattern.pattern, f"{module.name.removeprefix('assay_scrubber.')}.{name}")
    assert len(named) > 500
    nested = {name for pattern, name in named.items() if _nested(parser.parse(pattern))}
    assert nested == UNAMBIGUOUS


def test_the_check_tells_what_hung_it() -> None:
    assert _nested(parser.parse(rb"(?!(?:[A-Z]?[a-z]{2,})+$)[A-Za-z]+"))
    assert not _nested(parser.parse(rb"(?!(?:[A-Z]?[a-z]{2,}+)++$)[A-Za-z]++"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "value", ["a" * 60 + "!", "Abcdef" * 20 + "_", "ab1" * 40 + "!", "a-" + "a1b2" * 30 + "!", "x" * 500]
)
@pytest.mark.parametrize(
    "before", ["password=", "пароль: ", "Authorization: ", "Cookie: sid=", "token: '", '"password": "']
)
def test_no_value_hangs_it(value: str, before: str) -> None:
    Scrubber().scrub(before + value)
