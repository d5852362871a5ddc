"""Random pairs of trajectories: short, of few tools, so that calls repeat, differ in one argument and come in another order."""

import random
from typing import Any

from assay_sessions.trajectory import ToolCall

SEED, CASES = 20261125, 10_000
_ARGS: tuple[dict[str, Any], ...] = (
    {},
    {"path": "a.py"},
    {"path": "b.py"},
    {"path": "a.py", "limit": 10},
    {"path": "a.py", "limit": 10.0},
    {"path": "a.py", "limit": "10"},
    {"path": None},
    {"range": [1, 2]},
    {"range": [2, 1]},
    {"options": {"deep": {"x": 1, "y": [None, "é"]}}},
    {"options": {"deep": {"y": [None, "é"], "x": 1}}},
    {"all": True},
    {"all": False},
)


def trajectory_pairs() -> list[tuple[list[ToolCall], list[ToolCall]]]:
    """Return the pairs (reference, session). Half of the sessions are the reference with calls moved, dropped, changed or repeated."""
    source = random.Random(SEED)
    return [_pair(source) for _ in range(CASES)]


def _pair(source: random.Random) -> tuple[list[ToolCall], list[ToolCall]]:
    reference = [_call(source) for _ in range(source.randint(0, 6))]
    if source.random() < 0.5:
        return reference, [_call(source) for _ in range(source.randint(0, 6))]
    predicted = list(reference)
    for _ in range(source.randint(0, 3)):
        place = source.randint(0, len(predicted))
        match source.randint(0, 3):
            case 0:
                predicted.insert(place, _call(source))
            case 1 if predicted:
                predicted.pop(place % len(predicted))
            case 2 if predicted:
                predicted.insert(place, predicted[place % len(predicted)])
            case 3:
                source.shuffle(predicted)
    return reference, predicted


def _call(source: random.Random) -> ToolCall:
    return ToolCall(source.choice(("read", "edit", "bash")), source.choice(_ARGS))
