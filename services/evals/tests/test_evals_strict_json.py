"""Texts that a program could read and no other could read again are refused, without being quoted."""

import json

import pytest

from assay_evals.strict_json import JsonError, JsonSyntaxError, loads


@pytest.mark.parametrize("value", [None, {"a": [1, -2.5, "\u2028é"]}, 2**64 - 1, -(2**63), 1e300])
def test_what_every_program_can_hold_is_read_as_it_is(value: object) -> None:
    assert loads(json.dumps(value)) == value


def test_both_halves_of_a_character_are_one() -> None:
    assert loads('"\\ud83d\\ude00"') == "😀"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1e999}', "too large"),
        ('{"a": 18446744073709551616}', "too large"),
        ('{"a": -9223372036854775809}', "too large"),
        ("1" + "0" * 5_000, "too large"),
        ("[" * 100_000, "nested too deeply"),
        ('{"secret": "\\ud800"}', "lone surrogate"),
    ],
)
def test_what_not_every_program_can_hold_is_refused(text: str, words: str) -> None:
    with pytest.raises(JsonError, match=words) as found:
        loads(text)
    assert "secret" not in str(found.value)


@pytest.mark.parametrize("text", ["", "{]", '{"secret": }', "[1] secret"])
def test_what_is_not_json_at_all_is_told_apart(text: str) -> None:
    with pytest.raises(JsonSyntaxError, match="not JSON") as found:
        loads(text)
    assert "secret" not in str(found.value)
