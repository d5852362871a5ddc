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
UNAMBIGUOUS = {"_LIST", "_NOT_OPAQUE", "_PROSE", "_NAMES_WITH_DIGITS"}
_MANY = 8


def _nested(tree: Any, depth: int) -> bool:
    for kind, value in tree:
        if kind in (constants.MAX_REPEAT, constants.MIN_REPEAT):
            least, most, inside = value
            varies = most > _MANY and most != least
            if (varies and depth) or _nested(inside, depth + varies):
                return True
        elif kind is constants.POSSESSIVE_REPEAT:
            if _nested(value[2], 0):
                return True
        elif kind is constants.SUBPATTERN:
            if _nested(value[3], depth):
                return True
        elif kind is constants.BRANCH:
            if any(_nested(branch, depth) for branch in value[1]):
                return True
        elif (kind is constants.ATOMIC_GROUP and _nested(value, 0)) or (
            kind in (constants.ASSERT, constants.ASSERT_NOT) and _nested(value[1], 0)
        ):
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
        if not module.name.endswith(("__main__", "ner", "vendor_keys")):
            for name, value in vars(importlib.import_module(module.name)).items():
                for pattern in _patterns(value):
                    named.setdefault(pattern.pattern, name)
    assert len(named) > 500
    nested = {name for pattern, name in named.items() if _nested(parser.parse(pattern, 0), 0)}
    assert nested == UNAMBIGUOUS


def test_the_check_tells_what_hung_it() -> None:
    assert _nested(parser.parse(rb"(?!(?:[A-Z]?[a-z]{2,})+$)[A-Za-z]+"), 0)
    assert not _nested(parser.parse(rb"(?!(?:[A-Z]?[a-z]{2,}+)++$)[A-Za-z]++"), 0)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "value", ["a" * 60 + "!", "Abcdef" * 20 + "_", "ab1" * 40 + "!", "a-" + "a1b2" * 30 + "!", "x" * 500]
)
@pytest.mark.parametrize(
    "before", ["password=", "пароль: ", "Authorization: ", "Cookie: sid=", "token: '", '"password": "']
)
def test_no_value_hangs_it(value: str, before: str) -> None:
    Scrubber().scrub(before + value)
