"""Which part moved: a worse model by name and share, another mix as mix, and nothing of noise."""

import numpy as np
import pytest

from assay_drift.attribution import GROUPS, NAME_CHARS, Split, groups, split
from assay_drift.baseline import Total


def totals(random: np.random.Generator, shares: dict[str, float], means: dict[str, float], n: int) -> dict[str, Total]:
    """Right or wrong answers of groups."""
    found: dict[str, Total] = {name: Total() for name in shares}
    for name in random.choice(list(shares), size=n, p=list(shares.values())):
        found[str(name)].add(float(random.random() < means[str(name)]))
    return found


def changed(
    seed: int,
    shares: tuple[dict[str, float], dict[str, float]],
    means: tuple[dict[str, float], dict[str, float]],
    n: int = 2_000,
) -> Split:
    random = np.random.default_rng(seed)
    found = split("model", totals(random, shares[0], means[0], n), totals(random, shares[1], means[1], n))
    assert found
    return found


EVEN = {"large": 0.5, "small": 0.3, "tiny": 0.2}
GOOD = {"large": 0.9, "small": 0.85, "tiny": 0.8}


def test_the_parts_add_up_to_the_change() -> None:
    found = changed(1, (EVEN, {"large": 0.2, "small": 0.5, "tiny": 0.3}), (GOOD, {**GOOD, "small": 0.6}))
    assert sum(part.within + part.mix for part in found.parts) == pytest.approx(found.change, abs=1e-9)


def test_a_worse_model_is_told_by_name_and_share() -> None:
    [told] = changed(2, (EVEN, EVEN), (GOOD, {**GOOD, "small": 0.5})).told()
    assert told.startswith("model small: 0.8")
    assert told.endswith("% of the change")


def test_other_traffic_is_told_as_mix_and_no_group_as_worse() -> None:
    means = {"web": 0.9, "api": 0.6}
    found = changed(3, ({"web": 0.8, "api": 0.2}, {"web": 0.5, "api": 0.5}), (means, means), 8_000)
    [told] = found.told()
    assert told.startswith("mix of models: ")
    assert not any(part.moved for part in found.parts)
    assert found.mix / found.change == pytest.approx(1, abs=0.25)


def test_nothing_is_told_of_nothing() -> None:
    claims = [changed(seed, (EVEN, EVEN), (GOOD, GOOD), 600).told() for seed in range(60)]
    assert sum(bool(each) for each in claims) == 0


def test_a_group_that_is_new_changed_the_mix() -> None:
    [told] = changed(4, ({"old": 1.0}, {"old": 0.6, "new": 0.4}), ({"old": 0.9}, {"old": 0.9, "new": 0.4})).told()
    assert told.startswith("mix of models: ")


def test_few_samples_and_a_single_group_say_nothing() -> None:
    few = {"one": Total(10, 9, 9), "two": Total(10, 1, 1)}
    assert split("model", few, few) is None
    one = {"one": Total(500, 400, 400)}
    assert split("model", one, one) is None


def test_names_are_bounded_in_number_and_length_and_of_one_line() -> None:
    many = groups((f"model {place}\n\u202e" + "x" * 500, 50, 25.0, 25.0) for place in range(400))
    assert max(map(len, many)) == NAME_CHARS
    assert not any("\n" in name or "\u202e" in name for name in many)
    found = split("model", many, many)
    assert found
    assert len(found.parts) == GROUPS + 1
