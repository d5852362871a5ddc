"""Metrics of one case beyond ranks: an answer's text and citations, and its results' metadata.

Pure.

Each applies only where the case expects it and the target gives what it is measured by; elsewhere it is absent, which is neither 0 nor a
value that is not a number. Results are distinct documents (one that comes back twice counts at its first rank, with what all its
appearances say) down to the deepest cut-off of the run.

- `required_citations`, `required_entities`: share of what a good answer cites, and of the words it names, in whichever case they are.
- `answer_f1`: overlap of an answer's words with those of the expected one, in [0, 1]: the harmonic mean of the shares of both that are in
  the other, each word as often as it stands there, after lower case and without punctuation and English articles (SQuAD; Rajpurkar et al.
  2016). Words are what white space parts. An answer in other words scores low though it is right: read changes, not levels.
- `temporal_accuracy`: share of the results whose time lies in the case's window, `since` <= time < `until`. A result without a time is
  outside.
- `actor_attribution`: share of the results that concern one of the expected actors, or more. Names are compared without regard to case
  and white space.
- `path:NAME`: share of the relevant documents that came back which the search path NAME found, perhaps among others: the shares of several
  paths may add up to more than 1.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from assay_evals.dataset.model import Case, normalise
from assay_evals.target.response import ResultMetadata, TargetResponse
from assay_schema.printable import plain

#: Prefix of the names of path metrics.
PATH = "path:"
#: Longest name of a search path, in characters.
NAME_MAX = 100
_NOT_IN_NAMES = set("<>&\"'`|")
_QUOTES = str.maketrans("&\"'", "+  ")
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def case_metrics(case: Case, answer: TargetResponse, depth: int) -> dict[str, float]:
    """Compute all applicable metrics, by name."""
    metrics: dict[str, float] = {}
    if case.required_citations and (answer.answer is not None or answer.citations):
        cited = {name for name, _ in answer.citations}
        metrics["required_citations"] = _share(each in cited for each in case.required_citations)
    if case.required_entities and answer.answer is not None:
        text = answer.answer.casefold()
        metrics["required_entities"] = _share(each.casefold() in text for each in case.required_entities)
    if case.expected_answer is not None and answer.answer is not None:
        metrics["answer_f1"] = answer_f1(case.expected_answer, answer.answer)
    if not answer.metadata or case.query_type == "null":
        return metrics
    hits = answer.hits(case.relevance)
    first = list(hits.values())[:depth]
    if case.time_window is not None and any(hit.time is not None for hit in first):
        metrics["temporal_accuracy"] = _share(hit.time is not None and hit.time in case.time_window for hit in first)
    if case.expected_actors and any(hit.actors for hit in first):
        expected = {normalise(actor) for actor in case.expected_actors}
        metrics["actor_attribution"] = _share(
            any(normalise(actor) in expected for actor in hit.actors) for hit in first
        )
    return metrics | _paths([hit for name, hit in list(hits.items())[:depth] if case.relevance.get(name, 0) > 0])


def _paths(relevant: Sequence[ResultMetadata]) -> dict[str, float]:
    paths = [{path_metric(name) for name in hit.found_by} for hit in relevant]
    return {name: _share(name in found for found in paths) for name in sorted(set().union(*paths))}


def path_metric(path: str) -> str:
    """Return the metric's name for a path, which a target may call anything."""
    return PATH + plain(path).translate(_QUOTES)[:NAME_MAX]


def is_metric_name(name: object) -> bool:
    """True for a valid name of a metric: one printable line without markup."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= NAME_MAX + len(PATH)
        and name.isprintable()
        and not set(name) & _NOT_IN_NAMES
    )


def _share(holds: Iterable[bool]) -> float:
    values = list(holds)
    return sum(values) / len(values)


def answer_f1(expected: str, answer: str) -> float:
    """Return F1 over the words of two texts; 1 if both are empty, 0 if one is."""
    one, other = _words(expected), _words(answer)
    shared = sum((one & other).values())
    total = sum(one.values()) + sum(other.values())
    return 2 * shared / total if total else 1.0


def _words(text: str) -> Counter[str]:
    bare = "".join(
        each for each in text.lower() if each not in string.punctuation and unicodedata.category(each)[0] != "P"
    )
    return Counter(_ARTICLES.sub(" ", bare).split())


def path_share(metrics: Mapping[str, float | None], name: str) -> float | None:
    """Return a case's path metric: 0 for an unnamed path if others are named."""
    return metrics.get(name, 0.0 if any(each.startswith(PATH) for each in metrics) else None)
