"""Values of each kind of form, drawn from the form's own generator, so that they are the same every time."""

import base64
import random
import re
import string
from collections.abc import Callable, Mapping

from . import cards, identity_makers, obfuscated, paper_makers, phone_makers
from .drawing import ALNUM, Maker, chars, digits, luhn

_BRANDS = (("4", 16), ("51", 16), ("2223", 16), ("6011", 16), ("3530", 16), ("5555", 16))
_SUPERSCRIPT, _SUBSCRIPT, _CIRCLES = "⁰¹²³⁴⁵⁶⁷⁸⁹", "₀₁₂₃₄₅₆₇₈₉", "⓪①②③④⑤⑥⑦⑧⑨"
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _token(rng: random.Random) -> str:
    """What a program makes: hexadecimal, base64, or letters and digits."""
    made = (
        chars(rng, "0123456789abcdef", rng.choice([32, 40, 64])),
        base64.b64encode(rng.randbytes(24)).decode().rstrip("="),
        chars(rng, ALNUM, rng.randint(20, 40)),
    )
    return rng.choice(made)


def _password(rng: random.Random) -> str:
    """What a person makes up."""
    words = ["Sommer", "tiger", "River", "kaffee", "Lisboa", "guitar", "Winter", "dragon"]
    return rng.choice(words) + rng.choice("!#$-_.") + str(rng.randint(10, 9999)) + rng.choice(["x", "Q", "", "zz"])


def _letters(rng: random.Random) -> str:
    """A password of letters only."""
    return chars(rng, string.ascii_lowercase, rng.randint(9, 13))


def _code(rng: random.Random) -> str:
    return str(rng.randint(100_000, 999_999))


def _pin(rng: random.Random) -> str:
    return f"{rng.randint(0, 9999):04}"


def card(rng: random.Random) -> str:
    """A number of an issuer's range, with its check digit (ISO/IEC 7812-1)."""
    start, size = rng.choice(_BRANDS)
    return luhn(start + digits(rng, size - 1 - len(start)))


def _groups(rng: random.Random) -> list[str]:
    return re.findall("....", card(rng))


def _amex(rng: random.Random) -> str:
    number = luhn("37" + digits(rng, 12))
    return f"{number[:4]} {number[4:10]} {number[10:]}"


def _track1(rng: random.Random) -> str:
    return f"%B{card(rng)}^{rng.choice(['GARCIA/ANA', 'SMITH/JOHN A', 'MEIER/EVA MS'])}^2812101{digits(rng, 10)}?"


def _track2(rng: random.Random) -> str:
    return f";{card(rng)}=2812101{digits(rng, 10)}?"


def email(rng: random.Random) -> str:
    """An address of an invented person at an invented host."""
    person = (
        rng.choice(["ana", "j.smith", "mara", "tom", "li.wei"])
        + rng.choice([".", "_"])
        + chars(rng, string.ascii_lowercase, 6)
    )
    return f"{person}{digits(rng, 2)}@{chars(rng, string.ascii_lowercase, 8)}.{rng.choice(['net', 'com', 'de', 'io'])}"


def _ip(rng: random.Random) -> str:
    return ".".join(str(part) for part in (rng.choice([81, 93, 142, 203]), *(rng.randint(11, 250) for _ in range(3))))


def _ssn(rng: random.Random) -> str:
    return identity_makers.MAKERS["us ssn"](rng)


def _between(sign: str, make: Maker) -> Maker:
    return lambda rng: sign.join(make(rng))


def _translated(signs: str, make: Maker) -> Maker:
    table = str.maketrans("0123456789", signs)
    return lambda rng: make(rng).translate(table)


def _keycaps(make: Maker) -> Maker:
    return lambda rng: re.sub("[0-9]", lambda digit: digit[0] + "\ufe0f\u20e3", make(rng))


def _spoken(make: Maker) -> Maker:
    return lambda rng: " ".join(_WORDS[int(digit)] for digit in make(rng) if digit.isdigit())


def _with_signs(make: Maker, sign: str, dots: str) -> Maker:
    return lambda rng: make(rng).replace(".", dots).replace("@", sign)


def _named(kind: str, signs: list[str]) -> Maker:
    """A maker for `card by 'S'`, `ip by 'S'` and `email by 'S' 'S'`."""
    if kind.startswith("card by"):
        return lambda rng: signs[0].join(_groups(rng))
    if kind.startswith("ip by"):
        return _with_signs(_ip, "@", signs[0])
    return _with_signs(email, signs[0], signs[1])


def _by_signs(kinds: Mapping[str, object]) -> dict[str, Maker]:
    made = {}
    for kind in kinds:
        if " by '" in kind:
            signs = [
                sign.encode().decode("unicode_escape") if "\\" in sign else sign
                for sign in re.findall("'([^']*)'", kind)
            ]
            made[kind] = _named(kind, signs)
    return made


def _login(rng: random.Random) -> str:
    return f"hxxps://{chars(rng, string.ascii_lowercase, 5)}:{_password(rng)}@{chars(rng, string.ascii_lowercase, 8)}[.]net/in"


def _encoded(encode: Callable[[bytes], str], charset: str) -> Maker:
    return lambda rng: encode(f"please write to {email(rng)} today".encode(charset))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_US = phone_makers.MAKERS["phone of US"]

MAKERS: dict[str, Maker] = {
    "token": _token,
    "password": _password,
    "letters": _letters,
    "code": _code,
    "pin": _pin,
    "card": card,
    "card of amex": _amex,
    "card in items": lambda rng: ", ".join(f'"{group}"' for group in _groups(rng)),
    "card in fields": lambda rng: ", ".join(f'"part{place}": "{group}"' for place, group in enumerate(_groups(rng))),
    "track 1": _track1,
    "track 2": _track2,
    "tracks": lambda rng: _track1(rng) + _track2(rng),
    "expiry and cvv": lambda rng: (
        f"{' '.join(_groups(rng))} 0{rng.randint(1, 9)}/{rng.randint(27, 33)} {rng.randint(100, 999)}"
    ),
    "email with zero width": _between("\u200b", email),
    "email with nul": _between("\0", email),
    "email with soft hyphens": _between("\u00ad", email),
    "hxxp login": _login,
    "card in circles": _translated(_CIRCLES, card),
    "card in keycaps": _keycaps(card),
    "card in superscript": _translated(_SUPERSCRIPT, card),
    "card in subscript": _translated(_SUBSCRIPT, card),
    "card in bold digits": _translated("".join(map(chr, range(0x1D7CE, 0x1D7D8))), card),
    "card with zero width": _between("\u200b", card),
    "card with nul": _between("\0", card),
    "card in words": _spoken(card),
    "card in entities": lambda rng: "".join(f"&#{ord(digit)};" for digit in card(rng)),
    "phone in circles": _translated(_CIRCLES, _US),
    "phone in keycaps": _keycaps(_US),
    "phone with zero width": _between("\u200d", _US),
    "phone in words": _spoken(_US),
    "ssn in superscript": _translated(_SUPERSCRIPT, _ssn),
    "ssn in keycaps": _keycaps(_ssn),
    "email in base64": _encoded(_base64, "utf-8"),
    "email in utf-16 base64": _encoded(_base64, "utf-16-le"),
    "email in hex": _encoded(bytes.hex, "utf-8"),
    **_by_signs({**cards.TEXTS, **obfuscated.TEXTS}),
    **paper_makers.MAKERS,
    **phone_makers.MAKERS,
    **identity_makers.MAKERS,
}
