"""What the SDK asks of a scrubber that runs in the producer's own process (`capture.scrub = "producer"`).

The SDK imports no scrubber: it loads the one that an installed package offers under the group `ENTRY_POINTS`.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

#: Group of the entry points: each names a callable from `Settings` to a `ProducerScrubber`, which raises `SettingsError`.
ENTRY_POINTS = "assay_capture.scrub"


class Passed(NamedTuple):
    """What became of an entry: `entry` is what may leave the process, None if nothing may, and then `reason` says why."""

    entry: bytes | None
    #: `pii_refused` or `credential_in_name`; empty for an entry that may leave.
    reason: str
    #: What was removed, by family.
    findings: Mapping[str, int]


class ProducerScrubber(Protocol):
    """Shared by the threads of a process."""

    def scrub(self, entry: bytes) -> Passed:
        """An encoded event without personal data. Whatever it raises, the entry must not leave the process."""

    def credential_in(self, name: str) -> str:
        """The family of a credential in a name that is stored as it is, or ''."""
