"""What is no session is found before it breaks an export, a check or a verdict."""

import copy
from typing import Any

import pytest

from assay_sessions.form import malformed
from tests.support.session_documents import call, document

TALK = document("Run.", "It works.", session_id="s", calls=(call("bash", 2, "ok"),))


def test_the_form_of_the_readers_is_the_form() -> None:
    assert malformed(TALK) == ""


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("intermediate_events", 0, "function_call"), {}, "intermediate_events.0.function_call.name"),
        (("intermediate_events", 0, "function_call", "args"), [], "intermediate_events.0.function_call.args"),
        (("intermediate_events", 0, "function_response"), None, "intermediate_events.0.function_response"),
        (("intermediate_events", 0, "turn"), "2", "intermediate_events.0.turn"),
        (("intermediate_events", 0), "secret", "intermediate_events.0"),
        (("request", "contents", 0), {"parts": []}, "request.contents.0.role"),
        (("request", "contents", 0, "parts"), [{"text": 1}], "request.contents.0.parts.0.text"),
        (("response", "candidates"), [{}], "response.candidates.0.content"),
    ],
)
def test_the_place_is_named_without_its_text(path: tuple[Any, ...], value: Any, place: str) -> None:
    broken = copy.deepcopy(TALK)
    target: Any = broken
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    found = malformed(broken)
    assert found.startswith(f"{place}:")
    assert "secret" not in found
