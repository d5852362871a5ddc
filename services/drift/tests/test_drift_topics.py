"""Which kind of question grew, and by whom: named with its share before and now, and nothing of the same questions."""

from dataclasses import replace

import numpy as np

from assay_drift.queries import EXAMPLES
from assay_drift.topics import Query, Topic, grown

#: Directions of three kinds of questions.
KINDS = np.eye(3, 16)


def asked(seed: int, before: list[float], after: list[float], n: int = 900) -> tuple[list[Query], np.ndarray]:
    """Queries of 14 days and of 3, each kind with its share, near its direction; the last kind comes from one service."""
    random = np.random.default_rng(seed)
    kinds = np.concatenate([random.choice(3, n, p=shares) for shares in (before, after)])
    days = np.concatenate([random.integers(-14, 0, n), random.integers(0, 3, n)])
    vectors = KINDS[kinds] + random.normal(0, 0.05, (2 * n, 16))
    queries = [
        Query(f"{place}-{kind}", int(day), {"service": "shop" if kind == 2 else "help"})
        for place, (kind, day) in enumerate(zip(kinds, days, strict=True))
    ]
    return queries, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def kinds_of(topics: list[Topic]) -> set[str]:
    return {event_id.partition("-")[2] for topic in topics for event_id in topic.examples}


def test_a_kind_of_question_that_grew_is_told_with_its_share_and_who_asks_it() -> None:
    found = grown(*asked(1, [0.5, 0.45, 0.05], [0.4, 0.3, 0.3]))
    assert found
    topics, [by_service] = found
    assert kinds_of(topics) == {"2"}
    before, after = (sum(getattr(topic, time) for topic in topics) for time in ("before", "after"))
    assert 3 * before < after < 0.35, "a kind is several clusters, of which the smallest may not be told from chance"
    assert all(0 < len(topic.examples) <= EXAMPLES for topic in topics)
    [told] = by_service.told()
    assert told.startswith("mix of services: ")


def test_questions_that_are_all_of_a_new_kind_are_told() -> None:
    """None of them before and every one now: nothing varies within either time."""
    found = grown(*asked(2, [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]))
    assert found
    topics, _ = found
    assert kinds_of(topics) == {"2"}
    assert sum(topic.after for topic in topics) > 0.95
    one = [Query(str(place), day, {}) for place, day in enumerate([-1] * 200 + [0] * 200)]
    vectors = KINDS[[0] * 200 + [1] * 200]
    whole = grown(one, vectors)
    assert whole
    assert [(topic.before, topic.after) for topic in whole[0]] == [(0.0, 1.0)]


def test_names_are_of_one_line() -> None:
    queries, vectors = asked(1, [0.5, 0.45, 0.05], [0.4, 0.3, 0.3])
    renamed = [replace(each, parts={"service": f"{each.parts['service']}\n\u202e" + "x" * 90}) for each in queries]
    found = grown(renamed, vectors)
    assert found
    [told] = found[1][0].told()
    assert "\n" not in told
    assert "\u202e" not in told
    assert len(told) < 150


def test_nothing_is_told_of_the_same_questions() -> None:
    claims = 0
    for seed in range(20):
        found = grown(*asked(seed, [0.5, 0.3, 0.2], [0.5, 0.3, 0.2]))
        assert found
        claims += bool(found[0])
    assert claims <= 1


def test_too_few_questions_say_nothing() -> None:
    assert grown(*asked(3, [0.5, 0.3, 0.2], [0.5, 0.3, 0.2], n=40)) is None
