"""McNemar's test of paired answers that are right or wrong. Pure."""

from math import comb


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided p-value (McNemar 1947), from the pairs that changed in each direction.

    If both systems are equally good, each changed pair changes in either direction with a probability of 1/2: p is binomial. It is 1 if no
    pair changed.
    """
    changed = gained + lost
    tail = sum(comb(changed, count) for count in range(min(gained, lost) + 1))
    return min(1.0, tail / 2 ** (changed - 1)) if changed else 1.0
