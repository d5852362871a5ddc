"""Whether people ask about other things than before, on days of any size."""

import numpy as np
import pytest

from assay_drift.embedding import hashed
from assay_drift.queries import Queries
from assay_schema.settings import DriftSettings

SETTINGS = DriftSettings()
KNOWN = "wing flow boundary layer heat transfer shock wave pressure jet panel flutter body buckling cylinder plate"
NEW = "cake recipe sugar flour oven butter bake cream"
CHANGE = 20


def deviations(seed: int, before: int, after: int, new: float = 0.0) -> list[float]:
    """By how much each window after the change differs. The same 225 questions are asked, and a share of new ones."""
    rng = np.random.default_rng(seed)
    known = np.array(hashed([" ".join(rng.choice(KNOWN.split(), rng.integers(6, 14))) for _ in range(225)]))
    fresh = np.array(hashed([" ".join(rng.choice(NEW.split(), 6)) for _ in range(40)]))
    queries, found = Queries(), []
    for day in range(CHANGE + 12):
        shifts = queries.close(day, SETTINGS)
        found += [shift.deviations for shift in shifts if day > CHANGE]
        n = before if day < CHANGE else after
        vectors = known[rng.integers(0, len(known), n)]
        if day >= CHANGE:
            vectors = np.where((rng.random(n) < new)[:, None], fresh[rng.integers(0, len(fresh), n)], vectors)
        queries.add(day, [f"{seed}-{day}-{number}" for number in range(n)], vectors)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(600, 200), (2000, 400), (200, 2000)])
def test_fewer_or_more_of_the_same_questions_are_no_news(before: int, after: int) -> None:
    for seed in range(3):
        assert max(deviations(seed, before, after)) < SETTINGS.query_deviations


def test_a_new_topic_is_found_though_fewer_people_ask() -> None:
    assert max(deviations(1, 600, 200, new=0.1)[:2]) > SETTINGS.query_deviations
