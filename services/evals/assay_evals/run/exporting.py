"""Runs in the formats of other programs: TREC, captured rows, judgements of a gate. Pure.

Captured rows and judgements (qrels) are also those of gbrain. Lines have no line ends, and are in the order of the run's cases. An id that
a format cannot hold raises `RunError`, so that nothing is lost or joined. Runs contain the order of results and no scores: a TREC score is
the number of results from there on.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay_evals.dataset.model import Case, Dataset
from assay_evals.dataset.qrels import DEFAULT_SOURCE, VERSION
from assay_evals.run.model import CaseResult, Run, RunError

#: White space separates the fields of a TREC line; a byte order mark at the start of a file is no part of an id.
_SEPARATES = re.compile(r"[\s\ufeff]")
#: The grade of the expected first document in a dataset of a gate's judgements.
_FIRST = 3


@dataclass(frozen=True)
class Exported:
    """Lines of a file, and notes on what its format cannot say."""

    lines: list[str]
    notes: list[str]


def trec_run(run: Run) -> Exported:
    """Return lines `qid Q0 docid rank score tag`. Raises `RunError` for an id with white space."""
    return trec_results(((result.case_id, result.retrieved) for result in run.results), run.run_id)


def trec_results(rankings: Iterable[tuple[str, Sequence[str]]], name: str) -> Exported:
    """Return rankings by the ids of their cases, as `trec_run` does. `name`: of the run."""
    tag = _SEPARATES.sub("_", name) or "assay"
    lines, empty = list[str](), 0
    for case_id, ranking in rankings:
        lines += [
            f"{_word(case_id, case_id)} Q0 {_word(document, case_id)} {rank} {len(ranking) - rank + 1} {tag}"
            for rank, document in enumerate(ranking, start=1)
        ]
        empty += not ranking
    return Exported(lines, _notes({"without results have no line: trec_eval counts them only with -c": empty}))


def trec_qrels(run: Run, dataset: Dataset) -> Exported:
    """Return lines `qid 0 docid grade` for the cases of a run.

    Raises `RunError` for an id with white space.
    """
    return trec_judgements((case.id, case.relevance) for _, case in _asked(run, dataset))


def trec_judgements(judgements: Iterable[tuple[str, Mapping[str, int]]]) -> Exported:
    """Return judgements by the ids of their cases, as `trec_qrels` does."""
    lines, unjudged = list[str](), 0
    for case_id, relevance in judgements:
        lines += [
            f"{_word(case_id, case_id)} 0 {_word(document, case_id)} {grade}" for document, grade in relevance.items()
        ]
        unjudged += not relevance
    return Exported(lines, _notes({"without expected documents have no line": unjudged}))


def captured_rows(run: Run, dataset: Dataset) -> Exported:
    """Return the results as captured retrievals (NDJSON), which a replay and a baseline read."""
    answered = [pair for pair in _asked(run, dataset) if pair[0].error is None]
    lines, mixed = [], 0
    for number, (result, case) in enumerate(answered, start=1):
        documents = [_source_and_slug(each) for each in result.retrieved]
        sources = {source for source, _ in documents}
        mixed += len(sources) > 1
        row = {
            "schema_version": VERSION,
            "id": number,
            "tool_name": "query",
            "query": case.query,
            "retrieved_slugs": list(dict.fromkeys(slug for _, slug in documents)),
            "source_ids": sorted(source for source in sources if source != DEFAULT_SOURCE),
            "latency_ms": result.latency_ms or 0,
            "created_at": run.started_at,
            "case_id": result.case_id,
        }
        lines.append(json.dumps(row, ensure_ascii=False))
    unlike = {
        "ended in an error and have no row": len(run.errored),
        "have no latency: 0 is written": sum(result.latency_ms is None for result, _ in answered),
        "have results of several sources: a row does not say which slug is of which": mixed,
    }
    return Exported(lines, _notes(unlike))


def gate_qrels(run: Run, dataset: Dataset) -> Exported:
    """Return the judgements of a run's cases as JSON, for `assay gate --qrels` and gbrain's gate.

    These know only relevant or not, and an expected first document: the only one with grade 3.
    """
    queries, left = [], 0
    for _, case in _asked(run, dataset):
        relevant = {name: grade for name, grade in case.relevance.items() if grade > 0}
        best = [name for name, grade in relevant.items() if grade == _FIRST]
        entry = {"query_id": case.id, "query": case.query, "relevant": [_document(name) for name in relevant]}
        if relevant:
            queries.append(entry | ({"expected_top1": _document(best[0])} if len(best) == 1 else {}))
        left += not relevant
    lines = json.dumps({"schema_version": VERSION, "queries": queries}, ensure_ascii=False, indent=1).split("\n")
    return Exported(lines if queries else [], _notes({"without a relevant document are left out": left}))


def _asked(run: Run, dataset: Dataset) -> Iterator[tuple[CaseResult, Case]]:
    cases = {case.id: case for case in dataset.cases}
    for result in run.results:
        if result.case_id not in cases:
            raise RunError(f"case {result.case_id!r} is not in the dataset: pass the dataset of the run")
        yield result, cases[result.case_id]


def _word(text: str, case_id: str) -> str:
    if not text or _SEPARATES.search(text):
        what = "its id" if text == case_id else "the id of a document"
        raise RunError(
            f"case {case_id!r}: {what} is empty or contains white space, which separates the fields of a TREC line:"
            " export with --format captured or qrels"
        )
    return text


def _source_and_slug(name: str) -> tuple[str, str]:
    source, separator, slug = name.partition("::")
    return (source, slug) if separator and source and slug else (DEFAULT_SOURCE, name)


def _document(name: str) -> dict[str, str]:
    source, slug = _source_and_slug(name)
    return {"source_id": source, "slug": slug}


def _notes(counts: dict[str, int]) -> list[str]:
    return [f"{count:,} case(s) {what}" for what, count in counts.items() if count]
