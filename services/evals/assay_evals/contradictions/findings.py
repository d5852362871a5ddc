"""Findings over several runs: the same two claims are the same finding. Pure."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256


class State(StrEnum):
    """State of a finding in a run, compared with the runs before."""

    NEW = "new"
    PERSISTING = "persisting"
    REOPENED = "reopened"
    #: Each pair that had it was judged again, for the same question, and has it no more.
    RESOLVED = "resolved"
    #: No pair has it any more, and of one of them this is all that is known: its question was asked again in the same way, and no longer
    #: retrieves both documents.
    GONE = "gone"


@dataclass(frozen=True)
class Known:
    """A finding in a pair of earlier runs; the same finding may be in several.

    `last_judged`: when the pair was last judged with a certain verdict. `last_missed`: when its question last no longer retrieved it.
    """

    finding_id: str
    #: The pair as it was last seen (with its texts), and its key (without).
    pair_id: str
    key: str
    last_seen: datetime
    last_judged: datetime
    last_missed: datetime | None = None
    query_key: str = ""
    #: Sampling and scope of the run that last saw it.
    measured: tuple[str, str] = ("", "")

    @property
    def is_resolved(self) -> bool:
        """True if the pair was judged since without the finding."""
        return self.last_judged > self.last_seen

    @property
    def is_gone(self) -> bool:
        """True if the pair was not retrieved since, and not judged without the finding."""
        return not self.is_resolved and self.last_missed is not None and self.last_missed > self.last_seen

    @property
    def is_open(self) -> bool:
        """True if the pair may still have the finding."""
        return not self.is_resolved and not self.is_gone


def finding_id(claims: tuple[str, str]) -> str:
    """Return the hash of two claims, regardless of their order, case and spaces."""
    spans = sorted(" ".join(claim.split()).casefold() for claim in claims)
    return sha256(json.dumps(spans, ensure_ascii=False).encode(errors="surrogatepass")).hexdigest()[:32]


class History:
    """Findings of earlier runs, by identity and by pair, and the pairs in which a person refuted them.

    Short claims can recur in documents about something else, so a person who refutes a pair says nothing of the others: a finding stands
    while one of its pairs is not refuted.
    """

    def __init__(self, known: Iterable[Known] = (), *, refuted: Iterable[tuple[str, str]] = ()) -> None:
        self._refuted = frozenset(refuted)
        in_time = sorted(known, key=lambda each: each.last_seen)
        self.known: dict[str, list[Known]] = {}
        for each in in_time:
            self.known.setdefault(each.finding_id, []).append(each)
        self._of_pair = {each.pair_id: each.finding_id for each in in_time}

    def identify(self, claims: tuple[str, str], pair_id: str) -> str:
        """Return the identity of a finding in a pair.

        A judge may quote more or less of the same sentences the next time: a pair with unchanged texts keeps its finding.
        """
        own = finding_id(claims)
        return own if own in self.known else self._of_pair.get(pair_id, own)

    def is_refuted(self, finding: str, pair_key: str) -> bool:
        """Return whether a person refuted a finding in a pair: no gate fails for it."""
        return (finding, pair_key) in self._refuted


def gone_pairs(
    known: Mapping[str, Sequence[Known]], retrieved: Mapping[str, Collection[str]], measured: tuple[str, str]
) -> frozenset[str]:
    """Return the keys of pairs with an open finding that a run no longer retrieves.

    `retrieved`: the keys of all pairs of the documents of each question that the run asked, by the question's key. `measured`: sampling and
    scope of the run. Another system, or another number of documents, tells nothing of pairs that were seen otherwise.
    """
    return frozenset(
        each.key
        for pairs in known.values()
        for each in pairs
        if each.is_open
        and each.measured == measured
        and each.query_key in retrieved
        and each.key not in retrieved[each.query_key]
    )


def states(
    found: Iterable[str],
    judged_keys: Iterable[str],
    known: Mapping[str, Sequence[Known]],
    gone_keys: Collection[str] = (),
) -> dict[str, State]:
    """Return the state of each finding that a run found, and of each that it ended.

    `judged_keys`: keys of the pairs with a certain verdict. `gone_keys`: of `gone_pairs`. A finding that is left in a pair of neither has
    no state.
    """
    keys, gone, found = set(judged_keys), set(gone_keys), set(found)
    result = {}
    left = {name: {each.key for each in pairs if each.is_open} for name, pairs in known.items()}
    for name in found:
        result[name] = State.NEW if name not in known else State.PERSISTING if left[name] else State.REOPENED
    for name, in_keys in left.items():
        if name not in found and in_keys and in_keys <= keys | gone:
            unseen = in_keys & gone or any(each.is_gone for each in known[name])
            result[name] = State.GONE if unseen else State.RESOLVED
    return result
