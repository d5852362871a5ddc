"""Pair the calls of a session with those of a reference: as many pairs as possible. Pure.

With the modes `exact` and `ignore` calls fall into classes of equal ones, and counting them is enough. With `subset` and `superset` one
call may match several others, and taking the first that matches can leave a call without a partner that another choice would have had.
There a maximum matching is computed (Hopcroft and Karp 1973).
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Final

from assay_sessions.trajectory_args import Arguments

#: Pairs: the index of a reference call to that of a call.
Pairs = dict[int, int]
_FREE: Final = -1


def in_order(reference: Sequence[Arguments], predicted: Sequence[Arguments]) -> Pairs | None:
    """Pair all reference calls with later and later calls; None if that is impossible.

    The earliest possible partner is always the best choice, with every mode: it leaves the most calls for the rest.
    """
    pairs: Pairs = {}
    at = 0
    for number, wanted in enumerate(reference):
        while at < len(predicted) and not predicted[at].fits(wanted):
            at += 1
        if at == len(predicted):
            return None
        pairs[number] = at
        at += 1
    return pairs


def most_pairs(reference: Sequence[Arguments], predicted: Sequence[Arguments]) -> Pairs:
    """Pair as many calls as possible, in any order. Of equal calls, the first is paired with the first."""
    wanted, made = _by_tool(reference), _by_tool(predicted)
    pairs: Pairs = {}
    for tool, places in wanted.items():
        if others := made.get(tool):
            mode = reference[places[0]].mode
            pair = _maximum if mode in ("subset", "superset") else _equal
            pairs |= pair(reference, places, predicted, others)
    return pairs


def _by_tool(calls: Sequence[Arguments]) -> dict[str, list[int]]:
    places = defaultdict[str, list[int]](list)
    for place, call in enumerate(calls):
        places[call.tool].append(place)
    return places


def _equal(reference: Sequence[Arguments], left: list[int], predicted: Sequence[Arguments], right: list[int]) -> Pairs:
    waiting = defaultdict[str, deque[int]](deque)
    for place in right:
        waiting[predicted[place].text].append(place)
    return {place: waiting[text].popleft() for place in left if waiting.get(text := reference[place].text)}


def _maximum(
    reference: Sequence[Arguments], left: list[int], predicted: Sequence[Arguments], right: list[int]
) -> Pairs:
    partners = _partners([reference[place] for place in left], [predicted[place] for place in right])
    return {left[one]: right[other] for one, other in enumerate(_hopcroft_karp(partners, len(right))) if other != _FREE}


def _partners(reference: list[Arguments], predicted: list[Arguments]) -> list[list[int]]:
    """List for each reference call the calls that match it, in order."""
    if reference[0].mode == "superset":
        return _holders([each.items for each in reference], [each.items for each in predicted])
    partners: list[list[int]] = [[] for _ in reference]
    for place, found in enumerate(_holders([each.items for each in predicted], [each.items for each in reference])):
        for number in found:
            partners[number].append(place)
    return partners


def _holders(parts: list[frozenset[str]], wholes: list[frozenset[str]]) -> list[list[int]]:
    """List for each set the sets that contain it. Only those with its rarest item are looked at."""
    having = defaultdict[str, list[int]](list)
    for place, whole in enumerate(wholes):
        for item in whole:
            having[item].append(place)
    every = list(range(len(wholes)))
    near = (min((having.get(item, []) for item in part), key=len, default=every) for part in parts)
    return [[place for place in places if part <= wholes[place]] for part, places in zip(parts, near, strict=True)]


def _hopcroft_karp(partners: list[list[int]], others: int) -> list[int]:
    """Return for each vertex on the left its partner on the right, or `_FREE`."""
    pair, back = [_FREE] * len(partners), [_FREE] * others
    for one, places in enumerate(partners):  # a greedy start is nearly always already the maximum
        for other in places:
            if back[other] == _FREE:
                pair[one], back[other] = other, one
                break
    while True:
        level = _levels(partners, pair, back)
        if level is None:
            return pair
        untried = [iter(places) for places in partners]
        for one, other in enumerate(list(pair)):
            if other == _FREE:
                _augment(one, untried, level, pair, back)


def _levels(partners: list[list[int]], pair: list[int], back: list[int]) -> list[int] | None:
    """Return the distance of each vertex from a free one; None if no path leads to a free partner."""
    level = [0 if other == _FREE else _FREE for other in pair]
    queue = deque(one for one, other in enumerate(pair) if other == _FREE)
    reached = False
    while queue:
        one = queue.popleft()
        for other in partners[one]:
            following = back[other]
            if following == _FREE:
                reached = True
            elif level[following] == _FREE:
                level[following] = level[one] + 1
                queue.append(following)
    return level if reached else None


def _augment(start: int, untried: list[Iterator[int]], level: list[int], pair: list[int], back: list[int]) -> None:
    """Extend the matching along one shortest path from a free vertex, if there is one."""
    path: list[tuple[int, int]] = []
    one = start
    while True:
        for other in untried[one]:
            following = back[other]
            if following == _FREE:
                for vertex, partner in [*path, (one, other)]:
                    pair[vertex], back[partner] = partner, vertex
                return
            if level[following] == level[one] + 1:
                path.append((one, other))
                one = following
                break
        else:
            if not path:
                return
            one = path.pop()[0]
