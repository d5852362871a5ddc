"""Rows in the form of LongMemEval's released files, with made-up conversations."""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TYPES = (
    "single-session-user", "single-session-assistant", "single-session-preference",
    "multi-session", "knowledge-update", "temporal-reasoning",
)  # fmt: skip
_FILLER = (
    "The weather is mild today.",
    "Which film did you like?",
    "Bread needs time to rise.",
    "Trains leave at noon.",
)


def turn(role: str, content: str, evidence: bool | None = None) -> dict[str, Any]:
    """Return one message; `has_answer` is only there if `evidence` is given, as in the files."""
    return {"role": role, "content": content} | ({} if evidence is None else {"has_answer": evidence})


def row(
    name: str,
    *,
    kind: str = TYPES[0],
    answer: Any = "blue",
    sessions: int = 5,
    evidence: Sequence[int] = (1,),
    **changes: Any,
) -> dict[str, Any]:
    """Return a question about the colour of `name`; the sessions at `evidence` have the answer.

    Changes replace fields.
    """
    ids = [f"answer_{name}_{place}" if place in evidence else f"sharegpt_{name}_{place}" for place in range(sessions)]
    chats = []
    for place in range(sessions):
        filler = _FILLER[place % len(_FILLER)]
        if place in evidence:
            chats.append([turn("user", f"By the way, my {name} is {answer}.", True), turn("assistant", filler, False)])
        else:
            chats.append([turn("user", filler), turn("assistant", f"Noted: {filler}")])
    return {
        "question_id": name,
        "question_type": kind,
        "question": f"What colour is my {name}?",
        "answer": answer,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ids,
        "haystack_dates": [f"2023/05/{place + 1:02d} (Mon) 10:{place:02d}" for place in range(sessions)],
        "haystack_sessions": chats,
        "answer_session_ids": [ids[place] for place in evidence],
    } | changes


def rows(count: int, **options: Any) -> list[dict[str, Any]]:
    """Return questions of every type; each tenth cannot be answered."""
    return [
        row(f"thing{number}" + ("_abs" if number % 10 == 9 else ""), kind=TYPES[number % len(TYPES)], **options)
        for number in range(count)
    ]


def write(path: Path, content: Iterable[dict[str, Any]]) -> Path:
    """Write rows as a JSON array, as the released files are."""
    path.write_text(json.dumps(list(content), indent=4))
    return path


def large_row(number: int, characters: int, generator: random.Random) -> dict[str, Any]:
    """Return a question with so many characters of conversation, in 48 sessions."""
    words = [f"w{generator.randrange(50_000)}" for _ in range(2_000)]

    def text() -> str:
        return " ".join(generator.choices(words, k=characters // 48 // 10 // 6))

    made = row(f"large{number}", kind=TYPES[number % len(TYPES)], sessions=48)
    for place, chat in enumerate(made["haystack_sessions"]):
        if place != 1:
            chat[:] = [turn("user" if each % 2 == 0 else "assistant", text()) for each in range(10)]
    return made
