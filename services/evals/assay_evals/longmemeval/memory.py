"""Memories under test: each receives the sessions of a question, then the question.

A target has two hooks. `ingest` receives `tool_name` "ingest" and `params` with `memory`, the name of the memory, and `sessions`, in
the order of time; it replaces the content of that memory. `ask` receives the question as any target does, and the `memory` and the
`question_date` in `params`. One target can be both. Without a target, a memory in this process answers, by BM25.

Ids of the released files tell what is evidence (`answer_...`) and which question has no answer (`..._abs`), so a hook receives others.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Protocol

from assay_evals.longmemeval.rows import Row, Session
from assay_evals.target.response import TargetResponse
from assay_evals.target.targets import Question, Target

#: Name of the memory in this process.
BM25 = "bm25"
#: Value of `tool_name` in a call that stores sessions.
INGEST = "ingest"
#: Most results that can be requested, and that are read of a response.
RESULTS_MAX = 1_000
_K1, _B = 1.2, 0.75
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class MemoryQuestion(Question):
    """A question, and the row whose sessions come before it.

    `token`: secret text in the ids that a hook receives, the same for all processes of a run. `answer`: the answer that the memory gave
    before, with which it is not asked again.
    """

    row: Row | None = None
    token: str = ""
    answer: str | None = None


class Hook(Target, Protocol):
    """A target that can also receive what needs no reply."""

    async def tell(self, question: Question) -> None:
        """Send a call, and ignore the content of its reply. Raises `TargetError`."""


class HookedMemory:
    """A memory behind two hooks. A retry stores the sessions again."""

    def __init__(self, ask: Hook, ingest: Hook) -> None:
        self._ask, self._ingest = ask, ingest
        #: Milliseconds of the last ingestion, by memory.
        self.ingest_ms: dict[str, float] = {}

    async def ask(self, question: Question) -> TargetResponse:
        """Store the sessions, then ask. Raises `TargetError`."""
        assert isinstance(question, MemoryQuestion)
        assert question.row is not None
        row, params = question.row, {"memory": opaque_id(question.token, question.row.id)}
        names = {opaque_id(question.token, row.id, each.id): each.id for each in row.sessions}
        started = time.perf_counter()
        sessions = [plain_session(each, opaque_id(question.token, row.id, each.id)) for each in row.sessions]
        await self._ingest.tell(Question("", question.limit, INGEST, params=params | {"sessions": sessions}))
        self.ingest_ms[row.id] = (time.perf_counter() - started) * 1000
        asked = Question(question.query, question.limit, question.tool_name, expand_enabled=question.expand_enabled)
        return with_names(await self._ask.ask(replace(asked, params=params | {"question_date": row.date})), names)

    async def close(self) -> None:
        """Close both hooks."""
        await self._ask.close()
        if self._ingest is not self._ask:
            await self._ingest.close()


class AnsweredBefore:
    """A memory that is not asked a question that it has answered."""

    def __init__(self, memory: Target) -> None:
        self._memory = memory

    async def ask(self, question: Question) -> TargetResponse:
        """Return the answer of the question, or ask the memory. Raises `TargetError`."""
        if isinstance(question, MemoryQuestion) and question.answer is not None:
            return TargetResponse([], 0.0, answer=question.answer)
        return await self._memory.ask(question)

    async def close(self) -> None:
        """Close the memory."""
        await self._memory.close()


def opaque_id(*parts: str) -> str:
    """Return a name that is the same for the same parts, and tells nothing of them."""
    return sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:24]


def with_names(response: TargetResponse, names: Mapping[str, str]) -> TargetResponse:
    """Return a response with the names of the dataset for sessions and turns. `names`: by opaque id."""

    def name_of(result: str) -> str:
        session, _, turn = result.partition("_")
        return names.get(result) or (f"{names[session]}_{turn}" if session in names else result)

    contexts = [(name_of(name), text) for name, text in response.contexts]
    return replace(response, slugs=[name_of(each) for each in response.slugs], contexts=contexts)


def plain_session(session: Session, name: str) -> dict[str, Any]:
    """Return a session as a hook receives it, by another name and without the marks of evidence."""
    turns = [{"role": turn.role, "content": turn.content} for turn in session.turns]
    return {"session_id": name, "date": session.date, "turns": turns}


class Bm25Memory:
    """A memory in this process: BM25 over whole sessions, with the words of both sides.

    The scores are those of Robertson and Zaragoza (2009). Its answer is the message that fits best: a baseline without a model.
    """

    def __init__(self) -> None:
        self.ingest_ms: dict[str, float] = {}

    async def ask(self, question: Question) -> TargetResponse:
        """Rank the sessions by BM25; sessions without a word of the question are not returned."""
        assert isinstance(question, MemoryQuestion)
        assert question.row is not None
        started = time.perf_counter()
        sessions = question.row.sessions
        scores = bm25(question.query, ["\n".join(turn.content for turn in each.turns) for each in sessions])
        order = sorted((place for place, score in enumerate(scores) if score > 0), key=lambda place: -scores[place])
        ranked = list(dict.fromkeys(sessions[place].id for place in order))[: question.limit]
        answer = best_turn(question.query, [each for each in sessions if each.id in ranked[:3]])
        return TargetResponse(ranked, (time.perf_counter() - started) * 1000, answer=answer)

    async def close(self) -> None:
        """Do nothing."""


def bm25(query: str, texts: list[str]) -> list[float]:
    """Return the score of each text for a query. Pure."""
    asked = frozenset(_words(query))
    counts, lengths = [], []
    for text in texts:
        words = list(_words(text))
        counts.append(Counter(word for word in words if word in asked))
        lengths.append(len(words))
    mean = sum(lengths) / len(lengths) if lengths else 0.0
    texts_with = Counter(word for count in counts for word in count)
    weights = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in texts_with.items()}
    return [
        sum(
            weights[word] * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length / mean))
            for word, count in found.items()
        )
        for found, length in zip(counts, lengths, strict=True)
    ]


def best_turn(query: str, sessions: list[Session]) -> str:
    """Return the message with the highest score; empty without one."""
    messages = [turn.content for session in sessions for turn in session.turns]
    scores = bm25(query, messages)
    return messages[max(range(len(scores)), key=scores.__getitem__)] if any(scores) else ""


def _words(text: str) -> Iterator[str]:
    return (found[0] for found in _WORD.finditer(text.casefold()))


def passages(row: Row, response: TargetResponse, top_k: int) -> list[tuple[str, str]]:
    """Return the texts for a model, with dates: those of the memory, else the retrieved sessions."""
    dates = {session.id: session.date or "" for session in row.sessions}
    if response.contexts:
        return [(dates.get(row.session_of(name), ""), text) for name, text in response.contexts]
    texts = {session.id: session.text for session in row.sessions}
    return [(dates[name], texts[name]) for name in ranking(row, response)[:top_k] if name in texts]


def ranking(row: Row, response: TargetResponse) -> list[str]:
    """Return the distinct sessions of a response, in its order; a turn stands for its session."""
    return list(dict.fromkeys(row.session_of(slug) for slug in response.slugs[:RESULTS_MAX]))
