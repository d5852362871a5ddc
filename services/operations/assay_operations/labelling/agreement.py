"""Progress of a queue, agreement of its labellers, and of the judge with them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from assay_operations.judging.calibrate import Calibration, compare
from assay_operations.labelling.queues import JUDGED, Queue
from assay_operations.time_bounds import utc
from assay_schema.scores import Metric
from assay_schema.settings import DriftSettings

if TYPE_CHECKING:
    from assay_judge.calibration import Estimate
    from assay_runtime.store import Client as Store

_LABELS = """
SELECT toString(event_id), labeller, label, labelled_at FROM labels
WHERE project = {project:String} AND queue = {queue:String} AND event_time >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
    AND event_time < fromUnixTimestamp64Milli({until:Int64}, 'UTC')
ORDER BY event_id, labeller
"""

#: Labels of a queue: by event, then by labeller.
Labels = Mapping[str, Mapping[str, str]]
#: A label in force: event, labeller, label, and when it was given.
Given = tuple[str, str, str, datetime]


@dataclass(frozen=True)
class Labeller:
    """Number of labels of one person, and when the last one was given."""

    name: str
    good: int
    bad: int
    unsure: int
    last: datetime

    @property
    def labelled(self) -> int:
        """Number of labelled answers."""
        return self.good + self.bad + self.unsure


@dataclass(frozen=True)
class Progress:
    """Progress of a queue: number of judged answers to draw from, and the labels of each person."""

    answers: int
    labellers: tuple[Labeller, ...]


@dataclass(frozen=True)
class Agreement:
    """Agreement of two labellers on the answers that both called good or bad.

    `kappa` is None if all labels are equal or there are none; its 95 % interval too.
    """

    first: str
    second: str
    n: int
    agreement: float | None
    kappa: "Estimate | None"
    #: Answers that both labelled, and that at least one of them was unsure about.
    unsure: int
    #: Event ids on which they differ.
    differ: tuple[str, ...]


@dataclass(frozen=True)
class Verdicts:
    """Labels of all people together: True for good, by event id.

    With several labellers the majority decides. Answers without a majority do not count: they are `tied`, or `unsure` if no one called
    them good or bad.
    """

    labels: dict[str, bool]
    tied: int
    unsure: int
    labellers: tuple[str, ...]


def given_labels(store: "Store", queue: Queue) -> list[Given]:
    """Read the labels of a queue that are in force, ordered by event and labeller."""
    rows = store.query(_LABELS, parameters=queue.parameters).result_rows
    return [(event, labeller, label, utc(at)) for event, labeller, label, at in rows]


def progress(store: "Store", queue: Queue, given: Sequence[Given] | None = None) -> Progress:
    """Count the judged answers of a queue, and the labels of each person.

    `given`: the labels, if they were read already.
    """
    counts: dict[str, Counter[str]] = {}
    last: dict[str, datetime] = {}
    for _, labeller, label, at in given_labels(store, queue) if given is None else given:
        counts.setdefault(labeller, Counter())[label] += 1
        last[labeller] = max(at, last.get(labeller, at))
    answers = store.query(f"SELECT count() FROM ({JUDGED})", parameters=queue.parameters).result_rows  # noqa: S608 - a constant
    labellers = (
        Labeller(name, count["good"], count["bad"], count["unsure"], last[name])
        for name, count in sorted(counts.items())
    )
    return Progress(int(answers[0][0]), tuple(labellers))


def agreement(store: "Store", queue: Queue, first: str, second: str) -> Agreement:
    """Compare two labellers on the answers that both labelled."""
    return agreement_of(labels_of(store, queue), first, second)


def agreement_of(labels: Labels, first: str, second: str) -> Agreement:
    """Compare two labellers. Pure."""
    from assay_judge.calibration import Confusion

    both = {event: (by[first], by[second]) for event, by in labels.items() if first in by and second in by}
    sure = {event: pair for event, pair in both.items() if "unsure" not in pair}
    table = Confusion.of([one == "good" for one, _ in sure.values()], [other == "good" for _, other in sure.values()])
    differ = tuple(event for event, (one, other) in sure.items() if one != other)
    known = bool(sure)
    return Agreement(
        first,
        second,
        table.n,
        table.agreement if known else None,
        table.kappa_interval if known else None,
        len(both) - len(sure),
        differ,
    )


def labels_of(store: "Store", queue: Queue) -> dict[str, dict[str, str]]:
    """Read the labels of a queue that are in force, by event and labeller."""
    return by_event(given_labels(store, queue))


def by_event(given: Sequence[Given]) -> dict[str, dict[str, str]]:
    """Return labels by event and labeller. Pure."""
    labels: dict[str, dict[str, str]] = {}
    for event, labeller, label, _ in given:
        labels.setdefault(event, {})[labeller] = label
    return labels


def verdicts_of(labels: Labels, labeller: str = "") -> Verdicts:
    """Combine the labels of all people, or take those of one. Pure."""
    decided: dict[str, bool] = {}
    tied = unsure = 0
    people: set[str] = set()
    for event, given in labels.items():
        votes = {name: label for name, label in given.items() if labeller in ("", name)}
        if not votes:
            continue
        people |= votes.keys()
        counts = Counter(votes.values())
        if not counts["good"] and not counts["bad"]:
            unsure += 1
        elif counts["good"] == counts["bad"]:
            tied += 1
        else:
            decided[event] = counts["good"] > counts["bad"]
    return Verdicts(decided, tied, unsure, tuple(sorted(people)))


def judge_agreement(
    store: "Store",
    data: Path,
    drift: DriftSettings,
    queue: Queue,
    *,
    labeller: str = "",
    metric: Metric = Metric.FAITHFULNESS,
    fingerprint: str = "",
    threshold: float = 1.0,
) -> Calibration:
    """Compare the judge with the labels of a queue: kappa, TPR and TNR with intervals.

    Raises `OperationError` for too few labels. The result is the plan that `assay judge calibrate --stored` applies; nothing is stored
    here.
    """
    given = verdicts_of(labels_of(store, queue), labeller).labels
    return compare(
        store,
        data,
        drift,
        given,
        project=queue.project,
        metric=metric,
        fingerprint=fingerprint,
        threshold=threshold,
    )
