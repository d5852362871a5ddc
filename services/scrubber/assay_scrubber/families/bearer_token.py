"""Match the token after the word `bearer`, in any case.

The word is kept, so that a reader still sees what the value was.
"""

import re

from assay_scrubber.family import Family, LiteralRule, Literals, View
from assay_scrubber.taxonomy import Category

_BEARER = re.compile(
    rb"bearer(?:[ _\-]?token)?[ \t\r\n:=\"']{1,8}+([a-z0-9._~+/\-]{10,}+=*+)",
)
# Words, also in CamelCase, as in `bearer = BearerToken(...)`: random letters hardly ever look like that.
_WORD = rb"(?:[A-Z]?[a-z]{0,18}|[A-Z]{1,18}|[A-Z]?[a-z]{2,18}+(?:[A-Z][a-z]{2,18}+){1,4})"
_WORDS = re.compile(_WORD + rb"(?:[._~+/\-]+" + _WORD + rb")*+")
_LONGEST_PROSE = 64


def _token(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    start, end = match.span(1)
    token = view.raw[start:end]
    prose = token.rstrip(b".-/")
    # "bearer certificates" is prose; an Authorization header has no prose.
    if len(prose) <= _LONGEST_PROSE and _WORDS.fullmatch(prose) and b"authorization" not in view.before(match.start()):
        return None
    return start, start + len(token.rstrip(b".")) if token.endswith(b".") else end


FAMILY = Family(
    name="bearer_token",
    category=Category.CREDENTIAL,
    rank=40,
    gate=Literals((b"bearer",)),
    rules=(LiteralRule(_BEARER, _token, lower=True, anchored=True, needle=b"bearer"),),
    description="The token after the word `bearer`, in any case; the word is kept.",
    examples=("Authorization: Bearer abc123DEF456ghi789", "bearer_token=abc123DEF456ghi789"),
    counterexamples=("bearer certificates", "bearer = BearerToken(value)"),
)
