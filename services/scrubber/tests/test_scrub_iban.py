"""International bank account numbers: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("pay GB82 WEST 1234 5698 7654 32 now", ["GB82 WEST 1234 5698 7654 32"], "pay [REDACTED] now"),
    ("DE89370400440532013000", ["DE89370400440532013000"], "[REDACTED]"),
    ("de89 3704 0044 0532 0130 00.", ["de89 3704 0044 0532 0130 00"], "[REDACTED]."),
    ("FR14-2004-1010-0505-0001-3M02-606", ["FR14-2004-1010-0505-0001-3M02-606"], "[REDACTED]"),
    ("NL91ABNA0417164300 NO9386011117947", ["NL91ABNA0417164300", "NO9386011117947"], "[REDACTED] [REDACTED]"),
    ("MT84 MALT 0110 0001 2345 MTLC AST0 01S", ["MT84 MALT 0110 0001 2345 MTLC AST0 01S"], "[REDACTED]"),
    ("BE68 5390 0754 7034 and 4111 1111 1111 1111", ["BE68 5390 0754 7034"], "[REDACTED] and [REDACTED]"),
    ("ＤＥ８９３７０４００４４０５３２０１３０００", ["ＤＥ８９３７０４００４４０５３２０１３０００"], "[REDACTED]"),
]
KEPT = [
    "BE7147DC12345678",
    "be71-47dc-1234-5678",
    "GB82 WEST 1234 5698 7654 33",
    "DE8937040044053201300",
    "ZZ89370400440532013000",
    "sha AB12CD34EF56AB78CD90",
    "XDE89370400440532013000",
    "part AA99 0000 1111",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_iban_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("iban", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_iban_stays(check: Callable[..., None], text: str) -> None:
    check("iban", text, [], text)
