"""Match private keys as text: PEM, OpenSSH, PGP, SSH2, PuTTY; whole, cut off, or on one line."""

import re

from assay_scrubber.family import Family, LiteralRule, Literals, View
from assay_scrubber.taxonomy import Category

# The content between the two lines: base64, line ends in any form, and headers such as `Proc-Type: 4,ENCRYPTED`.
_BODY = rb"(?:[a-z0-9+/=_\s\\:,.;()<>@\"'|>*\[\]]++|-(?!----|--- ?end))*+"
_PEM = re.compile(
    rb"-{4,5} ?begin [a-z0-9 ]{0,40}?private key(?: block)? ?-{0,5}(%b)(-{4,5} ?end [a-z0-9 ]{0,60}-{0,5})?" % _BODY
)
_PUTTY = re.compile(rb"private-lines: ?[0-9]{1,4}((?:[ \t]*(?:\r|\n|\\r|\\n)+[ \t]*[a-z0-9+/=]{4,128}+(?![\-:]))++)")
_LONG = re.compile(rb"[a-z0-9+/=_\-]{16,}+(?:(?:\s|\\[nr])++[a-z0-9+/]{1,63}={0,2}(?![a-z0-9+/ ]))?")


def _pem(_: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    if match.group(2) is not None:
        return match.span()
    # Cut off: prose may follow, so the key ends with its last long piece.
    end = 0
    for piece in _LONG.finditer(match.string, match.start(1), match.end(1)):
        end = piece.end()
    return (match.start(), end) if end else None


def _putty(_: View, match: re.Match[bytes]) -> tuple[int, int]:
    return match.span(1)


FAMILY = Family(
    name="private_key",
    category=Category.CREDENTIAL,
    rank=5,
    gate=Literals((b"private key", b"private-lines"), mark=b"-"),
    rules=(
        LiteralRule(_PEM, _pem, lower=True, needle=b"private key"),
        LiteralRule(_PUTTY, _putty, lower=True, needle=b"private-lines", anchored=True),
    ),
    description="Private keys: PEM, OpenSSH, PGP, SSH2 and PuTTY; whole, cut off, with real or escaped line ends.",
    examples=(
        "-----BEGIN RSA PRIVATE KEY-----\\nMIIE...\\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU",
    ),
    counterexamples=("-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", "your private key"),
)
