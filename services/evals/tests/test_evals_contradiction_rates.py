"""Rates of contradictions: against definitions by loops, figures by hand, and simulations."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay_evals.contradictions.rate import JudgedPair, Rate, corrected_rate, difference, pair_rate, query_rate
from assay_runtime.shares import wilson
from tests.bench.contradictions import (
    ERROR_WORLDS,
    MORE_OFTEN,
    QUERY_WORLDS,
    bounds_coverage,
    clustered,
    error_coverage,
    heavy_queries,
    label_coverage,
    misjudged,
    pair_coverage,
    partly_judged,
    query_coverage,
)


def pair(
    query: int, documents: tuple[str, str], positive: bool | None, probability: float = 1.0, **label: object
) -> JudgedPair:
    blank = JudgedPair(f"q{query}", documents, "all", probability, positive)
    return replace(blank, **label)  # type: ignore[arg-type]


def table(verdicts: Sequence[Sequence[bool | None]], probability: float = 1.0) -> list[JudgedPair]:
    """Pairs of one row per query, whose documents are all different."""
    return [
        pair(query, (f"{query}/{place}", f"{query}/{place}'"), verdict, probability)
        for query, row in enumerate(verdicts)
        for place, verdict in enumerate(row)
    ]


def drawn(seed: int, n: int = 30) -> list[JudgedPair]:
    """Pairs that share queries and documents, some documents with themselves, some not judged."""
    dice = random.Random(seed)  # noqa: S311
    return [
        pair(
            dice.randrange(8),
            (f"d{dice.randrange(6)}", f"d{dice.randrange(6)}"),
            dice.choice((True, False, False, None)),
            dice.choice((1.0, 0.5, 0.1)),
        )
        for _ in range(n)
    ]


def effective_size(pairs: Iterable[JudgedPair]) -> float:
    """The definition, by loops over all pairs of pairs."""
    judged = [each for each in pairs if each.positive is not None]
    total = sum(1 / each.probability for each in judged)
    weights = [1 / each.probability / total for each in judged]
    share = sum(weight for weight, each in zip(weights, judged, strict=True) if each.positive)
    residuals = [weight * (bool(each.positive) - share) for weight, each in zip(weights, judged, strict=True)]
    within = across = 0.0
    by_query, by_document, by_couple = Counter[str](), Counter[str](), Counter[frozenset[str]]()
    for one, weight, residual in zip(judged, weights, residuals, strict=True):
        by_query[one.query] += weight  # type: ignore[assignment]
        by_couple[frozenset(one.documents)] += weight  # type: ignore[assignment]
        for name in one.documents:
            by_document[name] += weight / 2  # type: ignore[assignment]
        for other, another in zip(judged, residuals, strict=True):
            if one.query == other.query:
                within += residual * another
            elif set(one.documents) & set(other.documents):
                across += residual * another
    within *= len(by_query) / max(1, len(by_query) - 1)
    cluster = max(sum(each**2 for each in counts.values()) for counts in (by_query, by_document))
    spread = share * (1 - share)
    couples = 1 / sum(each**2 for each in by_couple.values())
    if spread < 1e-12:
        return min(couples, 1 / cluster)
    return min(couples, spread / (within + max(0.0, across) + 2 * cluster**2 * spread))


@pytest.mark.parametrize("seed", range(40))
def test_pairs_that_share_their_query_or_a_document_are_dependent(seed: int) -> None:
    assert pair_rate(drawn(seed)).effective_n == pytest.approx(effective_size(drawn(seed)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([pair_rate, query_rate]))
def test_the_order_of_pairs_and_of_their_documents_does_not_matter(
    seed: int, rate: Callable[[list[JudgedPair]], Rate]
) -> None:
    pairs = drawn(seed)
    order = random.Random(seed).sample(pairs, len(pairs))  # noqa: S311
    turned = [replace(each, documents=each.documents[::-1]) for each in order]
    one, other = rate(pairs), rate(turned)
    assert (one.judged, one.intended, one.method) == (other.judged, other.intended, other.method)
    assert (one.estimate, one.lower, one.upper) == pytest.approx((other.estimate, other.lower, other.upper))
    if one.estimate is not None and one.lower is not None and one.upper is not None:
        assert 0 <= one.lower <= one.estimate <= one.upper <= 1


def test_a_pair_counts_by_the_inverse_of_its_probability() -> None:
    rare = [pair(n, (f"a{n}", f"b{n}"), n % 2 == 0, 0.1) for n in range(40)]
    common = [pair(100 + n, (f"c{n}", f"d{n}"), False) for n in range(100)]
    assert pair_rate(rare + common).estimate == pytest.approx(20 * 10 / (40 * 10 + 100))
    halved = [replace(each, probability=each.probability / 2) for each in rare + common]
    assert pair_rate(halved).upper == pytest.approx(pair_rate(rare + common).upper), "only the ratios count"


@pytest.mark.parametrize("verdict", [True, False])
def test_a_pair_may_outweigh_all_others(verdict: bool) -> None:
    found = pair_rate([pair(0, ("a", "b"), verdict, 1e-20), *table([[not verdict]] * 20)])
    assert found.estimate == pytest.approx(float(verdict))
    assert (found.lower, found.upper) == (pytest.approx(0, abs=0.1), pytest.approx(1, abs=0.1)), "it is one pair"


def test_pairs_that_were_not_judged_lower_the_coverage_and_nothing_else() -> None:
    judged = table([[True, False, False], [False, False, False], [False, True, False]])
    partial = pair_rate([*judged, *table([[None, None, None]] * 7)])
    assert (partial.judged, partial.intended, partial.coverage) == (9, 30, 0.3)
    assert replace(partial, intended=9, coverage=1.0) == pair_rate(judged)


@pytest.mark.parametrize("rate", [pair_rate, query_rate])
def test_without_anything_judged_there_is_no_rate(rate: Callable[[list[JudgedPair]], Rate]) -> None:
    nothing = rate(table([[None], [None]]))
    assert (nothing.estimate, nothing.lower, nothing.upper, nothing.coverage) == (None, None, None, 0.0)
    assert rate([]).coverage is None


def test_without_findings_the_upper_bound_is_of_the_queries_not_of_the_pairs() -> None:
    many, few = pair_rate(table([[False] * 50] * 60)), pair_rate(table([[False]] * 60))
    assert (many.estimate, many.lower) == (0.0, 0.0)
    assert many.upper == pytest.approx(few.upper)
    bound = wilson(0, 60)
    assert bound is not None
    assert many.upper is not None
    assert bound.high < many.upper < 1.1 * bound.high


def test_a_pair_of_documents_that_recurs_is_one_pair() -> None:
    recurring = [pair(query, (f"d{n}", f"e{n}"), n == 0) for query in range(50) for n in range(10)]
    assert pair_rate(recurring).effective_n <= 10
    assert query_rate([pair(query, ("d", "e"), True) for query in range(50)]).effective_n <= 1


def test_pairs_of_one_query_say_as_much_as_one_if_they_agree() -> None:
    agreeing = pair_rate(table([[True] * 10] * 6 + [[False] * 10] * 54))
    assert agreeing.effective_n == pytest.approx(60, rel=0.1)
    spread = pair_rate(table([[True] + [False] * 9] * 60))
    assert spread.effective_n > 250


def test_questions_that_one_document_decides_are_dependent() -> None:
    def asked(wrong: Callable[[int], str]) -> Rate:
        """Of 60 questions, 12 retrieve a wrong document, which contradicts two of their own documents."""
        return query_rate([pair(n, (wrong(n), f"{n}/{place}"), n < 12) for n in range(60) for place in range(2)])

    own, common = asked(lambda n: f"wrong {n}"), asked(lambda n: "wrong" if n < 12 else f"right {n}")
    assert own.estimate == common.estimate == 0.2
    assert own.effective_n == pytest.approx(60, rel=0.1)
    assert common.effective_n < 5, "that document could as well be right"
    assert common.upper is not None
    assert own.upper is not None
    assert common.upper > 2 * own.upper


def test_without_a_contradiction_questions_of_the_same_documents_bound_less() -> None:
    own = query_rate([pair(n, (f"{n}a", f"{n}b"), False) for n in range(60)])
    common = query_rate([pair(n, (f"hot {n % 5}", f"{n}b"), False) for n in range(60)])
    assert own.effective_n == pytest.approx(60, rel=0.1)
    assert common.effective_n == pytest.approx(1 / (0.2 / 2 + 1 / 60 / 2))


@pytest.mark.parametrize("name", ["50 queries, 200 documents, 3 % wrong", "50 queries, 60 documents, 10 % wrong"])
def test_the_interval_of_questions_holds_the_rate_where_documents_are_wrong(name: str) -> None:
    assert query_coverage(QUERY_WORLDS[name], 60)["printed"][0] >= 0.93


def test_one_query_bounds_nothing() -> None:
    assert pair_rate(table([[True, False, False, False]])).lower == pytest.approx(0, abs=0.01)
    assert pair_rate(table([[True, False, False, False]])).upper == pytest.approx(1, abs=0.01)


def test_a_query_that_was_judged_in_part_is_left_out_even_with_a_finding() -> None:
    rows: list[list[bool | None]] = [[True, True], [False, False], [True, None], [False, None]]
    found = query_rate(table(rows))
    assert (found.estimate, found.judged, found.intended, found.coverage) == (0.5, 2, 4, 0.5)


def labelled(verdict: bool, label: bool, n: int, start: int, probability: float | None) -> list[JudgedPair]:
    return [
        pair(start + k, (f"{start + k}a", f"{start + k}b"), verdict, label=label, label_probability=probability)
        for k in range(n)
    ]


def test_the_corrected_rate_is_each_verdicts_share_of_true_contradictions() -> None:
    pairs = labelled(True, True, 6, 0, 0.5) + labelled(True, False, 4, 100, 0.5) + table([[True]] * 10)
    pairs += labelled(False, True, 2, 200, 0.1) + labelled(False, False, 38, 300, 0.1)
    pairs += [replace(each, query=f"n{each.query}") for each in table([[False]] * 340)]
    found = corrected_rate(pairs)
    assert found is not None
    assert found.estimate == pytest.approx(20 / 400 * 0.6 + 380 / 400 * 0.05)
    assert found.lower is not None
    assert found.upper is not None
    assert 0 < found.lower < found.estimate < found.upper
    assert (found.judged, found.method) == (400, "ppi")


def test_a_label_counts_by_the_inverse_of_its_probability() -> None:
    pairs = labelled(True, True, 5, 0, 0.1) + labelled(True, False, 5, 100, 0.5)
    found = corrected_rate(pairs)
    assert found is not None
    assert found.estimate == pytest.approx(50 / 60)


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([], id="nothing"),
        pytest.param(table([[True, False]] * 9), id="no labels"),
        pytest.param(labelled(True, True, 9, 0, 0.5) + table([[False]] * 9), id="no label of a verdict that occurs"),
        pytest.param(labelled(True, True, 9, 0, None), id="labels without a probability"),
        pytest.param([replace(each, positive=None) for each in labelled(True, True, 9, 0, 0.5)], id="not judged"),
    ],
)
def test_without_labels_of_each_verdict_there_is_no_corrected_rate(pairs: list[JudgedPair]) -> None:
    assert corrected_rate(pairs) is None


def failed(n: int, start: int, *, label: bool | None = None, probability: float | None = None) -> list[JudgedPair]:
    return [
        pair(
            start + k, (f"{start + k}a", f"{start + k}b"), None, failed=True, label=label, label_probability=probability
        )
        for k in range(n)
    ]


def test_labels_of_pairs_with_an_error_enter_the_corrected_rate_with_their_share() -> None:
    judged = labelled(True, True, 10, 0, 1.0) + labelled(False, False, 70, 100, 1.0)
    errors = failed(6, 300, label=True, probability=0.5) + failed(4, 400, label=False, probability=0.5)
    found = corrected_rate([*judged, *errors, *failed(10, 500)])
    assert found is not None
    assert found.estimate == pytest.approx(80 / 100 * 10 / 80 + 20 / 100 * 6 / 10)
    assert (found.judged, found.errors, found.intended, found.method) == (80, 20, 100, "ppi")
    assert found.upper is not None
    assert found.lower is not None
    assert 0 < found.lower < found.estimate < found.upper < 1


def test_until_a_pair_with_an_error_has_a_label_the_corrected_interval_allows_for_all_that_they_may_be() -> None:
    judged = labelled(True, True, 100, 0, 1.0) + labelled(False, False, 700, 1_000, 1.0)
    alone, found = corrected_rate(judged), corrected_rate([*judged, *failed(200, 3_000)])
    assert alone is not None
    assert found is not None
    assert found.estimate == alone.estimate
    assert found.method == "ppi_bounds"
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower < 100 / 1_000 < 300 / 1_000 < found.upper


def test_errors_bound_the_rate_from_none_to_all_of_them_being_contradictions() -> None:
    pairs = [*table([[True]] * 5 + [[False]] * 85), *failed(10, 200)]
    found = pair_rate(pairs)
    assert (found.estimate, found.judged, found.errors) == (pytest.approx(5 / 90), 90, 10)
    none, every = (pair_rate([replace(each, positive=each.positive or (each.failed and value)) for each in pairs])
                   for value in (False, True))  # fmt: skip
    assert found.bounds == (none.lower, every.upper)
    assert pair_rate(table([[True, False]])).bounds is None


def test_a_finding_in_a_question_with_an_error_counts_in_the_bounds_of_questions() -> None:
    rows = table([[True, True]] * 40 + [[False, False]] * 40)
    errors = [
        replace(each, positive=None, failed=True) if each.positive and each.documents[0].endswith("0") else each
        for each in rows
    ]
    found = query_rate(errors)
    assert (found.estimate, found.errors) == (0.0, 40), "each question with a finding has an error, so it is left out"
    assert found.bounds is not None
    assert found.bounds[0] < 0.5 < found.bounds[1]
    assert found.bounds[0] > 0.35, "the finding is known"


def test_a_question_that_the_budget_left_is_in_no_bound() -> None:
    rows: list[list[bool | None]] = [[True, True], [False, False], [None, None]]
    found = query_rate([*table(rows), *failed(1, 50)])
    assert (found.judged, found.intended, found.errors) == (2, 4, 1)
    assert found.bounds is not None


def test_if_every_question_has_an_error_there_are_bounds_without_a_rate() -> None:
    found = query_rate(
        [*table([[True]] * 30), *(replace(each, query=f"q{k}") for k, each in enumerate(failed(30, 90)))]
    )
    assert (found.estimate, found.errors) == (None, 30)
    assert found.bounds is not None
    assert found.bounds[0] > 0.8
    assert pair_rate(failed(3, 0)).bounds is None, "nothing was judged"


def test_labels_without_an_error_do_not_prove_that_the_judge_makes_none() -> None:
    pairs = labelled(True, True, 30, 0, 0.5) + labelled(False, False, 30, 100, 0.1)
    pairs += [replace(each, query=f"n{each.query}") for each in table([[True]] * 30 + [[False]] * 270)]
    found, raw = corrected_rate(pairs), pair_rate(pairs)
    assert found is not None
    assert found.estimate == pytest.approx(raw.estimate)
    assert raw.upper is not None
    assert raw.lower is not None
    assert found.upper is not None
    assert found.lower is not None
    assert found.upper - found.lower > 1.2 * (raw.upper - raw.lower)


def test_a_difference_is_of_the_pairs_that_were_judged_both_times() -> None:
    old = table([[True, False]] * 50 + [[True, True]])
    new = [replace(each, positive=each.positive and int(each.query[1:]) >= 20) for each in old[:100]]
    new += [replace(each, positive=None) for each in old[100:]]
    found = difference(old, [replace(each, documents=each.documents[::-1]) for each in new])
    assert (found.estimate, found.judged, found.intended) == (pytest.approx(-0.2), 100, 102)
    assert found.upper is not None
    assert found.upper < 0
    back = difference(new, old)
    assert (back.estimate, back.lower) == (pytest.approx(0.2), pytest.approx(-found.upper))


def test_a_difference_needs_pairs_in_common_and_each_once() -> None:
    one, other = table([[True]]), [pair(7, ("x", "y"), True)]
    assert (difference(one, other).estimate, difference(one, other).coverage) == (None, 0.0)
    with pytest.raises(ValueError, match="twice"):
        difference(one, [*other, replace(other[0], documents=("y", "x"))])


def test_equal_verdicts_leave_room_for_a_change_that_they_did_not_show() -> None:
    same = table([[True, False, False]] * 40)
    found = difference(same, same)
    assert found.estimate == 0
    assert found.lower == pytest.approx(-(found.upper or 0))
    assert found.upper == pytest.approx(pair_rate(table([[False]] * 40)).upper)


@pytest.mark.parametrize("world", [clustered, partly_judged])
def test_printed_intervals_hold_the_truth_and_naive_ones_do_not(
    world: Callable[..., tuple[list[JudgedPair], float]],
) -> None:
    found = pair_coverage(world, 40)
    assert found["printed"][0] >= 0.9
    assert found["naive"][0] < 0.87


def test_the_corrected_interval_holds_the_truth_where_the_judges_own_does_not() -> None:
    found = label_coverage(misjudged, 40)
    assert found["printed"][0] >= 0.9
    assert found["naive"][0] < 0.2


@pytest.mark.parametrize("labels", [100, 0])
def test_the_corrected_interval_holds_the_truth_where_the_judge_fails_on_contradictions(labels: int) -> None:
    found = error_coverage(
        ERROR_WORLDS[f"900 labels and {labels} of errors, errors of contradictions 10 times as often"], 40
    )
    assert found["printed"][0] >= 0.9
    assert found["naive"][0] < 0.8


def test_the_bounds_of_questions_hold_the_truth_where_questions_differ_in_size_and_the_judge_fails() -> None:
    found = bounds_coverage(heavy_queries, MORE_OFTEN, 40, query_rate)
    assert found["printed"][0] >= 0.9
    assert found["naive"][0] < 0.7


def test_the_corrected_rate_is_unbiased() -> None:
    found = [corrected_rate(misjudged(np.random.default_rng(seed))[0]) for seed in range(40)]
    rates = [each.estimate for each in found if each is not None and each.estimate is not None]
    assert np.mean(rates) == pytest.approx(0.033, abs=3 * np.std(rates) / np.sqrt(len(rates)))
