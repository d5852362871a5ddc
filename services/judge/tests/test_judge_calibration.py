"""Agreement with people and corrected rates, against figures worked out by hand and by simulation."""

from typing import Any

import numpy as np
import pytest

from assay_judge.calibration import Confusion, Mean, human, mean_of, ppi, raw, rectifier, rogan_gladen, wilson
from assay_judge.labels import LabelError, read
from assay_schema.settings import DriftSettings
from tests.bench.calibration import coverage

A, B = "019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6d", "019b7f2e-5c00-7a3b-8c4d-1e2f3a4b5c6e"


def test_kappa_is_agreement_beyond_chance() -> None:
    found = Confusion(true_positives=20, false_negatives=5, false_positives=10, true_negatives=15)
    assert found.agreement == 0.7
    assert found.kappa == pytest.approx(0.4)


def test_high_agreement_is_no_high_kappa_when_most_are_good() -> None:
    found = Confusion(true_positives=171, false_negatives=9, false_positives=4, true_negatives=16)
    assert found.agreement == pytest.approx(0.935)
    assert found.kappa == pytest.approx(0.675, abs=0.01)


@pytest.mark.parametrize(
    ("counts", "kappa", "tpr", "tnr"),
    [((10, 0, 0, 0), None, 1.0, None), ((0, 0, 0, 10), None, None, 1.0), ((5, 0, 0, 5), 1.0, 1.0, 1.0)],
)
def test_what_cannot_be_known_is_none(counts: Any, kappa: Any, tpr: Any, tnr: Any) -> None:
    found = Confusion(*counts)
    assert found.kappa == kappa
    assert (found.tpr and found.tpr.value, found.tnr and found.tnr.value) == (tpr, tnr)
    assert (found.kappa_low is None) is (kappa is None)


def test_the_lower_end_of_kappa_is_the_textbooks() -> None:
    found = Confusion(true_positives=2000, false_negatives=500, false_positives=1000, true_negatives=1500)
    # Fleiss, Cohen and Everitt (1969): kappa 0.4, standard error 0.0128 for 5,000 answers
    assert found.kappa_low == pytest.approx(0.4 - 1.96 * 0.0128, abs=2e-3)


def test_two_labels_wake_nobody() -> None:
    settings = DriftSettings()
    few = Confusion(true_positives=1, false_negatives=0, false_positives=0, true_negatives=1)
    assert few.kappa == 1.0
    assert [line.split(",")[0] for line in few.lacks(settings)][:2] == ["2 labels", "1 answers labelled bad by people"]
    good = Confusion(true_positives=150, false_negatives=4, false_positives=2, true_negatives=44)
    assert good.lacks(settings) == []
    lucky = Confusion(true_positives=43, false_negatives=2, false_positives=2, true_negatives=8)
    assert lucky.kappa is not None
    assert lucky.kappa > settings.kappa_min
    assert [line.split()[0] for line in lucky.lacks(settings)] == ["kappa", "tnr"], "it may well be below"


def test_wilsons_interval_is_the_books() -> None:
    found = wilson(8, 10)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert wilson(0, 0) is None


def test_ppi_adds_the_judges_error_to_its_rate() -> None:
    judged = np.array([1.0] * 80 + [0.0] * 20)
    labels, verdicts = np.array([1.0, 1, 1, 0]), np.array([1.0, 1, 0, 0])
    found = rectifier(labels, verdicts)
    errors = np.array([0.0, 0, 1, 0, 1, -1, 0, 0])
    assert found == pytest.approx((errors.mean(), errors.var(ddof=1) / 8))
    assert ppi(judged, found).value == pytest.approx(0.8 + 1 / 8)


def test_a_judge_that_made_no_error_is_not_taken_for_one_that_makes_none() -> None:
    labels, judged = np.array([1.0] * 35 + [0.0] * 15), np.array([1.0] * 700 + [0.0] * 300)
    corrected, alone = ppi(judged, rectifier(labels, labels)), raw(judged)
    assert corrected.value == pytest.approx(alone.value)
    assert corrected.high - corrected.low > 1.5 * (alone.high - alone.low)


