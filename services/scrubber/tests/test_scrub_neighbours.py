"""Values in a JSON document that their neighbours announce, and those that only look so."""

from typing import Any

import pytest

from assay_scrubber.engine import Scrubber

GONE = "[REDACTED]"
TOKEN = "q8VX7RM4vVdANDkyM2E0ZGY"
FOUND = [
    ({"name": "DB_PASSWORD", "value": "sunflower"}, {"name": "DB_PASSWORD", "value": GONE}),
    ({"key": "api_key", "value": TOKEN, "enabled": True}, {"key": "api_key", "value": GONE, "enabled": True}),
    ({"headers": [["authorization", f"Token {TOKEN}"]]}, {"headers": [["authorization", GONE]]}),
    ({"argv": ["mysql", "-u", "root", "-prain17"]}, {"argv": ["mysql", "-u", "root", GONE]}),
    (["tool", "--password", "rain17", "-v"], ["tool", "--password", GONE, "-v"]),
    ({"Authorization": f"ApiKey {TOKEN}"}, {"Authorization": GONE}),
    ({"Cookie": f"theme=dark; sid={TOKEN}"}, {"Cookie": GONE}),
    ({"otp": 381924, "pin": 4711, "cvv": 123}, {"otp": GONE, "pin": GONE, "cvv": GONE}),
    ({"пароль": "sunflower1"}, {"пароль": GONE}),
    ({"password": [["ana1", "1924"]]}, {"password": [[GONE, GONE]]}),
    ({"password": {"name": "root", "value": "rain"}}, {"password": {"name": "root", "value": GONE}}),
    ({"passport": {"number": "X1234567", "country": "D"}}, {"passport": {"number": GONE, "country": "D"}}),
    ({"otp": {"value": 381924}}, {"otp": {"value": GONE}}),
    ({"q": "Número da CNH", "a": "09792313613"}, {"q": "Número da CNH", "a": GONE}),
    ({"routing_key": TOKEN, "api_key_part1": TOKEN}, {"routing_key": GONE, "api_key_part1": GONE}),
]
KEPT: list[Any] = [
    {"name": "colour", "value": "sunflower"},
    {"name": "password", "value": "${PASSWORD}"},
    {"fields": ["password", "email"]},
    {"args": ["tar", "-p", "-f", "a.tar"]},
    {"status_code": 404, "code": "504813", "zip_code": "12345", "pincode": 110001},
    {"Cookie": "theme=dark; lang=de"},
    {"max_tokens": 4096, "token_count": 381924},
    {"kind": "phone", "data": 1700000000},
    {"card": {"name": "colour", "value": "red"}},
]


@pytest.mark.parametrize(("value", "scrubbed"), FOUND)
def test_what_neighbours_announce_is_removed(scrubber: Scrubber, value: Any, scrubbed: Any) -> None:
    assert scrubber.scrub_json(value).value == scrubbed
    assert scrubber.scrub_json(scrubbed).value == scrubbed


@pytest.mark.parametrize("value", KEPT)
def test_what_they_do_not_announce_stays(scrubber: Scrubber, value: Any) -> None:
    assert scrubber.scrub_json(value).value == value
