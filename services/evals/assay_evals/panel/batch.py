"""The answers of a file to judge: one JSON object per line, as `assay eval longmemeval` writes them.

The file is read once, line by line; only the lines of the sample are kept. The sample is random, and so is its order: a budget that
ends early has then judged a random part.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from assay_evals.strict_json import JsonError, loads

#: Maximum length of a question, an answer or a reference, in characters.
TEXT_CHARS = 200_000


@dataclass(frozen=True)
class Item:
    """A question with the answer to judge.

    `reference`: what the file has as the right answer; `given_as`: what that is.
    """

    question_id: str
    question: str
    answer: str
    reference: str | None = None
    given_as: Literal["reference", "rubric", "unanswerable"] = "reference"
    #: The family of the model that answered, if known: judges are never told.
    family: str | None = None


@dataclass
class Batch:
    """The sample of a file."""

    #: In random order.
    items: list[Item] = field(default_factory=list)
    #: Question ids of lines whose answer was an error.
    upstream_errors: list[str] = field(default_factory=list)
    #: Lines that are no question with an answer: number and reason.
    malformed: list[tuple[int, str]] = field(default_factory=list)
    #: Lines of the file that are questions, in the sample or not.
    lines: int = 0


def read_batch(lines: Iterable[str], limit: int, seed: int, family: str | None = None) -> Batch:
    """Read a sample of `limit` lines. `family`: that of answers whose line has no `family`."""
    batch, chosen = Batch(), list[tuple[int, int, str]]()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or _is_other(line):
            continue
        batch.lines += 1
        place = int.from_bytes(sha256(f"{seed}/{number}".encode()).digest()[:8])
        kept = (-place, number, line)
        if len(chosen) < limit:
            heapq.heappush(chosen, kept)
        elif kept > chosen[0]:
            heapq.heapreplace(chosen, kept)
    seen = set[str]()
    for _, number, line in sorted(chosen, reverse=True):
        try:
            item = _item(loads(line), family)
        except (JsonError, ValueError) as error:
            batch.malformed.append((number, str(error)))
            continue
        if isinstance(item, str):
            batch.upstream_errors.append(item)
        elif item.question_id in seen:
            batch.malformed.append((number, "the question id appears twice"))
        else:
            seen.add(item.question_id)
            batch.items.append(item)
    return batch


def _is_other(line: str) -> bool:
    """Return True for a line about the whole run, for example its summary by type."""
    if '"kind"' not in line:
        return False
    try:
        row = loads(line)
    except JsonError:
        return False
    return isinstance(row, dict) and isinstance(row.get("kind"), str) and "question_id" not in row


def _item(row: Any, family: str | None) -> Item | str:
    """Return the question of a line, or its id if the answer was an error. Raises `ValueError` without the line's content."""
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004  # a file's content, not an argument
    name = row.get("question_id")
    if not isinstance(name, str) or not name or len(name) > 500:
        raise ValueError("no question_id")
    question, answer = _text(row, "question"), row.get("hypothesis")
    if row.get("error") or (isinstance(answer, str) and not answer.strip()):
        return name
    reference = row.get("answer")
    blank = reference is None or not str(reference).strip()
    given = row.get("family") or family
    return Item(
        name,
        question,
        _text(row, "hypothesis"),
        None if blank else _text({"answer": str(reference)}, "answer"),
        _given_as(name, row.get("question_type")),
        given if isinstance(given, str) else None,
    )


def _given_as(name: str, kind: object) -> Literal["reference", "rubric", "unanswerable"]:
    """Return what LongMemEval's `answer` is: by its id, else by its type."""
    return "unanswerable" if "_abs" in name else "rubric" if kind == "single-session-preference" else "reference"


def _text(row: dict[str, Any], key: str) -> str:
    text = row.get(key)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"no {key}")
    if len(text) > TEXT_CHARS:
        raise ValueError(f"{key} has more than {TEXT_CHARS:,} characters")
    return text
