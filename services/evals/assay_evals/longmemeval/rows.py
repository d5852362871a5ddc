"""Questions of LongMemEval with their chat histories, as in its released files. Pure.

The files have defects that a run has to survive: answers that are integers, histories that are not in the order of time,
sessions that are listed twice, empty turns, evidence that is missing. None of them is an error; each is counted.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay_evals.errors import EvalsError

#: Question types that the benchmark defines.
TYPES = (
    "single-session-user", "single-session-assistant", "single-session-preference",
    "multi-session", "knowledge-update", "temporal-reasoning",
)  # fmt: skip
#: Fields that only another benchmark has, its name, and what to use instead.
_OTHERS = (
    (
        {"conversation", "qa"}, "LoCoMo",
        "put its questions into a golden dataset and run `assay eval run` (its licence, CC BY-NC 4.0, forbids commercial use)",
    ),
    (
        {"trajectory_ids", "trajectories", "states", "domain", "goal"}, "LongMemEval-V2",
        "use its own harness, which replays trajectories of web agents and measures latency",
    ),
)  # fmt: skip
_NUMBERS = re.compile(r"\d+")


class DatasetError(EvalsError):
    """A file that is not of LongMemEval. Names the row and field, and quotes no question."""


@dataclass(frozen=True)
class Turn:
    """One message of a session. `evidence`: it contains a part of the answer."""

    role: str
    content: str
    evidence: bool = False


@dataclass(frozen=True)
class Session:
    """One chat session; `date` as in the file, such as `2023/05/30 (Tue) 23:40`."""

    id: str
    date: str | None
    turns: tuple[Turn, ...]

    @property
    def text(self) -> str:
        """Return the messages of both sides, one a line, each with its role."""
        return "\n".join(f"{turn.role}: {turn.content}" for turn in self.turns)


@dataclass(frozen=True)
class Row:
    """One question, and the sessions that a memory receives before it, in the order of time.

    `answer` is None if the row has none. `evidence` are the ids of the sessions with the answer. `quirks` counts the
    defects of the row.
    """

    id: str
    type: str
    question: str
    date: str | None
    answer: str | None
    sessions: tuple[Session, ...]
    evidence: tuple[str, ...]
    quirks: Mapping[str, int]

    @property
    def abstention(self) -> bool:
        """True if the question cannot be answered: `_abs` in its id, as in the reference."""
        return "_abs" in self.id

    @property
    def reference_evidence(self) -> frozenset[str]:
        """Return the evidence that the reference's retrieval metrics count.

        These are sessions whose id contains "answer" and that have a user's turn with evidence. The reference renames others to
        `noans`, because it indexes the user's turns only.
        """
        return frozenset(
            session.id
            for session in self.sessions
            if "answer" in session.id and any(turn.role == "user" and turn.evidence for turn in session.turns)
        )

    def session_of(self, result: str) -> str:
        """Return the session of a result: itself, or that of a turn `SESSION_N`; else the result."""
        ids = {session.id for session in self.sessions}
        session, _, turn = result.rpartition("_")
        return session if result not in ids and turn.isdecimal() and session in ids else result


def read_row(value: Any, place: str) -> Row:
    """Read one row. Raises `DatasetError`, which begins with `place`."""
    if not isinstance(value, dict):
        raise DatasetError(f"{place} is {_kind(value)}, not a JSON object")
    row_id = value.get("question_id")
    if isinstance(row_id, int) and not isinstance(row_id, bool):
        row_id = str(row_id)
    if not isinstance(row_id, str) or not row_id or "haystack_sessions" not in value:
        _expect_not_another(value, place)
    if not isinstance(row_id, str) or not row_id:
        raise DatasetError(f"{place} has no question_id")
    quirks: Counter[str] = Counter()
    answer = value.get("answer")
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        quirks["answers that are numbers"] += 1
        answer = str(answer)
    for name, text in (("question", value.get("question")), ("question_type", value.get("question_type"))):
        if not isinstance(text, str) or not text.strip():
            raise DatasetError(f"{place}: {name} is missing or not text")
    if answer is not None and not isinstance(answer, str):
        raise DatasetError(f"{place}: answer is {_kind(answer)}: it must be text or a number")
    date = value.get("question_date")
    date = date if isinstance(date, str) else None
    sessions = _sessions(value, row_id, place, quirks)
    ordered = in_time(sessions)
    ids = [session.id for session in sessions]
    evidence = _evidence(value, place)
    row = Row(row_id, value["question_type"], value["question"], date, answer, ordered, evidence, quirks)
    asked_at = moment(date)
    quirks.update(
        {
            "histories out of order": int(ordered != tuple(sessions)),
            "histories with a session twice": int(len(set(ids)) < len(ids)),
            "abstention questions": int(row.abstention),
            "questions without evidence": int(not evidence),
            "questions with evidence that is not in the history": int(not set(evidence) <= set(ids)),
            "questions whose evidence has no marked user turn": int(
                bool(evidence) and not row.abstention and not row.reference_evidence
            ),
            "histories with sessions after the question": int(
                asked_at is not None
                and any((at := moment(each.date)) is not None and at > asked_at for each in sessions)
            ),
        }
    )
    return row


def moment(date: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a date, which sort by time; None without year, month and day."""
    numbers = tuple(int(number[:9]) for number in _NUMBERS.findall(date or "")[:5])
    return numbers if len(numbers) >= 3 else None