def test_answers_count_by_the_inverse_of_their_probability() -> None:
    values, weights = np.array([1.0, 0.0, 0.0, 1.0]), np.array([20.0, 1.0, 1.0, 20.0])
    copies = np.repeat(values, weights.astype(int))
    assert mean_of(values, weights).value == pytest.approx(copies.mean())
    assert mean_of(values, weights).variance > mean_of(copies).variance, "they are four, not forty-two"
    assert mean_of(values, np.full(4, 7.0)) == pytest.approx(mean_of(values))


def test_answers_that_are_alike_may_be_given_once_with_their_number() -> None:
    values, weights, counts = np.array([1.0, 0.0, 1.0]), np.array([1.0, 5.0, 20.0]), np.array([40.0, 7.0, 3.0])
    times = counts.astype(int)
    all_values, all_weights = np.repeat(values, times), np.repeat(weights, times)
    table, correction = Confusion(20, 3, 2, 15), Mean(-0.02, 0.001)
    assert mean_of(values, weights, counts) == pytest.approx(mean_of(all_values, all_weights))
    assert raw(values, weights, counts) == pytest.approx(raw(all_values, all_weights))
    assert ppi(values, correction, weights, counts) == pytest.approx(ppi(all_values, correction, all_weights))
    assert rogan_gladen(values, table, weights, counts) == pytest.approx(rogan_gladen(all_values, table, all_weights))
    assert raw(values, None, counts) == pytest.approx(raw(all_values))


def test_no_rate_leaves_what_is_possible() -> None:
    assert ppi(np.ones(100), Mean(0.1, 0.01))[:3] == (1.0, pytest.approx(1 + 0.1 - 0.196, abs=1e-3), 1.0)


def test_a_judge_that_tells_nothing_apart_has_no_rogan_gladen_estimate() -> None:
    assert rogan_gladen(np.ones(10), Confusion(5, 5, 5, 5)) is None


def test_the_published_interval_holds_the_truth_and_the_raw_one_does_not() -> None:
    assert coverage(0.9, 0.95, 0.8, runs=400, labelled=50)["PPI"][0] >= 0.93
    found = {name: share for name, (share, _) in coverage(0.9, 0.95, 0.8, runs=600).items()}
    assert found["PPI"] >= 0.93
    assert found["raw"] < 0.1
    assert found["Rogan-Gladen"] >= 0.93


@pytest.mark.parametrize(
    "text",
    [
        f'{{"event_id": "{A}", "label": "good"}}\n\n{{"event_id": "{B}", "label": false, "who": "x"}}\n',
        f"label,event_id\ngood,{A.upper()}\nbad,{B}\n",
        f"event_id,label\n{A},1\n{B},0\n",
    ],
)
def test_labels_are_read_from_json_lines_and_csv(text: str) -> None:
    assert read(text) == {A: True, B: False}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: not JSON"),
        ('{"event_id": "x"}', "line 1: needs event_id and label"),
        ("event_id,label\nx,good\n", "line 2: event_id is not a UUID"),
        (f"event_id,label\n{A},fine\n", "line 2: label must be good or bad"),
        (f"event_id,label\n{A},good\n{A},bad\n", "line 3: this has a different label in an earlier line"),
        ("a,b\n1,2\n", "line 2: needs event_id and label"),
    ],
)
def test_a_line_that_is_no_label_is_refused_by_number(text: str, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        read(text)


def test_labels_that_are_all_alike_are_not_certain() -> None:
    every = np.ones(50)
    for rate in (human(every), raw(every), human(every, np.linspace(1, 2, 50))):
        assert (rate.value, rate.high) == (1.0, 1.0)
        assert 0.9 < rate.low < 0.94
    assert human(every[:10]).low < human(every).low
