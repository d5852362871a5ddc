"""Which part moved: a worse model by name and share, another mix as mix, and nothing of noise."""

import numpy as np
import pytest

from assay_drift.attribution import GROUPS, NAME_CHARS, Split, groups, split
from assay_drift.baseline import Total

Cells = dict[str, dict[int, Total]]


def totals(
    random: np.random.Generator,
    shares: dict[str, float],
    means: dict[str, float],
    n: int,
    days: int = 1,
    noise: tuple[float, float] = (0.0, 0.0),
) -> Cells:
    """Right or wrong answers of groups; the groups' means and their shares may vary by day."""
    found: Cells = {name: {} for name in shares}
    for day in range(days):
        weights = np.array(list(shares.values())) * np.exp(random.normal(0, noise[1], len(shares)))
        off = {name: random.normal(0, noise[0]) for name in shares}
        for name, count in zip(shares, random.multinomial(n // days, weights / weights.sum()).tolist(), strict=True):
            right = int(random.binomial(count, min(1.0, max(0.0, means[name] + off[name]))))
            found[name][day] = Total(count, right, right)
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


def test_nothing_is_told_of_days_that_differ() -> None:
    """A group's level varies by 3 % from day to day, its share of the traffic by a quarter: with many answers that is no news."""
    claims = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        before, after = (totals(random, EVEN, GOOD, 1_000 * days, days, (0.03, 0.25)) for days in (14, 2))
        found = split("model", before, after)
        assert found
        claims += bool(found.told())
    assert claims <= 1


def test_a_worse_model_is_told_where_days_differ() -> None:
    random = np.random.default_rng(7)
    before = totals(random, EVEN, GOOD, 14_000, 14, (0.03, 0.25))
    after = totals(random, EVEN, {**GOOD, "small": 0.6}, 2_000, 2, (0.03, 0.25))
    found = split("model", before, after)
    assert found
    [told] = found.told()
    assert told.startswith("model small: 0.8")


def test_groups_that_all_moved_alike_are_not_named() -> None:
    worse = {name: mean - 0.3 for name, mean in GOOD.items()}
    claims = [changed(seed, (EVEN, EVEN), (GOOD, worse)).told() for seed in range(60)]
    assert sum(bool(each) for each in claims) <= 1


def test_small_groups_that_moved_as_the_large_one_did_are_not_named() -> None:
    """Six of 10 to 30 samples beside a large one: some are worse than the rest by chance, and none is news."""
    for before, after, limit in ((10, 100, 1), (30, 30, 4)):
        sizes = (
            {f"small {place}": n for place in range(6)} | {"large": of_large}
            for n, of_large in ((before, 3_000), (after, 700))
        )
        claims = 0
        shares = [{name: size / sum(each.values()) for name, size in each.items()} for each in sizes]
        for seed in range(300):
            random = np.random.default_rng(seed)
            found = split(
                "source",
                totals(random, shares[0], dict.fromkeys(shares[0], 0.75), 6 * before + 3_000),
                totals(random, shares[1], dict.fromkeys(shares[1], 0.6), 6 * after + 700),
            )
            assert found
            claims += any(not told.startswith("mix") for told in found.told())
        assert claims <= limit, before


def constant(value: float, n: int, days: int) -> dict[int, Total]:
    return {day: Total(n, n * value, n * value**2) for day in range(days)}


def test_a_model_that_was_swapped_is_told_though_each_was_always_right_or_always_wrong() -> None:
    found = split("model", {"old": constant(1.0, 40, 14)}, {"new": constant(0.0, 100, 3)})
    assert found
    assert found.told() == ["mix of models: new from 0% to 100% of the traffic, 100% of the change"]


def test_a_service_that_fails_wholly_beside_one_that_never_does_is_told() -> None:
    good, bad = constant(1.0, 40, 14), constant(0.0, 100, 3)
    found = split("service", {"one": good, "two": good}, {"one": bad, "two": constant(1.0, 100, 3)})
    assert found
    assert found.told() == ["service one: 1 to 0, 100% of the change"]
    alike = split("service", {"one": good, "two": good}, {"one": bad, "two": bad})
    assert alike
    assert alike.told() == []


def test_a_mix_is_no_surer_of_two_groups_than_of_their_shares() -> None:
    """The shares of two groups are one number: its chance counts once for both, not as two chances of half of it."""
    claims = 0
    for seed in range(400):
        shares = {"web": 0.5, "api": 0.5}
        found = changed(seed, (shares, shares), ({"web": 0.99, "api": 0.01}, {"web": 0.99, "api": 0.01}), 400)
        claims += bool(found.told())
    assert claims <= 1


def test_a_group_that_is_new_changed_the_mix() -> None:
    [told] = changed(4, ({"old": 1.0}, {"old": 0.6, "new": 0.4}), ({"old": 0.9}, {"old": 0.9, "new": 0.4})).told()
    assert told.startswith("mix of models: ")


def test_a_group_that_has_no_other_to_be_compared_with_is_not_named() -> None:
    before, after = {"old": constant(0.8, 70, 14)}, {"old": constant(0.7, 300, 3), "new": constant(0.7, 7, 3)}
    found = split("model", before, after)
    assert found
    assert not any("old" in told for told in found.told())


def test_few_samples_and_a_single_group_say_nothing() -> None:
    few = {"one": {0: Total(10, 9, 9)}, "two": {0: Total(10, 1, 1)}}
    assert split("model", few, few) is None
    one = {"one": {0: Total(500, 400, 400)}}
    assert split("model", one, one) is None


def test_names_are_bounded_in_number_and_length_and_of_one_line() -> None:
    many = groups((f"model {place}\n\u202e" + "x" * 500, 0, 50, 25.0, 25.0) for place in range(400))
    assert max(map(len, many)) == NAME_CHARS
    assert not any("\n" in name or "\u202e" in name for name in many)
    found = split("model", many, many)
    assert found
    assert len(found.parts) == GROUPS + 1
