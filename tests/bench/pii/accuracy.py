"""Recall and precision by family with Wilson intervals, and what clean texts are mistaken for. Pure.

A planted value counts as found when a finding that the tool names by that family overlaps it: how exactly a tool draws
the edge does not count against it. It counts as removed when findings of whatever name cover every letter and digit of it. A finding
counts as right when it overlaps anything planted, whatever either is called.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from .tools import names

Span = tuple[str, int, int]


def wilson(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """95 % score interval of a share (Wilson 1927), [0, 1] when nothing was counted."""
    if n == 0:
        return 0.0, 1.0
    share, spread = hits / n, z * z / n
    middle = share + spread / 2
    reach = z * sqrt(share * (1 - share) / n + spread / (4 * n))
    return max(0.0, (middle - reach) / (1 + spread)), min(1.0, (middle + reach) / (1 + spread))


class Share(NamedTuple):
    hits: int
    n: int

    @property
    def value(self) -> float:
        return self.hits / self.n if self.n else float("nan")

    def __str__(self) -> str:
        if not self.n:
            return "-"
        low, high = wilson(self.hits, self.n)
        return f"{self.value:.3f} [{low:.3f}, {high:.3f}]"


def _overlap(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return bool(a[1] < b[2] and b[1] < a[2])


def _covered(text: str, start: int, end: int, spans: Iterable[Sequence[Any]]) -> bool:
    left = {at for at in range(start, end) if text[at].isalnum()}
    for _, low, high in spans:
        left.difference_update(range(low, high))
    return not left


class Accuracy(NamedTuple):
    """By variety (`family/name`): found, removed. By the tool's own name: right."""

    found: Mapping[str, Share]
    removed: Mapping[str, Share]
    right: Mapping[str, Share]


def judge(tool: str, lines: Sequence[Mapping[str, Any]], findings: Mapping[int, Sequence[Span]]) -> Accuracy:
    """`findings` by number of line; lines without an entry were not read."""
    n, found, removed, made, right = (Counter[str]() for _ in range(5))
    for number, spans in findings.items():
        planted = lines[number]["spans"]
        for variety, start, end in planted:
            wanted = names(tool, variety.partition("/")[0])
            n[variety] += 1
            found[variety] += any(name in wanted and _overlap((name, a, b), (0, start, end)) for name, a, b in spans)
            removed[variety] += _covered(lines[number]["text"], start, end, spans)
        for span in spans:
            made[span[0]] += 1
            right[span[0]] += any(_overlap(span, value) for value in planted)
    return Accuracy(
        {variety: Share(found[variety], n[variety]) for variety in n},
        {variety: Share(removed[variety], n[variety]) for variety in n},
        {name: Share(right[name], made[name]) for name in made},
    )


def by_family(shares: Mapping[str, Share]) -> dict[str, Share]:
    """Varieties of a family taken together."""
    total: dict[str, Share] = {}
    for variety, share in shares.items():
        family = variety.partition("/")[0]
        before = total.get(family, Share(0, 0))
        total[family] = Share(before.hits + share.hits, before.n + share.n)
    return total
