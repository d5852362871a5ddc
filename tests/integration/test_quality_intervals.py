"""Means and corrected shares of `quality_by_day` against the statistics of calibrations, computed from the same scores."""

from collections.abc import Iterator
from uuid import uuid4

import numpy as np
import pytest

from assay_judge.calibration import Estimate, Floats, Mean, effective_size, mean_of, ppi
from assay_runtime.shares import wilson
from assay_runtime.store import Client, connect, insert_json_rows
from assay_schema.scores import Metric
from tests.support.sample_rows import FINGERPRINT, iso, lines, score
from tests.support.store import StoreServer

#: Scores of a project, and how probable each was in the sample.
SCORES = {
    "one": ([0.55], [0.5]),
    "one-good": ([1.0], [0.3]),
    "same": ([0.97] * 12, [1.0] * 12),
    "perfect": ([1.0] * 5, [0.1, 0.5, 0.5, 0.5, 0.3]),
    "mixed": ([0.2, 0.4, 0.9, 1.0, 1.0], [0.1, 0.1, 0.5, 0.5, 0.3]),
    "pair": ([0.2, 1.0], [1.0, 1.0]),
}
CORRECTION = Mean(-0.1, 0.2 / 50)


@pytest.fixture(scope="module")
def owner(migrated: StoreServer) -> Iterator[Client]:
    rows = [
        score(faithfulness=value, project=project, base_probability=probability)
        for project, (values, probabilities) in SCORES.items()
        for value, probability in zip(values, probabilities, strict=True)
    ]
    calibrations = [
        {
            "calibration_id": str(uuid4()), "calibrated_at": iso(1_750_000_000_000), "project": project,
            "metric": Metric.FAITHFULNESS.value, "fingerprint": FINGERPRINT, "threshold": 0.9, "labels": 50,
            "rectifier": CORRECTION.value, "rectifier_variance": 0.2,
        }
        for project in SCORES
    ]  # fmt: skip
    with connect(migrated.settings().store) as client:
        insert_json_rows(client, "assay_base.scores", lines(rows), len(rows))
        insert_json_rows(client, "assay_base.calibrations", lines(calibrations), len(calibrations))
        yield client


def columns(project: str) -> tuple[Floats, Floats]:
    values, probabilities = SCORES[project]
    return np.array(values), 1 / np.array(probabilities)


def expected_mean(values: Floats, weights: Floats) -> Estimate:
    """Wilson's interval if all values are equal, else that of the normal distribution."""
    mean = mean_of(values, weights)
    if len(set(values)) == 1:
        size = effective_size(values, weights)
        found = wilson(mean.value * size, size)
        assert found is not None
        return found
    half = 1.96 * mean.variance**0.5
    return Estimate(mean.value, max(0.0, mean.value - half), min(1.0, mean.value + half))


@pytest.mark.parametrize("project", SCORES)
def test_a_day_has_the_interval_of_its_mean(owner: Client, project: str) -> None:
    sql = f"SELECT mean, mean_low, mean_high FROM quality_by_day WHERE project = '{project}'"
    [found] = owner.query(sql).result_rows
    assert found == pytest.approx(expected_mean(*columns(project)), abs=1e-4)
    assert found[2] - found[1] > 0.05, "few answers cannot prove a mean"


@pytest.mark.parametrize("project", SCORES)
def test_a_day_has_the_interval_of_its_corrected_share(owner: Client, project: str) -> None:
    values, weights = columns(project)
    sql = f"SELECT ppi_rate, ppi_low, ppi_high FROM quality_by_day WHERE project = '{project}'"
    [found] = owner.query(sql).result_rows
    assert found == pytest.approx(ppi((values >= 0.9).astype(np.float64), CORRECTION, weights), abs=1e-4)
