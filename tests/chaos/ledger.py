"""The ledger: what producers handed over against what people can see. Pure.

`sent` is what the promise covers: Redis or the spool has it. What a producer tried and never had confirmed, because it was killed in
between, may arrive or not; it must not arrive twice.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Books:
    """What each side says of one scenario. Events are named by `event_id`, entries that name no event by their entry id."""

    #: Handed over: acknowledged by Redis, or safe in a spool.
    sent: frozenset[str]
    #: All that was ever tried, `sent` included.
    attempted: frozenset[str]
    #: What the views show, one item a row.
    visible: Sequence[str]
    #: Entry ids of what was sent on purpose although it can only fail.
    poison: frozenset[str] = frozenset()
    #: Failure rows that name an event or an entry: `(event_id or '', entry_id)`, one item a row.
    failures: Sequence[tuple[str, str]] = ()
    #: Events the SDK says it dropped; they are not in `sent`, so they need a fault of their own.
    dropped: int = 0


@dataclass(frozen=True)
class Ledger:
    """The two sides compared. `faults` is empty if the promise was kept."""

    sent: int
    visible: int
    failed: int
    lost: int
    duplicates: int
    #: Neither side's: rows of events that nobody sent, failures of events that were well.
    unknown: int
    wrongly_failed: int
    dropped: int = 0

    @property
    def faults(self) -> list[str]:
        """What is wrong, in words."""
        found = {
            "lost": self.lost,
            "seen twice": self.duplicates,
            "never sent": self.unknown,
            "well but failed": self.wrongly_failed,
            "dropped by the SDK": self.dropped,
        }
        return [f"{count} {what}" for what, count in found.items() if count]


def reconcile(books: Books) -> Ledger:
    """Compare. `sent = visible + failed` holds exactly when nothing is lost."""
    rows = Counter(books.visible)
    failed_events = Counter(event for event, entry in books.failures if event and entry not in books.poison)
    failed_entries = Counter(entry for _, entry in books.failures if entry in books.poison)
    well = books.sent & rows.keys()
    failed = (books.sent & failed_events.keys()) - well
    twice = sum(count - 1 for counts in (rows, failed_events, failed_entries) for count in counts.values())
    nameless = sum(1 for event, entry in books.failures if not event and entry not in books.poison)
    return Ledger(
        sent=len(books.sent) + len(books.poison),
        visible=len(well),
        failed=len(failed) + len(failed_entries),
        lost=len(books.sent - well - failed) + len(books.poison - failed_entries.keys()),
        duplicates=twice + len(rows.keys() & failed_events.keys()),
        unknown=len(rows.keys() - books.attempted) + len(failed_events.keys() - books.attempted) + nameless,
        wrongly_failed=len(failed_events.keys() & books.attempted),
        dropped=books.dropped,
    )


@dataclass(frozen=True)
class Window:
    """One export: rows with `after < id <= upto`, as `(id, event_id)`."""

    after: int
    upto: int
    rows: Sequence[tuple[int, str]] = field(repr=False)


def chain_faults(windows: Sequence[Window], stored: Iterable[tuple[int, str]]) -> list[str]:
    """What is wrong with windows that claim to hold, chained, every stored `(id, event_id)` up to the last one's end exactly once."""
    faults = []
    for earlier, later in itertools.pairwise(windows):
        if later.after != earlier.upto:
            faults.append(f"a window starts at {later.after}, the one before ended at {earlier.upto}")
    outside = sum(1 for window in windows for row, _ in window.rows if not window.after < row <= window.upto)
    exported = Counter(row for window in windows for row in window.rows)
    upto = windows[-1].upto if windows else -1
    wanted = {row for row in stored if row[0] <= upto}
    events = Counter(event for _, event in exported.elements())
    counts = {
        "rows outside their window": outside,
        "events exported twice": sum(count - 1 for count in events.values()),
        "rows exported that are not there any more": len(exported.keys() - wanted),
    }
    faults += [f"{count} {what}" for what, count in counts.items() if count]
    missed = wanted - exported.keys()
    return [*faults, f"{_where(windows, missed)}: {len(missed)} rows missed"] if missed else faults


def _where(windows: Sequence[Window], missed: AbstractSet[tuple[int, str]]) -> str:
    """Which windows lack these rows, and how many each."""
    lacking = []
    for number, window in enumerate(windows, 1):
        if ids := sorted(row for row, _ in missed if window.after < row <= window.upto):
            which = f"window {number} of {len(windows)} ({window.after} to {window.upto})"
            lacking.append(f"{which} lacks {len(ids)}, from {ids[0]} to {ids[-1]}")
    return ", ".join(lacking) or "no window reaches them"
