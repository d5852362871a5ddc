"""A text that is JSON is JSON afterwards, whatever is found where in it; and any replacement that a policy may have settles."""

import json

import pytest

from assay_scrubber.engine import Scrubber
from assay_scrubber.policy import Policy, PolicyError

GONE = "[REDACTED]"
TEXTS = [
    (r'{"log":"mysql -pfoo1bar\""}', {"log": f'mysql -p{GONE}"'}),
    (r'{"l":"requirepass Kx9abc\""}', {"l": f'requirepass {GONE}"'}),
    (r'{"b":"user app on >Kx9abc\""}', {"b": f'user app on >{GONE}"'}),
    (r'{"x":"passw<<<pd\""}', {"x": f'passw<<<{GONE}"'}),
    (r'{"b":"name=\"password\"\n\nKx9abc"}', {"b": f'name="password"\n\n{GONE}'}),
    ('{"otp":381924}', {"otp": GONE}),
    ('{"pin": 1234, "cvv":123,"ids":[4111111111111111,2]}', {"pin": GONE, "cvv": GONE, "ids": [GONE, 2]}),
    ('{"card":-4111111111111111.0}', {"card": GONE}),
    ('{"card":[4111,1111,1111,1111]}', {"card": [GONE] * 4}),
    (r'{"password":"ab\"cd12","login":"x"}', {"password": GONE, "login": "x"}),
    (r'{"password":"C:\\ab12\\","login":"x"}', {"password": GONE, "login": "x"}),
    (r'{"body":"{\"password\":\"ab\\\"cd12\",\"a\":1}"}', {"body": f'{{"password":"{GONE}","a":1}}'}),
    ('{"at":"\\u0061nn@example.com","n":1}', {"at": GONE, "n": 1}),
    ('["\\ud83d", {"otp":381924}]', ["\ud83d", {"otp": GONE}]),
]
REPLACEMENTS = ("removed, pii", "REMOVED: x", "x", "gone")
SECRETS = [
    "mysql -u root -pHunter2x",
    "curl -u ana:Hunter2x h",
    "user app on >Kx9abcde1",
    '{"name":"password","value":"Hunter2x"}',
    "name,password\nana,Hunter2x\n",
    "net user ana Hunter2x /add",
    "call +44 20 7946 0958, the password is Hunter2x",
    '{"otp":381924,"password":"Hunter2x"}',
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_json_stays_json(scrubber: Scrubber, text: str, expected: object) -> None:
    scrubbed = scrubber.scrub(text).text
    assert json.loads(scrubbed) == expected
    assert scrubber.scrub(scrubbed).text == scrubbed


def test_so_does_every_line_that_is_json(scrubber: Scrubber) -> None:
    lines = [
        "GET /a 200",
        '{"otp":381924}',
        "password: rain17",
        r'{"log":"mysql -pfoo1bar\""}',
        "",
        '[{"pin": 1234}]\r',
    ]
    scrubbed = scrubber.scrub("\n".join(lines)).text.split("\n")
    assert scrubbed[0] == lines[0]
    assert [json.loads(scrubbed[at]) for at in (1, 3, 5)] == [
        {"otp": GONE},
        {"log": f'mysql -p{GONE}"'},
        [{"pin": GONE}],
    ]
    assert scrubbed[2] == f"password: {GONE}"
    assert scrubber.scrub("\n".join(scrubbed)).text == "\n".join(scrubbed)


def test_an_argument_ends_with_its_string(scrubber: Scrubber) -> None:
    for text in ('{"a":"sshpass -p"},{"b":1}', '[{"a":"sshpass -p"},{"b":1}]'):
        assert scrubber.scrub(text).text == text


@pytest.mark.parametrize("replacement", REPLACEMENTS)
@pytest.mark.parametrize("text", SECRETS)
def test_every_replacement_settles(replacement: str, text: str) -> None:
    scrubber = Scrubber(Policy(replacement=replacement))
    scrubbed = scrubber.scrub(text).text
    assert replacement in scrubbed
    assert not any(secret in scrubbed for secret in ("Hunter2x", "Kx9abcde1", "381924"))
    assert scrubber.scrub(scrubbed).text == scrubbed


@pytest.mark.parametrize("replacement", ['"gone"', "a\\b", "two\nlines"])
def test_a_replacement_that_would_break_json_is_refused(replacement: str) -> None:
    with pytest.raises(PolicyError, match="replacement"):
        Policy(replacement=replacement)


@pytest.mark.parametrize(
    "document",
    [
        {"card": 4111111111111111, "n": 1},
        [4111111111111111, 2],
        {"a": [-4111111111111111.0, 4111111111111111]},
        {"otp": 381924, "at": "ann@example.com"},
        {"a": {"password": 12345678, "n": [1, 2]}},
        {"n": 1, "password": 4111111111111111},
        {"a": [{"apiKey": 4111111111111111}]},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_number_in_json_inside_json_becomes_text_there_too(
    scrubber: Scrubber, document: object, indent: int | None
) -> None:
    inner = json.dumps(document, indent=indent)
    expected = json.loads(scrubber.scrub(inner).text)
    assert GONE in str(expected)
    once = json.dumps({"log": inner})
    assert json.loads(json.loads(scrubber.scrub(once).text)["log"]) == expected
    twice = scrubber.scrub(json.dumps([once])).text
    assert json.loads(json.loads(json.loads(twice)[0])["log"]) == expected
    assert scrubber.scrub(twice).text == twice
