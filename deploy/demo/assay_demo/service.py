"""Search service of the demo, instrumented with the SDK of Assay like any service: by three calls."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

from assay_capture import Capture
from assay_demo.abstaining import REFUSAL
from assay_demo.corpus import Document
from assay_demo.regression import Retriever
from assay_demo.search import Detail, Hit
from assay_demo.text import sentences

Tool = Literal["query", "search"]
Verdict = Literal["positive", "negative"]

MODEL = "extractive-1"
NO_ANSWER = "Nothing in the documentation of the standard library answers this."
#: Number of documents that an answer is made from, and returns as contexts.
CONTEXTS = 5
#: Number of them that are quoted.
QUOTED = 3
HITS = 10


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the slugs of its documents, and the ids of the two events that record it."""

    text: str
    slugs: tuple[str, ...]
    retrieval_event_id: str
    answer_event_id: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An extractive answer: quoted sentences, their contexts, and the citation of each sentence."""

    text: str
    contexts: list[dict[str, Any]]
    citations: list[dict[str, str]]


def extract_answer(hits: Sequence[Hit], passage: Callable[[Document], str] = attrgetter("text")) -> Answer:
    """Quote the first sentence of each of the best documents. Every claim cites its context."""
    contexts = [
        {"id": hit.document.id, "source_id": hit.document.source_id, "text": passage(hit.document), "score": hit.score}
        for hit in hits[:CONTEXTS]
    ]
    if not contexts:
        return Answer(NO_ANSWER, [], [])
    citations = [{"context_id": hit.document.id, "claim": gist(hit.document)} for hit in hits[:QUOTED]]
    lines = [f"{citation['context_id']}: {citation['claim']}" for citation in citations]
    return Answer("\n".join(lines), contexts, citations)


class SearchService:
    """Answers questions about the standard library by search, and captures each retrieval and answer.

    Capturing never raises and never waits, so that a question takes as long without Assay.
    """

    def __init__(self, search: Retriever, capture: Capture, *, seed: int = 0) -> None:
        self.retriever = search
        #: Selects the questions that get no answer although passages were found.
        self.refuses: Callable[[str], bool] = lambda _: False
        self._capture = capture
        self._rng = random.Random(seed)  # noqa: S311  (which tool a caller uses, not a secret)

    def ask(self, question: str) -> Reply:
        """Search, answer from the results, and capture a retrieval and an answer."""
        tool: Tool = self._rng.choices(("query", "search"), weights=(7, 3))[0]
        detail: Detail | None = self._rng.choice((None, None, "low", "medium", "high"))
        started = time.perf_counter()
        result = self.retriever.search(question, HITS, detail, expand=tool == "query")
        found = time.perf_counter()
        slugs = tuple(hit.document.id for hit in result.hits)
        retrieval_id = self._capture.retrieval(
            tool_name=tool,
            query=question,
            retrieved_slugs=list(slugs),
            retrieved_chunk_ids=[hit.document.chunk_id for hit in result.hits],
            source_ids=list(dict.fromkeys(hit.document.source_id for hit in result.hits)),
            expand_enabled=True if tool == "query" else None,
            detail=detail,
            detail_resolved=result.detail_resolved,
            vector_enabled=False,
            expansion_applied=result.expansion_applied,
            latency_ms=(found - started) * 1000,
            remote=False,
            retrieved_scores=[hit.score for hit in result.hits],
            params={"k": HITS, "ranker": "bm25"},
        )
        answer = extract_answer(result.hits, self.retriever.passage)
        if self.refuses(question):
            answer = Answer(REFUSAL, answer.contexts, [])
        answer_id = self._capture.answer(
            query=question,
            answer=answer.text,
            contexts=answer.contexts,
            citations=answer.citations,
            model=MODEL,
            latency_ms=(time.perf_counter() - started) * 1000,
            retrieval_event_id=retrieval_id,
        )
        return Reply(answer.text, slugs, retrieval_id, answer_id)

    def rate(self, reply: Reply, verdict: Verdict, text: str | None = None, user_hash: str | None = None) -> str:
        """Capture the feedback of a user on an answer. Returns the id of the event."""
        return self._capture.feedback(
            target_event_id=reply.answer_event_id, verdict=verdict, text=text, user_hash=user_hash
        )


def gist(document: Document) -> str:
    """Return the first sentence of a document's docstring below its signature, or else its title."""
    body = document.text.partition("\n")[2].partition("\n\n")[2]
    name = document.id.rpartition(".")[2]
    prose = [sentence for sentence in sentences(body) if not sentence.startswith(f"{name}(")]
    return prose[0] if prose else document.title
