"""Questions with personal data and secrets, as people paste them, for the scrubber to remove.

Every value is recognizably fake: example.com, 555-01xx numbers, card networks' published test numbers, 123-45-67xx. The same
seed yields the same questions.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay_demo.golden import Case

#: Test numbers that card networks and payment processors publish. All pass the Luhn check.
TEST_CARDS = (
    "4111111111111111",
    "4242424242424242",
    "5555555555554444",
    "5105105105105100",
    "6011111111111117",
    "378282246310005",
)

_FIRST = ("ada", "grace", "linus", "margaret", "edsger", "barbara", "donald", "frances", "alan", "radia")
_LAST = ("demo", "sample", "testing", "fixture", "placeholder", "mockup")
_AREA_CODES = ("202", "212", "312", "415", "503", "617")
_DRIVERS = ("postgresql", "mysql", "redis", "mongodb", "amqp")


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted value.

    `value` is the text in the question, `secret` the part of it that must be scrubbed.
    """

    family: str
    value: str
    secret: str


@dataclass(frozen=True, slots=True)
class PiiQuestion:
    """A golden question with a planted value."""

    case_id: str
    text: str
    planted: Planted


def plant(cases: Sequence[Case], *, seed: int = 0, per_family: int = 10) -> list[PiiQuestion]:
    """Return `per_family` questions of each family, alternating, over cases that are chosen by the seed."""
    rng = random.Random(seed)  # noqa: S311  (reproducible fakes, nothing is secret)
    questions = []
    for number in range(per_family):
        for family, make in FAMILIES.items():
            case = rng.choice(cases)
            planted = make(rng, number)
            asked = case.query if case.query.endswith("?") else f"{case.query}."
            text = rng.choice(_FRAMES[family]).format(question=asked, value=planted.value)
            questions.append(PiiQuestion(case.id, text, planted))
    return questions


def planted_values(questions: Sequence[PiiQuestion]) -> dict[str, list[str]]:
    """Return the strings by family that must not be stored, exported or logged after scrubbing."""
    found: dict[str, list[str]] = {family: [] for family in FAMILIES}
    for question in questions:
        found[question.planted.family].append(question.planted.secret)
    return found


def _email(rng: random.Random, number: int) -> Planted:
    value = f"{rng.choice(_FIRST)}.{rng.choice(_LAST)}{number}@{rng.choice(('', 'mail.', 'corp.'))}example.com"
    return Planted("email", value, value)


def _phone(rng: random.Random, number: int) -> Planted:
    area, line = rng.choice(_AREA_CODES), f"01{number % 100:02d}"
    value = rng.choice(("({0}) 555-{1}", "{0}-555-{1}", "+1 {0} 555 {1}", "+1{0}555{1}")).format(area, line)
    return Planted("phone", value, value)


def _us_ssn(_rng: random.Random, number: int) -> Planted:
    value = f"123-45-67{number % 100:02d}"
    return Planted("us_ssn", value, value)


def _payment_card(rng: random.Random, number: int) -> Planted:
    digits = TEST_CARDS[number % len(TEST_CARDS)]
    separator = rng.choice(("", " ", "-"))
    value = digits if len(digits) != 16 else separator.join(digits[place : place + 4] for place in range(0, 16, 4))
    return Planted("payment_card", value, value)


def _jwt(rng: random.Random, number: int) -> Planted:
    header = _base64url(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    claims = _base64url(json.dumps({"iss": "example.com", "sub": f"demo-{number}", "jti": _token(rng, 8)}).encode())
    value = f"{header}.{claims}.{_base64url(hashlib.sha256(_token(rng, 32).encode()).digest())}"
    return Planted("jwt", value, value)


def _bearer_token(rng: random.Random, _number: int) -> Planted:
    token = _token(rng, 40)
    return Planted("bearer_token", f"Bearer {token}", token)


def _connection_url(rng: random.Random, number: int) -> Planted:
    password = f"fake-{_token(rng, 12)}"
    value = f"{rng.choice(_DRIVERS)}://{rng.choice(_FIRST)}:{password}@db{number}.example.com:5432/demo"
    return Planted("connection_url", value, password)


def _token(rng: random.Random, length: int) -> str:
    return "".join(rng.choice("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in range(length))


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


FAMILIES: dict[str, Callable[[random.Random, int], Planted]] = {
    "email": _email,
    "phone": _phone,
    "us_ssn": _us_ssn,
    "payment_card": _payment_card,
    "jwt": _jwt,
    "bearer_token": _bearer_token,
    "connection_url": _connection_url,
}

_FRAMES: dict[str, tuple[str, ...]] = {
    "email": ("{question} Please reply to {value}, thanks.", "{value} asked me: {question}", "{question} (cc {value})"),
    "phone": ("{question} You can call me back at {value}.", "My number is {value}. {question}"),
    "us_ssn": (
        "{question} The input rows look like {value}, that is my SSN.",
        "My social security number {value} is in the log. {question}",
    ),
    "payment_card": (
        "{question} It fails on the card number {value}.",
        "Our test charges {value} and breaks. {question}",
    ),
    "jwt": ("{question} The token is {value} if that helps.", "I get 401 with {value}. {question}"),
    "bearer_token": (
        "{question} I send the header Authorization: {value} every time.",
        "curl -H 'Authorization: {value}' works. {question}",
    ),
    "connection_url": ("{question} We connect to {value} from there.", "DATABASE_URL={value} is set. {question}"),
}
