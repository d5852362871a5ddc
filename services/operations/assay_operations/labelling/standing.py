"""The state of a queue in one answer: progress, agreement of labellers, and of the judge with them."""

from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.errors import OperationError
from assay_operations.judging.calibrate import Calibration
from assay_operations.labelling.agreement import (
    Agreement,
    Progress,
    Verdicts,
    agreement_of,
    by_event,
    given_labels,
    judge_agreement,
    progress,
    verdicts_of,
)
from assay_operations.labelling.queues import Queue
from assay_schema.settings import DriftSettings

if TYPE_CHECKING:
    from assay_runtime.store import Client as Store

#: Pairs of labellers that are compared.
_PAIRS_MAX = 20


@dataclass(frozen=True)
class Standing:
    """Progress of a queue, the labels of all people together, and how far they agree.

    `calibration` is None while it cannot be computed, and `why` is the reason.
    """

    progress: Progress
    verdicts: Verdicts
    #: Answers labelled good or bad that a calibration needs.
    target: int
    #: Pairs of labellers with answers that both called good or bad.
    pairs: tuple[Agreement, ...]
    calibration: Calibration | None
    why: str = ""


def standing(store: "Store", queue: Queue, drift: DriftSettings, *, all_labelled: bool = False) -> Standing:
    """Read the state of a queue. Nothing is stored: `assay judge calibrate --stored` does that.

    The judge's verdicts are read once enough answers are labelled, or all of the sample (`all_labelled`): before, they would sway the
    labeller.
    """
    given = given_labels(store, queue)
    labels = by_event(given)
    together = verdicts_of(labels)
    compared = (agreement_of(labels, *pair) for pair in combinations(together.labellers, 2))
    pairs = tuple(islice((each for each in compared if each.n or each.unsure), _PAIRS_MAX))
    target, decided = drift.calibration_labels, len(together.labels)
    calibration, why = None, ""
    if decided < target and not all_labelled:
        why = f"{target - decided:,} more answers labelled good or bad, or all of the sample"
    elif not together.labels:
        why = "no answer is labelled good or bad yet"
    else:
        try:
            calibration = judge_agreement(store, Path(), drift, queue)
        except OperationError as error:
            if error.kind not in ("invalid", "not_found"):
                raise
            why = error.message
    return Standing(progress(store, queue, given), together, target, pairs, calibration, why)
