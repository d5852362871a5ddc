"""Questions with personal data: every family planted, reproducible, and fake on sight."""

import base64
import json
import re

import pytest

from assay_demo.golden import read_cases
from assay_demo.pii import FAMILIES, TEST_CARDS, PiiQuestion, plant, planted_values

CASES = read_cases()
QUESTIONS = plant(CASES, seed=3, per_family=12)


def _of(family: str) -> list[PiiQuestion]:
    return [question for question in QUESTIONS if question.planted.family == family]


def test_every_family_is_planted_equally_often() -> None:
    assert {family: len(_of(family)) for family in FAMILIES} == dict.fromkeys(FAMILIES, 12)


def test_a_short_prefix_already_has_every_family() -> None:
    assert {question.planted.family for question in QUESTIONS[: len(FAMILIES)]} == set(FAMILIES)


def test_what_is_planted_stands_in_the_question_beside_the_golden_text() -> None:
    queries = {case.id: case.query for case in CASES}
    for question in QUESTIONS:
        assert question.planted.value in question.text
        assert question.planted.secret in question.planted.value
        assert queries[question.case_id] in question.text


def test_the_planted_strings_are_listed_for_tests_of_what_must_not_survive() -> None:
    values = planted_values(QUESTIONS)
    assert list(values) == list(FAMILIES)
    for family in FAMILIES:
        assert values[family] == [question.planted.secret for question in _of(family)]


def test_the_seed_decides() -> None:
    assert plant(CASES, seed=3, per_family=12) == QUESTIONS
    assert plant(CASES, seed=4, per_family=12) != QUESTIONS


@pytest.mark.parametrize(
    ("family", "pattern"),
    [
        ("email", r"[a-z]+\.[a-z]+\d+@([a-z]+\.)?example\.com"),
        ("phone", r"(\+1 ?)?\(?\d{3}\)?[- ]?555[- ]?01\d\d"),
        ("us_ssn", r"123-45-67\d\d"),
        ("jwt", r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]{43}"),
        ("bearer_token", r"Bearer \w{40}"),
        ("connection_url", r"\w+://\w+:fake-\w+@db\d+\.example\.com:5432/demo"),
    ],
)
def test_values_are_fake_on_sight(family: str, pattern: str) -> None:
    assert [q.planted.value for q in _of(family) if not re.fullmatch(pattern, q.planted.value)] == []


def test_cards_are_published_test_numbers_that_pass_luhn() -> None:
    for question in _of("payment_card"):
        digits = re.sub(r"\D", "", question.planted.value)
        assert digits in TEST_CARDS
        doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
        assert sum(number // 10 + number % 10 for number in doubled) % 10 == 0


def test_tokens_decode_as_json_web_tokens() -> None:
    for question in _of("jwt"):
        header, claims, _ = question.planted.value.split(".")
        assert json.loads(base64.urlsafe_b64decode(header + "=" * (-len(header) % 4)))["typ"] == "JWT"
        assert json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["iss"] == "example.com"
