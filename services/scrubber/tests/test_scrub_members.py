"""What keys of objects announce: the same in a document, in a line of a log, as Python prints it and in a string of JSON."""

import json

import pytest

from assay_scrubber.engine import Scrubber

OPAQUE = "a8Fj2kLm9QwErTy7UiOp"
PAGE = "CiAKGjBpNDd2Nmp2Zml2cXRwYjBpOXA"
OF_OPAQUE = [
    "passcode",
    "bearer",
    "sid",
    "connect.sid",
    "app_session",
    "_session_id",
    "session",
    "csrftoken",
    "sig",
    "private_key_id",
    "signature",
    "cookie",
    "Set-Cookie",
    "jwt",
    "recovery_code",
    "code_verifier",
    "device_code",
    "wifi_key",
    "pass_phrase",
    "sessionId",
    "session_id",
]
CLEAR = ["api_key", "apiKey", "x-api-key", "access_token", "client_secret", "clientSecret", "secret_key"]
SHORT = ["xmWiBrjKIR", "4Fmputywqcc", "741vCSnfbj", "rGwVGtDES", "71584163", "ed692926"]
NO_CREDENTIALS = [
    "sunflower",
    "apiKeyName",
    "myServiceKey",
    "myAwsDbKey",
    "dbPwdKey",
    "OpenAIKey",
    "HTTPClient",
    "IOException",
    "McDonald",
    "1.2.3",
    "v2.0.1",
    "true",
    "string",
    "str",
    "12",
    "1200",
    "20261125",
    "20261125093000",
    "00000000",
    "12months",
    "24hours",
    "500milliseconds",
    "3rdParty",
    "AWS_SECRET_KEY",
    "YOUR_API_KEY",
    "db-creds-v2",
    "my_key_name",
    "oauth2",
]
PAGING = [
    "next_page_token",
    "nextPageToken",
    "pageToken",
    "page_token",
    "next_token",
    "continuation_token",
    "continuationToken",
    "cursor",
    "sync_token",
]
GOES = [
    ("pw", "Hunter22x!"),
    ("_session_id", "4a7620ac241901f9bc3e5b35e87aeb79"),
    ("sessionId", "VtRmPrVhFYhY"),
    *((key, OPAQUE) for key in OF_OPAQUE),
    *((key, value) for key in CLEAR for value in SHORT),
]
STAYS = [
    *((key, value) for key in CLEAR for value in NO_CREDENTIALS),
    *((key, PAGE) for key in PAGING),
    ("session_id", "checkout-flow-12"),
    ("session_id", "550e8400-e29b-41d4-a716-446655440000"),
    ("session_id", "4a7620ac241901f9bc3e5b35e87aeb79"),
    ("server_session_id", "11111111-2222-3333-4444-555555555555"),
    ("server_session_id", "4a7620ac241901f9bc3e5b35e87aeb79"),
    ("session", "GPT4TurboRun12Eval"),
    ("sessionId", "01KBXYZABCDEFGHJKMNPQRSTVW"),
    ("session", "morning-2"),
    ("session", "2026-11-25"),
    ("sid", "1234"),
    ("signature", "(self, name) -> None"),
    ("sig", "SIGTERM"),
    ("cookie", "theme=dark"),
    ("jwt", "enabled"),
    ("bearer", "me"),
    ("pw", "none"),
    ("passcode", "required"),
    ("wifi_key", "none"),
    ("device_code", "sm-g991b"),
    ("recovery_code", "unused"),
]


def written(key: str, value: str) -> list[str]:
    """The same member as texts."""
    document = {"user": "jo", key: value, "active": True}
    line = json.dumps(document)
    return [line, "log " + line, json.dumps(document, indent=2), repr(document), json.dumps({"body": line})]


@pytest.mark.parametrize(("key", "value"), GOES)
def test_a_value_goes_wherever_its_object_is_written(scrubber: Scrubber, key: str, value: str) -> None:
    assert scrubber.scrub_json({key: value}).value[key] != value
    for text in written(key, value):
        scrubbed = scrubber.scrub(text).text
        assert value not in scrubbed
        assert scrubber.scrub(scrubbed).text == scrubbed


@pytest.mark.parametrize(("key", "value"), STAYS)
def test_what_only_looks_like_one_stays(scrubber: Scrubber, key: str, value: str) -> None:
    assert scrubber.scrub_json({key: value}).value == {key: value}
    for text in written(key, value):
        assert scrubber.scrub(text).text == text


@pytest.mark.parametrize("key", PAGING)
def test_tokens_that_page_stay_in_params_of_events(scrubber: Scrubber, key: str) -> None:
    document = {"params": {key: PAGE, "session_id": 42}}
    assert scrubber.scrub_json(document) == (document, {})
