"""Agreement with people and corrected rates, against figures worked out by hand and by simulation."""

from typing import Any

import numpy as np
import pytest

from assay_judge.calibration import Confusion, human, ppi, ppi_plus, raw, rogan_gladen, wilson
from assay_judge.labels import LabelError, read
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
    assert found.pages(0.6, 0.7)


@pytest.mark.parametrize(
    ("counts", "kappa", "tpr", "tnr"),
    [((10, 0, 0, 0), None, 1.0, None), ((0, 0, 0, 10), None, None, 1.0), ((5, 0, 0, 5), 1.0, 1.0, 1.0)],
)
def test_what_cannot_be_known_is_none(counts: Any, kappa: Any, tpr: Any, tnr: Any) -> None:
    found = Confusion(*counts)
    assert found.kappa == kappa
    assert (found.tpr and found.tpr.value, found.tnr and found.tnr.value) == (tpr, tnr)
    assert found.pages(0.6, 0.7) is (kappa == 1.0)


def test_wilsons_interval_is_the_books() -> None:
    found = wilson(8, 10)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert wilson(0, 0) is None


def test_ppi_adds_the_judges_error_to_its_rate() -> None:
    judged = np.array([1.0] * 80 + [0.0] * 20)
    labels, verdicts = np.array([1.0, 1, 1, 0]), np.array([1.0, 1, 0, 0])
    assert ppi(judged, labels, verdicts).value == pytest.approx(0.8 + 0.25)
    confusion = Confusion.of([True, True, True, False], [True, True, False, False])
    assert confusion.rectifier == 0.25
    assert confusion.rectifier_variance == pytest.approx(float((labels - verdicts).var(ddof=1)))


def test_a_perfect_judge_needs_no_correction_and_a_useless_one_gets_no_weight() -> None:
    random = np.random.default_rng(5)
    labels = (random.random(400) < 0.7).astype(float)
    judged = (random.random(4_000) < 0.7).astype(float)
    assert ppi(judged, labels, labels) == pytest.approx(raw(judged))
    noise = (random.random(400) < 0.5).astype(float)
    tuned = ppi_plus((random.random(4_000) < 0.5).astype(float), labels, noise)
    assert tuned.value == pytest.approx(human(labels).value, abs=0.01)


def test_a_judge_that_tells_nothing_apart_has_no_rogan_gladen_estimate() -> None:
    assert rogan_gladen(np.ones(10), Confusion(5, 5, 5, 5)) is None


def test_the_published_interval_holds_the_truth_and_the_raw_one_does_not() -> None:
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
        ("event_id,label\nx,good\n", "line 2: event_id is no UUID"),
        (f"event_id,label\n{A},fine\n", "line 2: label must be good or bad"),
        (f"event_id,label\n{A},good\n{A},bad\n", "line 3: this answer has another label above"),
        ("a,b\n1,2\n", "line 2: needs event_id and label"),
    ],
)
def test_a_line_that_is_no_label_is_refused_by_number(text: str, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        read(text)
