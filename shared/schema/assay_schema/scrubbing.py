"""Interface between the SDK and a scrubber in the producer's process (`capture.scrub = "producer"`).

The SDK imports no scrubber: it loads the one that an installed package provides under the group `ENTRY_POINTS`.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

#: Group of the entry points: each names a callable from `Settings` to a `ProducerScrubber`, which raises
#: `SettingsError`.
ENTRY_POINTS = "assay_capture.scrub"


class Passed(NamedTuple):
    """Result of scrubbing: `entry` is what may leave the process, or None with a `reason`."""

    entry: bytes | None
    #: `pii_refused` or `credential_in_name`; empty for an entry that may leave.
    reason: str
    #: Number of removed findings, by family.
    findings: Mapping[str, int]
    #: How the entry breaks the contract: its kind, fields and rules, without content. Empty if it does not.
    invalid: str = ""


class ProducerScrubber(Protocol):
    """A scrubber, shared by the threads of a process."""

    def scrub(self, entry: bytes) -> Passed:
        """Return an encoded event without personal data. If it raises, the entry must not leave the process."""

    def credential_in(self, name: str) -> str:
        """Return the family of a credential in a name that is stored unchanged, or ''."""