def in_time(sessions: Sequence[Session]) -> tuple[Session, ...]:
    """Sort sessions by date. All keep their order if a date is missing or unreadable."""
    at = [moment(session.date) for session in sessions]
    if any(each is None for each in at):
        return tuple(sessions)
    order = sorted(range(len(sessions)), key=lambda place: at[place] or ())
    return tuple(sessions[place] for place in order)


def _sessions(value: Mapping[str, Any], row_id: str, place: str, quirks: Counter[str]) -> list[Session]:
    listed = value.get("haystack_sessions")
    if not isinstance(listed, list):
        raise DatasetError(f"{place}: haystack_sessions is missing or not a list")
    ids, dates = _column(value, "haystack_session_ids", place), _column(value, "haystack_dates", place)
    for name, column in (("haystack_session_ids", ids), ("haystack_dates", dates)):
        if column is not None and len(column) != len(listed):
            raise DatasetError(
                f"{place}: {len(listed)} haystack_sessions and {len(column)} {name}: there must be as many"
            )
    sessions = []
    for number, each in enumerate(listed):
        own = each.get("session_id") if isinstance(each, dict) else None
        session_id = ids[number] if ids is not None else own if own is not None else f"lme_{row_id}_{number}"
        if isinstance(session_id, int) and not isinstance(session_id, bool):
            session_id = str(session_id)
        if not isinstance(session_id, str) or not session_id:
            raise DatasetError(f"{place}: session {number + 1} has an id that is not text")
        date = dates[number] if dates is not None else None
        turns = _turns(each.get("turns") if isinstance(each, dict) else each, quirks)
        sessions.append(Session(session_id, date if isinstance(date, str) else None, turns))
    return sessions


def _turns(listed: Any, quirks: Counter[str]) -> tuple[Turn, ...]:
    if not isinstance(listed, list):
        quirks["unreadable sessions"] += 1
        return ()
    turns = []
    for each in listed:
        role, content = (each.get("role"), each.get("content")) if isinstance(each, dict) else (None, None)
        if not isinstance(role, str) or not isinstance(content, str):
            quirks["unreadable turns"] += 1
        elif not content.strip() and each.get("has_answer") is not True:
            quirks["empty turns"] += 1
        else:
            turns.append(Turn(role, content, each.get("has_answer") is True))
    return tuple(turns)


def _evidence(value: Mapping[str, Any], place: str) -> tuple[str, ...]:
    listed = _column(value, "answer_session_ids", place) or []
    if not all(isinstance(each, str | int) and not isinstance(each, bool) for each in listed):
        raise DatasetError(f"{place}: answer_session_ids has an id that is not text")
    return tuple(dict.fromkeys(str(each) for each in listed))


def _column(value: Mapping[str, Any], name: str, place: str) -> list[Any] | None:
    column = value.get(name)
    if column is not None and not isinstance(column, list):
        raise DatasetError(f"{place}: {name} is {_kind(column)}, not a list")
    return column


def _expect_not_another(value: Mapping[str, Any], place: str) -> None:
    """Raise `DatasetError` for a row of another benchmark, by name."""
    ids_by_question = bool(value) and all(
        isinstance(each, list) and all(isinstance(one, str) for one in each) for each in value.values()
    )
    for fields, name, instead in _OTHERS:
        if fields & value.keys() or (name == "LongMemEval-V2" and ids_by_question):
            raise DatasetError(f"{place} is of {name}, another benchmark, which this command cannot run: {instead}")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
