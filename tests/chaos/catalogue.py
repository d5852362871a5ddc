"""All scenarios, by the kind of rig they need, and the proofs that the suite can fail."""

from collections.abc import Iterable
from typing import NamedTuple

from tests.chaos import auditing, clocks, commits, destinations, faults, forgetting, front_door, refusals, replicated
from tests.chaos.rig import Rig
from tests.chaos.scenario import Scenario

SCENARIOS: dict[type[Rig], tuple[Scenario, ...]] = {
    Rig: (
        *faults.SCENARIOS,
        *refusals.SCENARIOS,
        *commits.SCENARIOS,
        *forgetting.SCENARIOS,
        *destinations.SCENARIOS,
        *front_door.SCENARIOS,
    ),
    **forgetting.APART,
    **clocks.SCENARIOS,
    **auditing.SCENARIOS,
    **replicated.SCENARIOS,
}

#: Scenarios that time how long a death is felt: from the last one until all is as it should be.
DEATHS = frozenset(
    scenario.name for scenario in SCENARIOS[Rig] if scenario.name.startswith(("kill ", "crash loop", "two of each"))
)


def rig_of(name: str) -> tuple[type[Rig], Scenario]:
    """A scenario by name, and the kind of rig that it needs. Raises `KeyError`."""
    for kind, group in SCENARIOS.items():
        for scenario in group:
            if scenario.name == name:
                return kind, scenario
    raise KeyError(name)


class Proof(NamedTuple):
    """Which scenario shows that a mechanism is needed, and what the ledger must say of it without."""

    scenario: str
    #: The end of a fault's words. Another fault, such as a machine too slow for a proof's patience, proves nothing.
    fault: str

    def shown(self, faults: Iterable[str]) -> bool:
        """Whether the fault is among those found."""
        return any(fault.endswith(self.fault) for fault in faults)


PROOFS = {
    "ack-before-insert": Proof("store down, writer killed", " lost"),
    "no-reclaim": Proof("kill scrubber and writer", " lost"),
    "no-idempotence": Proof("store dies before answering", " seen twice"),
    "insert-tokens": Proof("store's commits fail", " lost"),
    "complete-too-early": Proof("kill writer", " without all their parts"),
    "trim-by-maxlen": Proof("store down, writer killed", " lost"),
    "eager-watermark": Proof("freeze writer", " rows missed"),
    "blame-outages": Proof("inserts refused, writer killed", " entries were given up"),
    "late-look": Proof("store down, scrubber restarted above its mark", " although the writer stood still"),
    "local-clock": Proof("clock of the scrubber a day behind", " well but failed"),
    "one-spool-for-all": Proof("two destinations over one spool", " never sent"),
    "numbers-forgotten": Proof("redis forgets, and gives its ids again", " used twice"),
    "any-redis": Proof("redis forgets, and gives its ids again", " lost"),
}
