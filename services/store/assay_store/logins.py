"""Failed logins: delayed, counted, and logged without the submitted data."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

log = logging.getLogger("assay_store")

PAUSE_SECONDS = 1.0
"""Seconds that a failed login waits for its response."""

SUSPICIOUS = 10
"""Failures of a name within a minute after which every login of that name is delayed, right or wrong.

Connections where it has logged in before are excepted. A quick response reveals nothing to an attacker, and a connected
service is not affected.
"""

_WINDOW_SECONDS = 60.0
_UNKNOWN = "unknown"


@dataclass
class _Tally:
    since: float = 0.0
    failures: int = 0


class Logins:
    """Failures by name.

    Unknown names are counted together, and never logged: people type passwords there.
    """

    def __init__(
        self, names: Iterable[str], count: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tallies = {name: _Tally() for name in names} | {_UNKNOWN: _Tally()}
        self._count = count
        self._clock = clock

    def waits(self, name: str, known: bool) -> bool:
        """True if a login must be delayed, even if it is right."""
        tally = self._tallies.get(name)
        return tally is not None and not known and self._fresh(tally) and tally.failures >= SUSPICIOUS

    def failed(self, name: str, peer: str) -> None:
        """Count a failure, and log the first and every hundredth of a minute."""
        tally_name = name if name in self._tallies else _UNKNOWN
        tally = self._tallies[tally_name]
        if not self._fresh(tally):
            tally.since, tally.failures = self._clock(), 0
        tally.failures += 1
        self._count(tally_name)
        if tally.failures == 1 or tally.failures % 100 == 0:
            who = "a name that no user has" if tally_name == _UNKNOWN else f"user {tally_name!r}"
            log.warning("failed login of %s from %s: number %d within a minute", who, peer, tally.failures)

    def _fresh(self, tally: _Tally) -> bool:
        return tally.failures > 0 and self._clock() - tally.since < _WINDOW_SECONDS
