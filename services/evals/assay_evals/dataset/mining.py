"""Mine golden cases from captured traffic, for review by a person. Pure: exported rows in, cases out.

Only the scrubbed question, ids and verdicts of each row are read, never an answer's text or a person's words. Questions
are equal if they differ only in case and white space (`normalise`), and similar if their embeddings are. A case is one
question together with similar ones.

Questions with feedback are always taken, negative ones first, because they show weaknesses. The rest is filled by hash,
each question with the same probability, which the case records: means over the dataset are weighted by its inverse and
so represent all questions. Expected ids are those that a person found good, or else the retrieved ones, which no person
has reviewed.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from assay_evals.dataset.captured_rows import METADATA_KIND, REDACTED, CapturedError
from assay_evals.dataset.model import Case, Dataset, normalise
from assay_schema.limits import NAME_MAX_CHARS, QUERY_MAX_CHARS

Embed = Callable[[Sequence[str]], "np.ndarray[Any, np.dtype[Any]]"]
#: Cosine from which on two questions are alike.
ALIKE = 0.95
#: Number of retrieved documents that are expected, if no one marked good ones.
EXPECTED = 3
#: Rows compared at a time.
_BLOCK = 512
_UNREVIEWED = "Unreviewed: mined from production."


@dataclass
class Found:
    """One captured question. `good` counts ids that a satisfied person saw cited or retrieved.

    `event_id` is its first retrieval among the rows.
    """

    project: str
    query: str
    slugs: list[str] = field(default_factory=list)
    times: int = 0
    positive: int = 0
    negative: int = 0
    good: Counter[str] = field(default_factory=Counter)
    event_id: str = ""

    @property
    def judged(self) -> bool:
        """True if a person gave feedback on it."""
        return bool(self.positive or self.negative)


@dataclass(frozen=True)
class Drawn:
    """A question that becomes a case, and the probability with which it was drawn."""

    question: Found
    probability: float


@dataclass(frozen=True)
class Mined:
    """Result of mining.

    `questions`: distinct ones before similar ones are joined; `known`: in a dataset already; `scrubbed`: left out,
    because personal data was removed from them.
    """

    drawn: list[Drawn]
    rows: int
    questions: int
    alike: int
    known: int
    pool: int
    scrubbed: int = 0

    @property
    def cases(self) -> list[Case]:
        """The cases for review."""
        return [_case(each.question, each.probability) for each in self.drawn]

    def in_words(self, embedder: str) -> list[str]:
        """Describe what was read and chosen, and what a reviewer has to look at."""
        cases = self.cases
        empty = sum(case.query_type == "null" for case in cases)
        read = f"{self.rows:,} rows, {self.questions:,} questions, {self.alike:,} similar to others ({embedder})"
        lines = [f"{read}, {self.known:,} already known: {len(cases):,} of {self.pool:,} chosen"]
        if self.scrubbed:
            lines.append(
                f"{self.scrubbed:,} questions left out, since personal data was removed from them and an unchanged system may answer "
                "them differently: --include-scrubbed takes them too"
            )
        # A null case asserts that nothing is relevant, which nothing has confirmed for these.
        also = f"; {empty:,} became null cases, since nothing was retrieved for them: remove those that should have results"
        return [*lines, f"all of them are unreviewed{also if empty else ''}"] if cases else lines


class Miner:
    """Converts rows, in any order, to cases. Keeps each distinct question, not each row."""

    def __init__(self, *, most: int = 500_000, include_scrubbed: bool = False) -> None:
        """`include_scrubbed`: whether questions from which personal data was removed become cases."""
        self._most = most
        self._include_scrubbed = include_scrubbed
        self._scrubbed: set[tuple[str, str]] = set()
        self._found: dict[tuple[str, str], Found] = {}
        #: Event id to its question and the ids a person who judges it means.
        self._events: dict[str, tuple[tuple[str, str], list[str]]] = {}
        self._verdicts: dict[str, tuple[str, str]] = {}
        self.rows = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """One exported row: a retrieval, an answer or feedback.

        Other rows, such as a baseline's first line, are skipped, and so are rows too long for a case; scrubbing can
        lengthen the captured text. Raises `CapturedError` for a row without its required fields, as hand-made ones may
        be.
        """
        if row.get("_kind") == METADATA_KIND:
            return
        if "verdict" in row:
            event_id, target, verdict = (row.get(name) for name in ("event_id", "target_event_id", "verdict"))
            if event_id is None or target is None or verdict not in ("positive", "negative"):
                raise CapturedError("feedback needs event_id, target_event_id, and a verdict of positive or negative")
            self._verdicts[str(event_id)] = (str(target), str(verdict))
            self.rows += 1
        elif isinstance(row.get("query"), str) and row["query"].strip() and len(row["query"]) <= QUERY_MAX_CHARS:
            self.rows += 1
            self._add_question(row)

    def _add_question(self, row: Mapping[str, Any]) -> None:
        key = (str(row.get("project", "default")), normalise(row["query"]))
        if not self._include_scrubbed and _is_scrubbed(row):
            self._scrubbed.add(key)
            return
        if key not in self._found:
            if len(self._found) >= self._most:
                return
            self._found[key] = Found(key[0], row["query"].strip())
        question = self._found[key]
        if "retrieved_slugs" in row:
            means = _names(row, "retrieved_slugs")
            question.slugs = question.slugs or means
            question.event_id = question.event_id or str(row.get("event_id") or "")
            question.times += 1
            means = means[:EXPECTED]
        else:
            means = _names(row, "citations", "context_id") or _names(row, "contexts", "id")
        if event_id := row.get("event_id"):
            self._events[str(event_id)] = (key, means)

    def cases(
        self,
        limit: int,
        embed: Embed,
        *,
        known: Dataset | None = None,
        alike: float = ALIKE,
        negative_only: bool = False,
        salt: str = "assay",
    ) -> Mined:
        """Return at most `limit` cases, without those in `known` and similar ones."""
        for target, verdict in self._verdicts.values():
            if target in self._events:
                key, means = self._events[target]
                question = self._found[key]
                if verdict == "positive":
                    question.positive += 1
                    question.good.update(means)
                else:
                    question.negative += 1
        self._verdicts.clear()
        questions = [question for question in self._found.values() if question.times or question.judged]
        ordered = sorted(questions, key=lambda one: (-one.negative, -one.positive, _hash(one, salt)))
        taken = {normalise(case.query) for case in known.cases} if known else set()
        new = [one for one in ordered if normalise(one.query) not in taken]
        distinct, near_known = _distinct(new, embed, [case.query for case in known.cases] if known else [], alike)
        pool = [one for one in distinct if one.negative] if negative_only else distinct
        judged = [one for one in pool if one.judged]
        others = sorted((one for one in pool if not one.judged), key=lambda one: _hash(one, salt))
        chosen = judged[:limit]
        # Of more judged questions than there is room for, the worst are taken: no draw, and the probability says nothing then.
        room = max(0, limit - len(chosen))
        share = min(1.0, room / len(others)) if others else 1.0
        return Mined(
            [Drawn(one, 1.0) for one in chosen] + [Drawn(one, share) for one in others[:room]],
            rows=self.rows,
            questions=len(questions),
            alike=len(new) - len(distinct) - near_known,
            known=len(ordered) - len(new) + near_known,
            pool=len(pool),
            scrubbed=len(self._scrubbed),
        )


def _is_scrubbed(row: Mapping[str, Any]) -> bool:
    """True if personal data was removed from the question; the families of an answer's row may be those of its text."""
    return REDACTED in row["query"] or ("retrieved_slugs" in row and bool(row.get("pii_families")))


