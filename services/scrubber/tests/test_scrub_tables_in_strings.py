"""Tables and forms inside strings of JSON and of programs, whose line breaks are escaped."""

import json

import pytest

from assay_scrubber.engine import Scrubber

GOES = [
    "user,password\nbob,Sunset1959!\n",
    "user,password\r\nbob,Sunset1959!\r\n",
    "user,password,role\nann,Rain17snow!,x\nbob,Sunset1959!,y",
    "| user | password |\n|---|---|\n| bob | Sunset1959! |\n",
    "user\tpassword\nbob\tSunset1959!\n",
    "Password:\nSunset1959!",
]
STAYS = [
    "user,password\n",
    "user,password\nbob\n",
    "the user, password\nand so on, and on",
    "Password:\nrequired",
    "name,passwords_count\nbob,12\n",
    "user,key\nbob,release-notes\n",
]


def written(text: str) -> list[str]:
    """The text in strings."""
    document = {"n": 1, "body": text, "more": ["user", "x"]}
    line = json.dumps(document)
    return [
        line,
        "log " + line,
        json.dumps(document, indent=2),
        json.dumps({"a": line}),
        json.dumps({"a": line}, indent=2),
        repr(document),
    ]


@pytest.mark.parametrize("text", GOES)
def test_it_goes_as_in_the_text_itself_and_json_stays_json(scrubber: Scrubber, text: str) -> None:
    assert "Sunset1959!" not in scrubber.scrub(text).text
    for whole in written(text):
        scrubbed = scrubber.scrub(whole).text
        assert "Sunset1959!" not in scrubbed
        assert "Rain17snow!" not in scrubbed
        assert "bob" in scrubbed or text.startswith("Password")
        assert scrubber.scrub(scrubbed).text == scrubbed
        if whole.startswith(('{"', "{\n")):
            json.loads(scrubbed)


@pytest.mark.parametrize("text", STAYS)
def test_what_holds_no_password_stays(scrubber: Scrubber, text: str) -> None:
    for whole in written(text):
        assert scrubber.scrub(whole).text == whole


def test_lists_of_names_stay(scrubber: Scrubber) -> None:
    text = '{\n  "columns": ["id", "password"],\n  "order": "id,password",\n  "first": "ann1,Rain17snow"\n}'
    assert scrubber.scrub(text).text == text
