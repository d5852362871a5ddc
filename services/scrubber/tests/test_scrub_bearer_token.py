"""Bearer tokens: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("Authorization: Bearer abc123DEF456ghi789", ["abc123DEF456ghi789"], "Authorization: Bearer [REDACTED]"),
    ("authorization: bearer abc123DEF456ghi789", ["abc123DEF456ghi789"], "authorization: bearer [REDACTED]"),
    ("BEARER abc123DEF456ghi789==", ["abc123DEF456ghi789=="], "BEARER [REDACTED]"),
    ("-H 'Authorization: Bearer abcdefghijklmnop'", ["abcdefghijklmnop"], "-H 'Authorization: Bearer [REDACTED]'"),
    ("Bearer abc123def456.", ["abc123def456"], "Bearer [REDACTED]."),
    ('{"bearer": "abc123def456"}', ["abc123def456"], '{"bearer": "[REDACTED]"}'),
    ("bearer_token=abc123def456&x", ["abc123def456"], "bearer_token=[REDACTED]&x"),
    ("Bearer%20abc123def456", ["abc123def456"], "Bearer%20[REDACTED]"),
    ("Bearer\u00a0abc123def456", ["abc123def456"], "Bearer\u00a0[REDACTED]"),
    (
        "Bearer abc+/de1fgh==, Bearer 0123456789",
        ["abc+/de1fgh==", "0123456789"],
        "Bearer [REDACTED], Bearer [REDACTED]",
    ),
    ("Bearer aVeryLongTokenWithoutAnyDigitInIt", ["aVeryLongTokenWithoutAnyDigitInIt"], "Bearer [REDACTED]"),
]
KEPT = [
    "bearer certificates",
    "Bearer Certificates/securities are instruments",
    "bearer authentication-scheme",
    "the bearer of this note",
    "Bearer short1",
    "bearer = BearerToken(value)",
    "Basic abc123DEF456ghi789",
    "Bearer [REDACTED]",
    "Authorization: Bearer [REDACTED]",
    "Bearer <token>",
    "Bearer $TOKEN_FROM_ENV",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_bearer_token_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("bearer_token", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_bearer_token_stays(check: Callable[..., None], text: str) -> None:
    check("bearer_token", text, [], text)
