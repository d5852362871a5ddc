"""What a page of the console says after an action: only the console can write it, for one person and one page."""

import base64
import json

import pytest

from assay_access.console_links import NOTICE_S, RefusedLinkError, Signer, link_token

KEY = b"a key of forty bytes that only tests know"
SIGNER = Signer(KEY, 0.0)
NOTICE = SIGNER.notice("requeued", "ada", "/failures/requeue", 100.0)


def test_a_notice_is_read_on_its_page_by_its_person_for_a_minute() -> None:
    assert SIGNER.noticed(NOTICE, "ada", "/failures/requeue", 100.0) == "requeued"
    assert SIGNER.noticed(NOTICE, "ada", "/failures/requeue", 99.0 + NOTICE_S) == "requeued"


@pytest.mark.parametrize(
    ("name", "path", "now"),
    [("bob", "/failures/requeue", 100.0), ("ada", "/label", 100.0), ("ada", "/failures/requeue", 100.0 + NOTICE_S)],
)
def test_a_notice_for_another_person_page_or_time_is_refused(name: str, path: str, now: float) -> None:
    with pytest.raises(RefusedLinkError):
        SIGNER.noticed(NOTICE, name, path, now)


def forged(text: str) -> str:
    claims = {"use": "notice", "text": text, "name": "ada", "path": "/failures/requeue", "until": 9e9}
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=") + "." + NOTICE.partition(".")[2]


@pytest.mark.parametrize(
    "cookie",
    [
        forged("all is lost"),
        Signer(b"another key of thirty-two bytes or more", 0.0).notice("x", "ada", "/failures/requeue", 100.0),
        SIGNER.session("ada", "OPERATOR", 100.0, 1.0),
        link_token(KEY, 100.0),
        "",
        "requeued",
    ],
    ids=["forged", "other key", "session", "link", "empty", "plain"],
)
def test_what_the_console_did_not_write_as_a_notice_is_refused(cookie: str) -> None:
    with pytest.raises(RefusedLinkError):
        SIGNER.noticed(cookie, "ada", "/failures/requeue", 100.0)


def test_a_notice_signs_nobody_in() -> None:
    with pytest.raises(RefusedLinkError):
        SIGNER.person(NOTICE, 100.0)
