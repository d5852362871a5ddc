"""What a person is told about answers without a verdict."""

import re

import pytest

from assay_judge.api import RejectedError, StoppedError, failure_of, refusal_of
from assay_judge.reasons import REASONS, reason, reasons
from assay_schema.settings import JudgeSettings


def test_a_model_that_is_not_found_stops_judging_and_a_batch_that_is_not_found_does_not() -> None:
    refused = refusal_of(404, "NotFoundError", {})
    assert isinstance(refused, StoppedError)
    assert refused.kind == "NotFoundError: model or address not found; check judge.model and judge.base_url"
    assert isinstance(failure_of(404, "NotFoundError", {}), RejectedError)


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ("ReplyNotJson", "the reply was not JSON (judge.model, judge.json_mode)"),
        ("Batch: ReplyTruncated", "the reply was truncated (judge.max_output_tokens)"),
        (
            "APITimeoutError (no time left: judge.deadline_s)",
            "the reply did not arrive in time (judge.request_timeout_s)",
        ),
        ("APIConnectionError", "no connection to the API (judge.base_url)"),
        ("Http429", "the API's rate limit was exhausted (judge.requests_per_minute, judge.tokens_per_minute)"),
        ("Http503", "the API was busy or failed"),
        ("OverloadedError", "the API was busy or failed"),
        ("Batch: the request expired", "Batch: the request expired"),
        ("", "unknown reason"),
    ],
)
def test_why_there_is_no_verdict_is_said_with_the_setting_that_mends_it(detail: str, said: str) -> None:
    assert reason(detail) == said


def test_every_setting_that_a_reason_names_exists_and_the_commonest_reason_comes_first() -> None:
    told = reasons({"ReplyNotJson": 3, "Http503": 2, "InternalServerError": 2, "InputTooLarge: above": 1})
    assert [count for count, _ in told] == [4, 3, 1]
    assert told[0] == (4, "the API was busy or failed")
    named = {name for text in REASONS.values() for name in re.findall(r"judge\.(\w+)", text)}
    assert named
    assert named <= JudgeSettings.model_fields.keys()