def _names(row: Mapping[str, Any], field_name: str, key: str | None = None) -> list[str]:
    """Return the distinct ids in a field, plain or under a key of an object.

    Ids too long for a case are omitted.
    """
    listed = row.get(field_name) or []
    if isinstance(listed, list | tuple):
        ids = [each.get(key) if key and isinstance(each, Mapping) else each for each in listed]
        names = [each for each in ids if isinstance(each, str) and each]
        if len(names) == len(ids):
            return [name for name in dict.fromkeys(names) if len(name) <= NAME_MAX_CHARS]
    raise CapturedError(f"{field_name} must be an array of {f'objects with {key}, an id' if key else 'ids'}")


def _hash(one: Found, salt: str) -> bytes:
    return hashlib.sha256(f"{salt}\0{one.project}\0{normalise(one.query)}".encode()).digest()


def _distinct(found: list[Found], embed: Embed, known: Sequence[str], alike: float) -> tuple[list[Found], int]:
    """Return the first of each group of similar questions, and the number similar to known ones.

    The first takes over the others' counts.
    """
    if not found:
        return [], 0
    vectors = np.asarray(embed([one.query for one in found]), dtype=np.float32)
    if known:
        others = np.asarray(embed(list(known)), dtype=np.float32)
        new = [place for place in range(len(found)) if (others @ vectors[place]).max() < alike]
    else:
        new = list(range(len(found)))
    kept: list[int] = []
    for project in dict.fromkeys(found[place].project for place in new):
        kept += _distinct_of([place for place in new if found[place].project == project], found, vectors, alike)
    return [found[place] for place in sorted(kept)], len(found) - len(new)


def _distinct_of(places: list[int], found: list[Found], vectors: Any, alike: float) -> list[int]:
    """Apply `_distinct` within a project, in blocks of vectors."""
    kept: list[int] = []
    stack = np.empty((len(places), vectors.shape[1]), dtype=np.float32)
    for start in range(0, len(places), _BLOCK):
        block = places[start : start + _BLOCK]
        before = len(kept)
        far = vectors[block] @ stack[:before].T if before else np.empty((len(block), 0), dtype=np.float32)
        for row, place in enumerate(block):
            near = np.concatenate((far[row], stack[before : len(kept)] @ vectors[place]))
            if len(near) and near[best := int(near.argmax())] >= alike:
                _join(found[kept[best]], found[place])
            else:
                stack[len(kept)] = vectors[place]
                kept.append(place)
    return kept


def _join(first: Found, other: Found) -> None:
    first.times += other.times
    first.positive += other.positive
    first.negative += other.negative
    first.good.update(other.good)
    first.slugs = first.slugs or other.slugs
    first.event_id = first.event_id or other.event_id


def _case(one: Found, probability: float) -> Case:
    said = [f"{one.times} time(s) captured"] if one.times else []
    said += [f"{one.positive} positive"] if one.positive else []
    said += [f"{one.negative} negative"] if one.negative else []
    if one.good:
        expected = [slug for slug, _ in one.good.most_common(EXPECTED)]
        why = "expected ids are those that people marked good"
    elif one.slugs:
        expected = one.slugs[:EXPECTED]
        why = "expected ids are the retrieved ones"
        why += ", which people found bad: correct them in this file" if one.negative else ""
    else:
        expected, why = [], "nothing was retrieved: add the expected documents, or keep it as a null case"
    return Case(
        id=f"mined-{_hash(one, '').hex()[:16]}",
        query=one.query,
        query_type="technical" if expected else "null",
        expected_ids=expected,
        source="production",
        reviewed=False,
        notes=f"{_UNREVIEWED} {', '.join(said)}; {why}.",
        inclusion_probability=probability,
    )
