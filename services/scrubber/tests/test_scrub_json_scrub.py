"""JSON documents: numbers, keys as context, depth, shapes."""

from typing import Any

import pytest

from assay_scrubber.engine import Scrubber
from assay_scrubber.json_scrub import MAX_DEPTH, NestingError, hint_of


@pytest.mark.parametrize(
    ("value", "scrubbed", "counts"),
    [
        ({"a": "ann@example.com"}, {"a": "[REDACTED]"}, {"email": 1}),
        ([["x", {"b": ["call 555-123-4567"]}]], [["x", {"b": ["call [REDACTED]"]}]], {"phone": 1}),
        ("ann@example.com, bob@example.com", "[REDACTED], [REDACTED]", {"email": 2}),
        ({"card": 4111111111111111}, {"card": "[REDACTED]"}, {"payment_card": 1}),
        ([4111111111111111.0], ["[REDACTED]"], {"payment_card": 1}),
        ({"phone": 5551234567}, {"phone": "[REDACTED]"}, {"phone": 1}),
        ({"customerPhone": "020 7946 0958"}, {"customerPhone": "[REDACTED]"}, {"phone": 1}),
        ({"phone_numbers": ["020 7946 0958"]}, {"phone_numbers": ["[REDACTED]"]}, {"phone": 1}),
        ({"ssn": 123456789}, {"ssn": "[REDACTED]"}, {"us_ssn": 1}),
        ({"ann@example.com": 1}, {"ann@example.com": 1}, {}),
        ({"at": 1714558953123, "n": 5551234567, "x": 0.25, "y": True, "z": None}, None, {}),
        ({"big": 10**400, "inf": float("inf"), "neg": -4111111111}, None, {}),
        ({"neg": -4111111111111111}, {"neg": "-[REDACTED]"}, {"payment_card": 1}),
        ({"card": ["4111", "1111", "1111", "1111"]}, {"card": ["[REDACTED]"] * 4}, {"payment_card": 1}),
        ({"card": [4111, 1111, 1111, 1112]}, None, {}),
        (
            {"ssn": {"area": "123", "group": 45, "serial": 6789}},
            {"ssn": dict.fromkeys(("area", "group", "serial"), "[REDACTED]")},
            {"us_ssn": 1},
        ),
        (
            {"id": 7, "card_part1": "4111", "card_part2": 1111, "card_part3": "1111", "card_part4": "1111"},
            {"id": 7, **{f"card_part{n}": "[REDACTED]" for n in range(1, 5)}},
            {"payment_card": 1},
        ),
        ({"part1": "4111", "part2": "1111", "part3": "1111", "part4": "1111"}, None, {}),
        ({}, None, {}),
        ([], None, {}),
    ],
)
def test_values_are_scrubbed_and_keys_stay(
    scrubber: Scrubber, value: Any, scrubbed: Any, counts: dict[str, int]
) -> None:
    result = scrubber.scrub_json(value)
    assert result.value == (value if scrubbed is None else scrubbed)
    assert result.counts == counts


def test_the_input_is_not_changed(scrubber: Scrubber) -> None:
    value = {"a": [{"b": "ann@example.com"}]}
    scrubber.scrub_json(value)
    assert value == {"a": [{"b": "ann@example.com"}]}


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"k": inner}])
def test_nesting_up_to_the_limit_is_scrubbed_and_beyond_it_refused(scrubber: Scrubber, wrap: Any) -> None:
    value: Any = "ann@example.com"
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    assert scrubber.scrub_json(value).counts == {"email": 1}
    with pytest.raises(NestingError, match=str(MAX_DEPTH)):
        scrubber.scrub_json(wrap(value))


def test_a_hundred_thousand_levels_are_refused_without_recursion(scrubber: Scrubber) -> None:
    value: Any = "ann@example.com"
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NestingError):
        scrubber.scrub_json(value)
    while isinstance(value, list):  # taking it apart by hand: freeing it in one go would recurse
        value = value.pop()


def test_what_is_not_json_is_refused_without_showing_it(scrubber: Scrubber) -> None:
    with pytest.raises(TypeError, match="not a JSON value: bytes") as raised:
        scrubber.scrub_json({"a": b"ann@example.com"})
    assert "ann" not in str(raised.value)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("phone", b"phone "),
        ("customerPhone_no", b"customer phone no "),
        ("user.tel", b"user tel "),
        ("x" * 99, b"x" * 48 + b" "),
    ],
)
def test_a_key_is_read_as_words(key: str, hint: bytes) -> None:
    assert hint_of(key) == hint


@pytest.mark.parametrize("value", [{"access_token": 1732500000}, {"refresh_token": 1732500000123}, {"pw": "120px"}])
def test_the_time_when_a_token_expires_and_a_width_stay(scrubber: Scrubber, value: dict[str, object]) -> None:
    assert scrubber.scrub_json(value).value == value


@pytest.mark.parametrize(
    "value",
    [
        {"Name": "/prod/db/password", "Type": "SecureString", "Value": "mango77"},
        {"OptionName": "DB_PASSWORD", "Value": "mango77"},
        {"k": "password", "v": "mango77"},
        {"unlock_code": "mango77"},
        {"two_factor_code": 739184},
        {"secret_answer": "mango"},
    ],
)
def test_the_last_value_under_a_name_of_a_secret_goes(scrubber: Scrubber, value: dict[str, object]) -> None:
    scrubbed = scrubber.scrub_json(value).value
    *others, last = value
    assert scrubbed[last] == "[REDACTED]"
    assert {key: scrubbed[key] for key in others} == {key: value[key] for key in others}
