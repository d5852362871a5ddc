"""People read why there is no verdict in plain words, with the setting that changes it, and never the name of a class."""

from datetime import UTC, datetime
from typing import Any

import pytest

from assay_cli.output.evidence import as_text as answer_text
from assay_cli.output.rubric import as_text as session_text
from assay_operations.judging.explained import detail_in_words
from assay_operations.sessions.verdicts import SessionVerdict

WORDS = "the reply did not have the requested form (judge.model, judge.json_mode)"


def shown_of_session(status: str, detail: str) -> str:
    return session_text(SessionVerdict(status, {}, (), detail, "m-1", "f", True, 1, datetime(2026, 11, 25, tzinfo=UTC)))


def shown_of_answer(status: str, detail: str) -> str:
    row: dict[str, Any] = {
        "event_id": "e", "project": "shop", "model": "m-1", "fingerprint": "f", "status": status, "detail": detail,
        "metrics": {}, "checks": {}, "claims": 0, "verdicts": [],
    }  # fmt: skip
    return answer_text(row, [])


@pytest.mark.parametrize("shown", [shown_of_session, shown_of_answer])
def test_the_reason_of_an_error_is_shown_in_words(shown: Any) -> None:
    text = shown("judge_error", "ReplyMisfit")
    assert WORDS in text
    assert "Misfit" not in text


@pytest.mark.parametrize("shown", [shown_of_session, shown_of_answer])
def test_other_details_are_shown_as_they_are(shown: Any) -> None:
    assert "the answer makes no claim" in shown("abstained", "the answer makes no claim")
    assert "None" not in shown("scored", "")


def test_an_error_without_a_detail_has_an_unknown_reason_and_a_score_has_none() -> None:
    assert detail_in_words("judge_error", "") == "unknown reason"
    assert detail_in_words("scored", "") == ""
