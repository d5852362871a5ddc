"""A form, the texts made from it, and whether anything of the values is left in what a scrubber makes of them."""

import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from . import cards, identities, obfuscated, papers, secrets, telephones
from .makers import MAKERS

SEED = "forms-2026-11"
#: Where the value goes.
PLACE = "§"
TRIES = 5
_WINDOW = 4

Kinds = Mapping[str, tuple[str, ...]]
#: By group: the forms that are texts, and those that are JSON and scrubbed as parsed values.
PERSONAL: dict[str, tuple[Kinds, Kinds]] = {
    "cards": (cards.TEXTS, cards.PARSED),
    "passports and licences": (papers.TEXTS, papers.PARSED),
    "telephone numbers": (telephones.TEXTS, telephones.PARSED),
    "national identity numbers": (identities.TEXTS, identities.PARSED),
    "obfuscated": (obfuscated.TEXTS, obfuscated.PARSED),
}


class Scrubs(Protocol):
    """What of `assay_scrubber.engine.Scrubber` is needed here."""

    def scrub(self, text: str, /) -> Any:
        """Something whose `text` is the scrubbed text."""

    def scrub_json(self, value: Any) -> Any:
        """Something whose `value` is the scrubbed value."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form, and the kind of value that stands in it. `parsed`: JSON, which services scrub value by value."""

    group: str
    kind: str
    text: str
    parsed: bool = False

    @property
    def _key(self) -> str:
        # The halves of the secrets were fixed before there were forms that several kinds share.
        return SEED + self.text if self.group in secrets.SECRETS else f"{SEED}{self.kind}/{self.text}"

    @property
    def held(self) -> bool:
        """Whether nobody looks at it while rules are written."""
        return hashlib.sha256(self._key.encode()).digest()[0] % 2 == 1

    def filled(self) -> Iterator[tuple[str, str]]:
        """Some texts of this form, each with its value; the same every time."""
        rng = random.Random(self._key)
        for _ in range(TRIES):
            value = MAKERS[self.kind](rng)
            yield self.text.replace(PLACE, value), value


def forms() -> list[Form]:
    """All forms, in the order of their modules."""
    made = [
        Form(group, kind, text)
        for group, kinds in secrets.SECRETS.items()
        for kind, texts in kinds.items()
        for text in texts
    ]
    for group, halves in PERSONAL.items():
        for parsed, kinds in enumerate(halves):
            made += [Form(group, kind, text, bool(parsed)) for kind, texts in kinds.items() for text in texts]
    return made


def groups() -> list[str]:
    """The names of all groups."""
    return [*secrets.SECRETS, *PERSONAL]


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def left_over(value: str, form: str, left: str) -> bool:
    """Whether four letters or digits of the value, which the form itself does not hold, still stand one after the other."""
    wanted, own, rest = _plain(value), _plain(form), _plain(left)
    windows = (wanted[place : place + _WINDOW] for place in range(len(wanted) - _WINDOW + 1))
    return any(window in rest and window not in own for window in windows)


def removed(scrub: Callable[[str], str], form: Form) -> bool:
    """Whether every value of the form is gone when `scrub` has read its texts, JSON or not, as they stand."""
    blank = form.text.replace(PLACE, " ")
    return not any(left_over(value, blank, scrub(text)) for text, value in form.filled())


def found(scrubber: Scrubs, form: Form) -> bool:
    """Whether every value of the form is gone when it is scrubbed as services do it."""

    def parsed(text: str) -> str:
        return json.dumps(scrubber.scrub_json(json.loads(text)).value, ensure_ascii=False)

    return removed(parsed if form.parsed else lambda text: str(scrubber.scrub(text).text), form)


class Half(NamedTuple):
    """Forms of one half of a group, and how many of them are found."""

    hits: int
    n: int

    @property
    def recall(self) -> float:
        """The share of the forms that are found."""
        return self.hits / self.n


def tally(finds: Callable[[Form], bool]) -> dict[tuple[str, bool], Half]:
    """By group and whether it is the half `held`: how many forms are found."""
    counts: dict[tuple[str, bool], list[int]] = {}
    for form in forms():
        count = counts.setdefault((form.group, form.held), [0, 0])
        count[0] += finds(form)
        count[1] += 1
    return {key: Half(*count) for key, count in counts.items()}
