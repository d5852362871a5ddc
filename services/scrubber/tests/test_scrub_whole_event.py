"""Payloads whose kind needs more than its paths: summaries of tool calls, and continuations in parts of sessions."""

from typing import Any

from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy
from assay_scrubber.whole_event import scrub_event

SCRUBBER = Scrubber(Policy())
WHO = "jane.doe@example.com"
SECRET = "h7Xk2pQz9wLmR4tV"


def session(**lists: Any) -> dict[str, Any]:
    events = lists.get("events", [])
    return {
        "session_id": "s",
        "title": None,
        "request": {"contents": lists.get("contents", [])},
        "response": {"candidates": []},
        "intermediate_events": events,
        "metadata": {},
    }


def test_summaries_are_masked_by_the_four_rules_and_what_they_mask_is_counted() -> None:
    payload = {
        "tool_name": "query",
        "args_summary": {
            "to": WHO,
            "filters": {"name": "Jane", "age": 41, "gone": None},
            "db": "postgres://u:p@db/x",
            "text": "x" * 2049,
            "ok": "rows",
        },
        "result_summary": {"matches": 3},
        "message": None,
    }
    scrubbed = scrub_event(SCRUBBER, "tool_call", payload)
    assert scrubbed.value["args_summary"] == {
        "to": "<email>",
        "filters": {"name": "<value>", "age": "<value>", "gone": None},
        "db": "<redacted-connection-url>",
        "text": "<truncated:2049 bytes>",
        "ok": "rows",
    }
    assert scrubbed.value["result_summary"] == {"matches": 3}
    assert scrubbed.counts["email"] == 1
    assert scrubbed.counts["connection_url"] == 1


def test_what_no_rule_masks_is_scrubbed_as_everything_else() -> None:
    payload = {"args_summary": {"password": SECRET, "rows": [{"ssn": "078-05-1120"}], "n": 5}, "result_summary": None}
    scrubbed = scrub_event(SCRUBBER, "tool_call", payload).value
    assert SECRET not in str(scrubbed)
    assert "078-05-1120" not in str(scrubbed)
    assert scrubbed["args_summary"]["n"] == 5


def test_a_secret_in_a_text_that_is_too_long_is_counted_although_nothing_of_it_is_kept() -> None:
    payload = {"args_summary": {"log": "x " * 2000 + f"mail {WHO}"}, "result_summary": None}
    scrubbed = scrub_event(SCRUBBER, "tool_call", payload)
    assert scrubbed.value["args_summary"] == {"log": f"<truncated:{4000 + 5 + len(WHO)} bytes>"}
    assert scrubbed.counts == {"email": 1}


def test_a_continuation_is_scrubbed_below_the_keys_of_the_value_that_it_continues() -> None:
    head = {"function_call": {"name": "login", "args": {"password": SECRET, "note": "a"}}, "turn": 1}
    events = [
        head,
        {"continues": ["function_call", "args", "password"], "text": SECRET},
        {"continues": ["function_call", "args", "note"], "text": f"b, mail {WHO}"},
        {"continues": ["function_call", "args"], "keys": {"api_key": SECRET, "city": "Bonn"}},
        {"continues": ["function_call", "args", "list"], "items": [1, WHO]},
    ]
    scrubbed = scrub_event(SCRUBBER, "session", session(events=events)).value
    assert SECRET not in str(scrubbed)
    assert WHO not in str(scrubbed)
    found = scrubbed["intermediate_events"]
    assert [item.get("continues") for item in found] == [item.get("continues") for item in events]
    assert found[2]["text"].startswith("b, mail ")
    assert found[3]["keys"]["city"] == "Bonn"
    assert found[4]["items"][0] == 1


def test_a_session_without_continuations_is_scrubbed_item_by_item_and_its_input_is_unchanged() -> None:
    payload = session(contents=[{"role": "user", "parts": [{"text": f"mail {WHO}"}]}], events=[{"turn": 1}])
    scrubbed = scrub_event(SCRUBBER, "session", payload).value
    assert WHO not in str(scrubbed)
    assert WHO in str(payload)
    assert scrubbed["intermediate_events"] == [{"turn": 1}]


def test_what_only_looks_like_a_continuation_is_left_as_it_is() -> None:
    items: list[Any] = [
        {"continues": "yes", "text": "a"},
        {"continues": [], "other": 1},
        {"continues": ["a"], "text": "b", "more": 1},
        "text",
        7,
        None,
    ]
    scrubbed = scrub_event(SCRUBBER, "session", session(events=items)).value
    assert scrubbed["intermediate_events"] == items


def test_lists_that_are_no_lists_are_scrubbed_whole() -> None:
    payload = session() | {"request": {"contents": {"a": WHO}}, "response": {}, "intermediate_events": []}
    assert WHO not in str(scrub_event(SCRUBBER, "session", payload).value)
