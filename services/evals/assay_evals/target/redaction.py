"""Redact a target's name: without the secrets that addresses and commands contain. Pure."""

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit, urlunsplit

from assay_evals.errors import TargetUsageError

#: Replaces a secret, or a possible one.
MASK = "…"
#: Words of a command that are not values: options, and names of program files.
_LONG = re.compile(r"(--[A-Za-z][A-Za-z0-9_-]*)(=.*)?", re.DOTALL)
_NAME = re.compile(r"[\w./~+-]+")
_PROGRAM = re.compile(r"[\w./~+-]+\.(py|pyz|sh|bash|js|mjs|cjs|ts|rb|pl|php|jar|lua|exe)")


def redact_target(name: str) -> str:
    """Return a target's name for files and reports, without secrets.

    An address is shown without user, password, fragment and query values; a command with its program, names of program
    files and option names, and with a mask for each other word, since any may be a secret.
    """
    if name.startswith("command:"):
        return " ".join(["command:", *redact_words(command_words(name))])
    if "://" in name:
        try:
            parts = urlsplit(name)
        except ValueError:
            return f"{name.partition('://')[0]}://{MASK}"
        query = "&".join(_shown_parameter(each) for each in parts.query.split("&"))
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=query, fragment=""))
    return name


def _shown_parameter(text: str) -> str:
    key, equals, value = text.partition("=")
    if not equals:
        return MASK if text else ""
    return text if not value or value in ("{query}", "{limit}") else f"{key}={MASK}"


def command_words(name: str) -> list[str]:
    """Return the program and its arguments. Raises `TargetUsageError`."""
    try:
        return shlex.split(name.removeprefix("command:"))
    except ValueError:
        raise TargetUsageError("the command has a quote that is not closed") from None


def redact_words(words: Sequence[str]) -> Iterator[str]:
    """Yield a command's words, with possible secrets masked."""
    before = ""
    for place, word in enumerate(words):
        if long := _LONG.fullmatch(word):
            yield f"{long[1]}={MASK}" if long[2] else word
        elif word.startswith("-"):
            yield word if len(word) <= 2 else word[:2] + MASK
        elif (
            _PROGRAM.fullmatch(word)
            or (place == 0 and _NAME.fullmatch(word))
            or (before == "-m" and _NAME.fullmatch(word))
        ):
            yield word
        else:
            yield MASK
        before = word


def fingerprint_target(name: str, salt: bytes | None = None) -> str | None:
    """Return a fingerprint that distinguishes targets with the same redacted name.

    It reveals nothing of the secrets; None if nothing is redacted. It is a slow hash with a salt (scrypt), so that a
    short secret cannot be found by trying.
    """
    if redact_target(name) == name:
        return None
    salt = salt or os.urandom(16)
    return f"{salt.hex()}:{hashlib.scrypt(name.encode(), salt=salt, n=2**14, r=8, p=1, dklen=16).hex()}"


def matches_fingerprint(sealed: str, name: str) -> bool:
    """True if a fingerprint was made from this name."""
    try:
        return fingerprint_target(name, bytes.fromhex(sealed.partition(":")[0])) == sealed
    except ValueError:
        return False
