"""The state of a queue of labels: progress, agreement of people, and of the judge with them. Pure."""

from datetime import datetime
from typing import TYPE_CHECKING

from assay_console.page import Document
from assay_operations.judging.calibrate import Calibration
from assay_operations.labelling.agreement import Agreement
from assay_operations.labelling.queues import Queue
from assay_operations.labelling.standing import Standing as Read
from assay_schema.settings import DriftSettings

if TYPE_CHECKING:
    from assay_judge.calibration import Estimate


class Interval(Document):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


class Labeller(Document):
    """The labels of one person."""

    name: str
    good: int
    bad: int
    unsure: int
    last: datetime


class Pair(Document):
    """Agreement of two labellers on the answers that both called good or bad."""

    first: str
    second: str
    n: int
    agreement: float | None
    kappa: Interval | None
    unsure: int
    #: Answers on which they differ.
    differ: tuple[str, ...]


class Rate(Document):
    """An estimate of the share of good answers, and how it was made."""

    method: str
    share: Interval


class Trust(Document):
    """Agreement of the judge with people, and what it changes."""

    metric: str
    fingerprint: str
    threshold: float
    n: int
    true_positives: int
    false_negatives: int
    false_positives: int
    true_negatives: int
    agreement: float
    kappa: Interval | None
    tpr: Interval | None
    tnr: Interval | None
    rates: tuple[Rate, ...]
    #: Answers of the base stream behind the rates.
    live: int
    #: Why alerts on this metric cannot be critical; empty if they can.
    lacks: tuple[str, ...]
    #: True if `drift.page_uncalibrated` lets them be critical all the same.
    pages_anyway: bool


class Standing(Document):
    """State of the queue. `trust` is None before there are enough labels; `why` says what is missing."""

    answers: int
    labellers: tuple[Labeller, ...]
    #: Answers with a majority for good or bad, with as many for each, and that no one was sure about.
    decided: int
    tied: int
    unsure: int
    target: int
    pairs: tuple[Pair, ...]
    trust: Trust | None
    why: str
    #: Stores the result, so that alerts and corrected rates use it.
    command: str


def standing_of(found: Read, queue: Queue, drift: DriftSettings) -> Standing:
    """Return the state of a queue for the page."""
    return Standing(
        answers=found.progress.answers,
        labellers=tuple(
            Labeller(name=each.name, good=each.good, bad=each.bad, unsure=each.unsure, last=each.last)
            for each in found.progress.labellers
        ),
        decided=len(found.verdicts.labels),
        tied=found.verdicts.tied,
        unsure=found.verdicts.unsure,
        target=found.target,
        pairs=tuple(map(_pair, found.pairs)),
        trust=trust_of(found.calibration, drift) if found.calibration else None,
        why=found.why,
        command=f"assay judge calibrate --stored --project {queue.project} --queue {queue.name}",
    )


def trust_of(calibration: Calibration, drift: DriftSettings) -> Trust:
    """Return the agreement of the judge with people for the page. Pure."""
    table, row = calibration.confusion, calibration.row
    return Trust(
        metric=row["metric"],
        fingerprint=row["fingerprint"],
        threshold=row["threshold"],
        n=table.n,
        true_positives=table.true_positives,
        false_negatives=table.false_negatives,
        false_positives=table.false_positives,
        true_negatives=table.true_negatives,
        agreement=table.agreement,
        kappa=_interval(table.kappa_interval),
        tpr=_interval(table.tpr),
        tnr=_interval(table.tnr),
        rates=tuple(
            Rate(method=method, share=Interval(value=each.value, low=each.low, high=each.high))
            for method, each in calibration.rates.items()
            if each is not None
        ),
        live=calibration.live,
        lacks=tuple(calibration.lacks),
        pages_anyway=drift.page_uncalibrated,
    )


def _pair(each: Agreement) -> Pair:
    return Pair(
        first=each.first,
        second=each.second,
        n=each.n,
        agreement=each.agreement,
        kappa=_interval(each.kappa),
        unsure=each.unsure,
        differ=each.differ,
    )


def _interval(each: "Estimate | None") -> Interval | None:
    return Interval(value=each.value, low=each.low, high=each.high) if each else None
