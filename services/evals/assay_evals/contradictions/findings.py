"""Findings over several runs: the same two claims are the same finding. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256


class State(StrEnum):
    """State of a finding in a run, compared with the runs before."""

    NEW = "new"
    PERSISTING = "persisting"
    REOPENED = "reopened"
    #: Its documents were judged again for the same question, and the finding is gone.
    RESOLVED = "resolved"


@dataclass(frozen=True)
class Known:
    """A finding of earlier runs.

    `last_judged`: when a pair in which it was found was last judged. It is resolved if that is later than `last_seen`.
    """

    finding_id: str
    #: The pair (with its texts) and the key (without) in which it was last seen.
    pair_id: str
    key: str
    last_seen: datetime
    last_judged: datetime

    @property
    def resolved(self) -> bool:
        """True if the pair was judged since without the finding."""
        return self.last_judged > self.last_seen


def finding_id(claims: tuple[str, str]) -> str:
    """Return the hash of two claims, regardless of their order, case and spaces."""
    spans = sorted(" ".join(claim.split()).casefold() for claim in claims)
    return sha256(json.dumps(spans, ensure_ascii=False).encode(errors="surrogatepass")).hexdigest()[:32]


def identify(claims: tuple[str, str], pair_id: str, known: Mapping[str, Known]) -> str:
    """Return the identity of a finding in a pair.

    A judge may quote more or less of the same sentences the next time: a pair with unchanged texts keeps its finding.
    """
    own = finding_id(claims)
    if own in known:
        return own
    before = [each for each in known.values() if each.pair_id == pair_id]
    return max(before, key=lambda each: each.last_seen).finding_id if before else own


def states(found: Mapping[str, str], judged_keys: Iterable[str], known: Mapping[str, Known]) -> dict[str, State]:
    """Return the state of each finding that a run found, and of each that it resolved.

    `found`: pair ids by finding. `judged_keys`: keys of the pairs that the run judged. A finding whose pair was not judged has no state.
    """
    keys = set(judged_keys)
    result = {}
    for name in found:
        before = known.get(name)
        result[name] = State.NEW if before is None else State.REOPENED if before.resolved else State.PERSISTING
    for name, before in known.items():
        if name not in result and not before.resolved and before.key in keys:
            result[name] = State.RESOLVED
    return result
