"""Numbers of passports and licences as countries write them, and machine readable zones with their check digits (ICAO Doc 9303)."""

import random

from .drawing import Maker, day, drawn

_WRITTEN = {
    "passport of US": ("#########", "@########"),
    "passport of DE": ("C01X00T4#", "L7#CFG8K#", "C4VJ#N#P#"),
    "passport of FR": ("##AV#####", "##CK#####"),
    "passport of ES": ("XD@######", "AAB######", "PAK######"),
    "passport of IT": ("YA#######", "CA#####AA"),
    "passport of PT": ("CB######", "P######"),
    "passport of NL": ("NW4R8B2#1", "SPE2#14#7"),
    "passport of PL": ("EH#######", "CCA######"),
    "passport of RU": ("45 08 ######", "4510 ######", "51 №#######"),
    "passport of CN": ("E########", "EA#######"),
    "passport of JP": ("TK#######", "MU#######"),
    "passport of KR": ("M########", "M###A####"),
    "passport of IN": ("K#######", "Z#######"),
    "passport of TR": ("U########", "S########"),
    "passport of GR": ("AE#######", "AK#######"),
    "passport of SA": ("V######1#",),
    "passport of IL": ("3#######", "2#######"),
    "passport of UA": ("FA######", "КВ ######"),
    "passport of VN": ("B#######", "C#######"),
    "passport of SE": ("8#######", "AA0######"),
    "licence of GB": ("MORGA6571~2SM9IJ", "SMITH7061~2JA9AB", "GARCI8520~5A99KX"),
    "licence of US CA": ("D#######", "B#######"),
    "licence of US FL": ("G###-###-##-###-0", "S############"),
    "licence of DE": ("B072RRE2I##", "N04#HX7P1##", "J23#0M5C2##"),
    "licence of FR": ("8806923####2", "13AA####2"),
    "licence of ES": ("4#######K",),
    "licence of IT": ("MI5######K", "U1K#####0L"),
    "licence of BR": ("0#########4", "1#########7"),
    "licence of IN": ("MH12 2011#######", "DL-1420110######", "KA0520150######"),
    "licence of PL": ("#####/##/####",),
    "licence of JP": ("30##########", "44##########"),
    "licence of RU": ("77 14 ######", "99 32 ######"),
    "licence of AU": ("1#######", "2####AB#"),
}

_NAMES = (
    ("GARCIA", "ANA MARIA"),
    ("SMITH", "JOHN"),
    ("NOWAK", "EWA"),
    ("MUELLER", "HANS PETER"),
    ("OKAFOR", "CHIDI"),
    ("DUPONT", "MARIE"),
)
_STATES = ("UTO", "USA", "GBR", "FRA", "ESP", "POL", "NGA")


def check(text: str) -> str:
    """The check digit of part 3, section 4.9: weights 7, 3, 1; letters from 10, filler 0."""
    return str(
        sum((0 if sign == "<" else int(sign, 36)) * (7, 3, 1)[place % 3] for place, sign in enumerate(text)) % 10
    )


def _name(rng: random.Random, size: int) -> str:
    family, given = rng.choice(_NAMES)
    return f"{family}<<{given.replace(' ', '<')}".ljust(size, "<")


def _middle(rng: random.Random) -> str:
    """Date of birth, sex, date of expiry, with check digits."""
    birth, expiry = f"{day(rng):%y%m%d}", f"{rng.randint(27, 35)}0{rng.randint(1, 9)}{rng.randint(10, 28)}"
    return f"{birth}{check(birth)}{rng.choice('MF<')}{expiry}{check(expiry)}"


def _number(rng: random.Random) -> str:
    number = drawn(rng, rng.choice(["#########", "@########", "@@#######"]))
    return number + check(number)


def _second(rng: random.Random, state: str, optional: str) -> str:
    """The second line of TD2 and TD3: the last digit checks the number, the dates and the optional data."""
    number, dates = _number(rng), _middle(rng)
    line = f"{number}{state}{dates}{optional}"
    return line + check(number + dates[:7] + dates[8:15] + optional)


def td3(rng: random.Random) -> str:
    """A passport: two lines of 44."""
    state = rng.choice(_STATES)
    personal = drawn(rng, rng.choice(["###########<<<", "<<<<<<<<<<<<<<"]))
    return f"P<{state}{_name(rng, 39)}\n{_second(rng, state, personal + check(personal))}"


def td2(rng: random.Random) -> str:
    """An identity card: two lines of 36."""
    state = rng.choice(_STATES)
    return f"I<{state}{_name(rng, 31)}\n{_second(rng, state, '<<<<<<<')}"


def td1(rng: random.Random) -> str:
    """An identity card: three lines of 30."""
    state, number, dates = rng.choice(_STATES), _number(rng), _middle(rng)
    first = f"I<{state}{number}{'<' * 15}"
    optional = "<" * 11
    total = check(first[5:] + dates[:7] + dates[8:15] + optional)
    return f"{first}\n{dates}{state}{optional}{total}\n{_name(rng, 30)}"


def _visa(width: int) -> Maker:
    def make(rng: random.Random) -> str:
        state = rng.choice(_STATES)
        second = f"{_number(rng)}{state}{_middle(rng)}".ljust(width, "<")
        return f"V<{state}{_name(rng, width - 5)}\n{second}"

    return make


MAKERS: dict[str, Maker] = {
    "td3": td3,
    "td3 in one line": lambda rng: td3(rng).replace("\n", " "),
    "td3 second line": lambda rng: td3(rng).split("\n")[1],
    "td3 in items": lambda rng: ", ".join(f'"{line}"' for line in td3(rng).split("\n")),
    "td1": td1,
    "td2": td2,
    "mrva": _visa(44),
    "mrvb": _visa(36),
    **{kind: (lambda rng, written=written: drawn(rng, rng.choice(written))) for kind, written in _WRITTEN.items()},
}
