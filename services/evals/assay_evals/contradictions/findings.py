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

    `last_judged`: when the pair was last judged with a certain verdict. It is resolved if that is later than `last_seen`.
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


class History:
    """Findings of earlier runs, by identity and by pair."""

    def __init__(self, known: Iterable[Known] = ()) -> None:
        self.known = {each.finding_id: each for each in known}
        in_time = sorted(self.known.values(), key=lambda each: each.last_seen)
        self._of_pair = {each.pair_id: each.finding_id for each in in_time}

    def identify(self, claims: tuple[str, str], pair_id: str) -> str:
        """Return the identity of a finding in a pair.

        A judge may quote more or less of the same sentences the next time: a pair with unchanged texts keeps its finding.
        """
        own = finding_id(claims)
        return own if own in self.known else self._of_pair.get(pair_id, own)


def states(found: Iterable[str], judged_keys: Iterable[str], known: Mapping[str, Known]) -> dict[str, State]:
    """Return the state of each finding that a run found, and of each that it resolved.

    `judged_keys`: keys of the pairs with a certain verdict. A finding whose pair has none has no state.
    """
    keys, found = set(judged_keys), set(found)
    result = {}
    for name in found:
        before = known.get(name)
        result[name] = State.NEW if before is None else State.REOPENED if before.resolved else State.PERSISTING
    for name, before in known.items():
        if name not in result and not before.resolved and before.key in keys:
            result[name] = State.RESOLVED
    return result
