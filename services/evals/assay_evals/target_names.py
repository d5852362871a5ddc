"""A target's name as it may be written down: without the secrets that addresses and commands hold. Pure."""

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit, urlunsplit

from assay_evals.errors import TargetUsageError

#: What stands for a secret, or what may be one.
MASK = "…"
#: Words of a command that are no values: options, and files of programs.
_LONG = re.compile(r"(--[A-Za-z][A-Za-z0-9_-]*)(=.*)?", re.DOTALL)
_NAME = re.compile(r"[\w./~+-]+")
_PROGRAM = re.compile(r"[\w./~+-]+\.(py|pyz|sh|bash|js|mjs|cjs|ts|rb|pl|php|jar|lua|exe)")


def shown(name: str) -> str:
    """A target's name for files and reports, without secrets.

    An address comes without its user, password, fragment and the values behind `?`; a command with its program, the files of programs
    and the names of its options, and a mark for each other word, since any may be a secret.
    """
    if name.startswith("command:"):
        return " ".join(["command:", *shown_words(command_words(name))])
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
    """The program and its arguments. Raises `TargetUsageError`."""
    try:
        return shlex.split(name.removeprefix("command:"))
    except ValueError:
        raise TargetUsageError("the command has a quote that is not closed") from None


def shown_words(words: Sequence[str]) -> Iterator[str]:
    """A command's words, each that may be a secret as a mark."""
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


def seal(name: str, salt: bytes | None = None) -> str | None:
    """What tells apart two targets that `shown` shows alike, and gives away nothing of what it hides; None where it hides nothing.

    A slow hash with a salt (scrypt), so that a short secret cannot be found by trying.
    """
    if shown(name) == name:
        return None
    salt = salt or os.urandom(16)
    return f"{salt.hex()}:{hashlib.scrypt(name.encode(), salt=salt, n=2**14, r=8, p=1, dklen=16).hex()}"


def opens(sealed: str, name: str) -> bool:
    """Whether a seal was made of this name."""
    try:
        return seal(name, bytes.fromhex(sealed.partition(":")[0])) == sealed
    except ValueError:
        return False
