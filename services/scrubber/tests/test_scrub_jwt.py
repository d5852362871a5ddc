"""JSON Web Tokens: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

_HEADER = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
_PAYLOAD = "eyJzdWIiOiJleGFtcGxlIn0"
_SIGNED = f"{_HEADER}.{_PAYLOAD}.{'Ab0_-' * 8}"
_ENCRYPTED = f"{_HEADER}..{'aXY' * 4}.{'Y2lw' * 6}.{'dGFn' * 4}"

FOUND = [
    # text, found, output
    (f"token: {_SIGNED} ok", [_SIGNED], "token: [REDACTED] ok"),
    (f"{_SIGNED}.", [_SIGNED], "[REDACTED]."),
    (f"Authorization: Bearer {_SIGNED}", [_SIGNED], "Authorization: Bearer [REDACTED]"),
    (f"x {_HEADER}.{_PAYLOAD}. y", [f"{_HEADER}.{_PAYLOAD}."], "x [REDACTED] y"),
    (f"cut {_HEADER}.{_PAYLOAD}", [f"{_HEADER}.{_PAYLOAD}"], "cut [REDACTED]"),
    (_ENCRYPTED, [_ENCRYPTED], "[REDACTED]"),
    (f"auth_{_SIGNED}", [_SIGNED], "auth_[REDACTED]"),
    (f'{{"jwt":"{_SIGNED}"}}', [_SIGNED], '{"jwt":"[REDACTED]"}'),
    (rf"a\n{_SIGNED}\nb", [_SIGNED], r"a\n[REDACTED]\nb"),
    (f"{_SIGNED},{_SIGNED}", [_SIGNED, _SIGNED], "[REDACTED],[REDACTED]"),
    (_SIGNED[:20] + "\u200b" + _SIGNED[20:], [_SIGNED[:20] + "\u200b" + _SIGNED[20:]], "[REDACTED]"),
    (f"a.b.{_SIGNED}", [_SIGNED], "a.b.[REDACTED]"),
]
KEPT = [
    "eyJ",
    "eyJhbGciOiJIUzI1NiJ9",
    "eyJhbGci.short.x",
    "module.submodule.function_name",
    "heyJude.song.title",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_jwt_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("jwt", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_jwt_stays(check: Callable[..., None], text: str) -> None:
    check("jwt", text, [], text)
