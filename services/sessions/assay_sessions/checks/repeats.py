"""pass^k: the chance that an agent does a task right in k attempts out of k. Pure.

C(c, k) / C(n, k) for a task with c successes in n attempts, averaged over tasks: an unbiased estimate (Yao et al. 2024, tau-bench).
"""

from collections.abc import Iterable
from math import comb
from typing import NamedTuple

from assay_runtime.shares import Estimate, wilson


class Attempts(NamedTuple):
    """Attempts at one task, and the successful ones."""

    n: int
    successes: int


class PassPower(NamedTuple):
    """pass^k over tasks. `excluded` tasks have fewer than k attempts; `value` is None if all have."""

    k: int
    value: Estimate | None
    tasks: int
    excluded: int


def pass_power(tasks: Iterable[Attempts], k: int) -> PassPower:
    """Compute pass^k. The interval is Wilson's with the tasks as the sample."""
    if k < 1:
        raise ValueError("k is at least 1")
    tasks = list(tasks)
    chances = [comb(each.successes, k) / comb(each.n, k) for each in tasks if each.n >= k]
    return PassPower(k, wilson(sum(chances), len(chances)), len(chances), len(tasks) - len(chances))
