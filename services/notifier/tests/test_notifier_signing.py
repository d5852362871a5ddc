"""Signatures of webhooks, from both ends."""

import base64
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from assay_notifier.signing import CREATE, ID, SIGNATURE, TIMESTAMP, headers, key_of, verified

KEY = b"k" * 32
BODY = b'{"a": 1}'


def test_the_signature_is_the_specifications() -> None:
    # The specification's own example.
    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = headers(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert signed == {
        ID: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        TIMESTAMP: "1614265330",
        SIGNATURE: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_the_recommended_secret_has_the_key_that_libraries_of_the_specification_use() -> None:
    assert CREATE == 'echo "whsec_$(openssl rand -base64 32)"'
    random = os.urandom(32)
    assert key_of(f"whsec_{base64.b64encode(random).decode()}") == random


def test_the_documented_receiver_verifies_a_request_signed_with_the_documented_secret() -> None:
    page = (Path(__file__).parents[3] / "docs/alerts.md").read_text()
    assert f"`{CREATE}`" in page
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)  # noqa: S102  # our own page
    secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
    signed = headers(key_of(secret), "one", int(time.time()), BODY)
    assert names["is_ours"](secret, signed, BODY)
    assert not names["is_ours"](secret, signed, BODY + b" ")


@pytest.mark.parametrize(
    ("change", "fine"),
    [
        ({}, True),
        ({"content": b'{"a": 2}'}, False),
        ({"message_id": "other"}, False),
        ({"timestamp": "1001"}, False),
        ({"timestamp": "soon"}, False),
        ({"key": b"x" * 32}, False),
        ({"now": 1299.0}, True),
        ({"now": 1301.0}, False),
        ({"now": 699.0}, False),
        ({"signature": "v2,abc"}, False),
    ],
)
def test_a_receiver_takes_what_is_ours_unchanged_and_recent(change: dict[str, object], fine: bool) -> None:
    signed = headers(KEY, "one", 1000, BODY)
    given: dict[str, object] = {
        "key": KEY, "message_id": signed[ID], "timestamp": signed[TIMESTAMP], "signature": signed[SIGNATURE],
        "content": BODY, "now": 1000.0,
    }  # fmt: skip
    assert verified(**(given | change)) is fine  # type: ignore[arg-type]


def test_a_receiver_finds_ours_among_signatures_of_several_keys() -> None:
    signed = headers(KEY, "one", 1000, BODY)
    assert verified(KEY, "one", "1000", f"v1,old {signed[SIGNATURE]}", BODY, now=1000)


@pytest.mark.parametrize("secret", ["short", "whsec_notbase64!", "whsec_" + base64.b64encode(b"short").decode()])
def test_a_weak_or_broken_secret_is_refused_without_being_shown(secret: str) -> None:
    with pytest.raises(ValueError, match=r"24 bytes|base64") as error:
        key_of(secret)
    assert secret not in str(error.value)
