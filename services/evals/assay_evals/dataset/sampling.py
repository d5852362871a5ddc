"""Representative samples of a dataset: stratified, deterministic and nested. Pure."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from assay_evals.dataset.case_slices import case_slices
from assay_evals.dataset.model import Case


def sampled(cases: Sequence[Case], count: int, *, seed: int = 0, by: Sequence[str] = ("query_type",)) -> list[Case]:
    """Return `count` cases in their order.

    Each stratum (cases equal in the fields `by`) has its share, as far as whole cases allow. The choice depends only on
    the ids and the seed, not on the order; a smaller sample is a subset of a larger one.
    """
    strata: dict[tuple[tuple[str, ...], ...], list[Case]] = defaultdict(list)
    for case in cases:
        values: dict[str, list[str]] = {"query_type": [case.query_type], **case_slices(case)}
        strata[tuple(tuple(sorted(values[field])) for field in by)].append(case)
    ranked: list[tuple[float, str, str]] = []
    for members in strata.values():
        ordered = sorted((_hash(case.id, seed), case.id) for case in members)
        ranked += [((place + 0.5) / len(ordered), *each) for place, each in enumerate(ordered)]
    chosen = {case_id for _, _, case_id in sorted(ranked)[:count]}
    return [case for case in cases if case.id in chosen]


def _hash(case_id: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}\0{case_id}".encode()).hexdigest()
