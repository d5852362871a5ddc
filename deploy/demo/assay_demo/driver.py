"""Drive the service: every golden question, then questions with personal data, at a given pace."""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from assay_demo.golden import Case
from assay_demo.pii import PiiQuestion, plant
from assay_demo.service import Reply, SearchService, Verdict

#: Share of questions with feedback.
FEEDBACK_SHARE = 0.3
#: Number of results that a user reads before giving feedback.
RESULTS_READ = 3
_USERS = 25
_REMARKS: dict[Verdict, tuple[str | None, ...]] = {
    "positive": (None, None, "Just what I needed.", "First hit, thanks."),
    "negative": (None, None, "That is not what I asked.", "The right page is missing."),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Number of questions.

    `limit` is the maximum of golden questions per round, and separately of those with personal data.
    """

    rounds: int = 1
    rate: float = 0.0
    limit: int | None = None
    seed: int = 0
    pii: bool = True

    def questions(self, cases: Sequence[Case]) -> int:
        """Number of questions that will be asked."""
        golden = len(cases[: self.limit]) * self.rounds
        return golden + (len(plant(cases, seed=self.seed)[: self.limit]) if self.pii else 0)


@dataclass(slots=True)
class Tally:
    """Counts of questions and captured events so far."""

    captured: Counter[str] = field(default_factory=Counter)
    planted: Counter[str] = field(default_factory=Counter)
    questions: int = 0

    @property
    def events(self) -> int:
        """Number of events of all kinds."""
        return self.captured.total()


class Pace:
    """Limits a run to `rate` events per second by sleeping; 0 is as fast as possible."""

    def __init__(
        self, rate: float, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._started = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since the start of the run."""
        return self._clock() - self._started

    def hold(self, events: int) -> None:
        """Sleep until `events` events are due."""
        if self._rate > 0:
            ahead = events / self._rate - self.elapsed
            if ahead > 0:
                self._sleep(ahead)


def drive(service: SearchService, cases: Sequence[Case], plan: Plan, pace: Pace) -> Iterator[Tally]:
    """Ask all questions of the plan, in an order that depends on the seed.

    Yields the running tally after each one.
    """
    rng = random.Random(plan.seed)  # noqa: S311  (order and thumbs of made-up users)
    tally = Tally()
    for case, planted in _questions(cases, plan, rng):
        reply = service.ask(planted.text if planted else case.query)
        tally.captured.update(("retrieval", "answer"))
        tally.questions += 1
        if planted:
            tally.planted[planted.planted.family] += 1
        if rng.random() < FEEDBACK_SHARE:
            verdict = judge(case, reply)
            user = hashlib.sha256(f"demo-user-{rng.randrange(_USERS)}".encode()).hexdigest()[:16]
            service.rate(reply, verdict, rng.choice(_REMARKS[verdict]), user)
            tally.captured["feedback"] += 1
        yield tally
        pace.hold(tally.events)


def judge(case: Case, reply: Reply) -> Verdict:
    """Return the feedback of a user who knows the correct documents.

    Positive if one of them is among the first results, or if there are none and nothing was returned.
    """
    if not case.relevant:
        return "negative" if reply.slugs else "positive"
    return "positive" if case.relevant.keys() & set(reply.slugs[:RESULTS_READ]) else "negative"


def _questions(cases: Sequence[Case], plan: Plan, rng: random.Random) -> Iterator[tuple[Case, PiiQuestion | None]]:
    for _ in range(plan.rounds):
        order = rng.sample(cases, len(cases))
        for case in order[: plan.limit]:
            yield case, None
    if plan.pii:
        by_id = {case.id: case for case in cases}
        for planted in plant(cases, seed=plan.seed)[: plan.limit]:
            yield by_id[planted.case_id], planted
