"""Sessions of several parts: what producers send of each, and whether what people are shown of it agrees with what is stored."""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from types import TracebackType
from typing import NamedTuple, Self

from assay_runtime.store import Client

#: Sessions that a producer has begun and not yet finished. Their parts are sent in turns, so that each takes a while to be whole.
OPEN = 8
#: Most parts of a session, and how many sessions have more than one.
PARTS_MOST, SEVERAL = 6, 0.5
#: How many whole sessions are sent again, changed, and how many parts are the last of a revision that is replaced before it is whole.
CHANGED, INTERRUPTED = 0.3, 0.05
FIRST_REVISION = 1_790_000_000_000
#: Shortest time between two looks at what is shown, in seconds, and how many times as long as a look it is at least.
PAUSE_S, PAUSE_LOOKS = 0.2, 2


class Part(NamedTuple):
    """One part of one revision of a session."""

    session_id: str
    revision: int
    part: int
    parts: int
    event_id: str = ""


class Sessions:
    """The parts of one producer's sessions, without end, in any order. Sessions change: a newer revision replaces the one before."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self._rng, self._name = rng, name
        self._begun = 0
        self._open: list[list[Part]] = []

    def draw(self) -> Part:
        """The next part to send, still without the id of its event."""
        while len(self._open) < OPEN:
            self._begun += 1
            self._open.append(self._revision(f"{self._name}-{self._begun}", FIRST_REVISION))
        which = self._rng.randrange(OPEN)
        left = self._open[which]
        part = left.pop()
        if self._rng.random() < (INTERRUPTED if left else CHANGED):
            self._open[which] = self._revision(part.session_id, part.revision + 1)
        elif not left:
            del self._open[which]
        return part

    def _revision(self, session_id: str, number: int) -> list[Part]:
        parts = self._rng.randint(2, PARTS_MOST) if self._rng.random() < SEVERAL else 1
        left = [Part(session_id, number, part, parts) for part in range(1, parts + 1)]
        self._rng.shuffle(left)
        return left


def written(parts: Iterable[Part]) -> list[str]:
    """Lines of a producer's ledger."""
    return [" ".join(map(str, part)) for part in parts]


def read(lines: Iterable[str]) -> list[Part]:
    """Parts from such lines."""
    found = []
    for line in lines:
        session_id, revision, part, parts, event_id = line.split(" ")
        found.append(Part(session_id, int(revision), int(part), int(parts), event_id))
    return found


class Shown(NamedTuple):
    """What people are shown of one session."""

    revision: int
    parts: int
    complete: bool


#: How often each part of a revision of a session is stored.
Stored = Mapping[tuple[str, int], Counter[int]]


def too_early(shown: Mapping[str, Shown], stored: Stored) -> set[str]:
    """Sessions that are shown as complete although not exactly their parts are stored."""
    return {
        session_id
        for session_id, row in shown.items()
        if row.complete and stored.get((session_id, row.revision)) != Counter(range(1, row.parts + 1))
    }


def whole(tried: Iterable[Part], sent: AbstractSet[str]) -> dict[str, Shown]:
    """How each session has to be shown of whose newest revision every part was handed over."""
    newest: dict[str, list[Part]] = {}
    for part in tried:
        known = newest.setdefault(part.session_id, [])
        if known and part.revision > known[0].revision:
            known.clear()
        if not known or part.revision == known[0].revision:
            known.append(part)
    return {
        session_id: Shown(parts[0].revision, parts[0].parts, complete=True)
        for session_id, parts in newest.items()
        if sum(part.event_id in sent for part in parts) == parts[0].parts
    }


def unlike(expected: Mapping[str, Shown], shown: Mapping[str, Shown]) -> list[str]:
    """What is wrong with how sessions are shown that were sent whole."""
    differing = sum(shown.get(session_id) != row for session_id, row in expected.items())
    return [f"{differing} sessions sent whole are not shown as complete in their newest revision"] * bool(differing)


class Watch:
    """Looks again and again at the sessions of one service, as people see them, while whatever else happens."""

    def __init__(self, store: Callable[[], Client], service: str) -> None:
        self._store, self._service = store, service
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sessions", daemon=True)
        self._early: set[str] = set()
        #: How often sessions were looked at, and how often one was still incomplete.
        self.looks = self.incomplete = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join(120)

    @property
    def faults(self) -> list[str]:
        """What was wrong at any time."""
        return [f"{len(self._early)} sessions were shown as complete without all their parts"] * bool(self._early)

    def look(self) -> dict[str, Shown]:
        """Look once. The parts are read last: a part that is stored in between makes no fault of what was right."""
        with contextlib.closing(self._store()) as store:
            shown = {
                session_id: Shown(revision, parts, complete)
                for session_id, revision, parts, complete in store.query(
                    "SELECT session_id, revision, parts, complete FROM assay.sessions WHERE startsWith(session_id, {prefix:String})",
                    {"prefix": f"{self._service}/"},
                ).result_rows
            }
            stored = {
                (session_id, revision): Counter(parts)
                for session_id, revision, parts in store.query(
                    "SELECT session_id, revision, groupArray(part) FROM assay.session_parts WHERE service = {service:String} GROUP BY ALL",
                    {"service": self._service},
                ).result_rows
            }
        self._early |= too_early(shown, stored)
        self.looks += 1
        self.incomplete += any(not row.complete for row in shown.values())
        return shown

    def _run(self) -> None:
        pause = 0.0
        while not self._over.wait(pause):
            started = time.monotonic()
            with contextlib.suppress(Exception):  # the store is away, or has no such tables yet
                self.look()
            pause = max(PAUSE_S, PAUSE_LOOKS * (time.monotonic() - started))
