"""The rate of a key: what one second allows, when the next request may begin, and what is remembered."""

from datetime import UTC, datetime
from typing import Any

import pytest

from assay_access.api_keys import KeyKind, KeyRecord
from assay_gateway import rates
from assay_gateway.rates import Rates
from assay_gateway.refusal import RETRY_MAX_S, RefusedError


def record(**limits: Any) -> KeyRecord:
    return KeyRecord(
        id="A" * 10, sha256="0" * 64, kind=KeyKind.INGEST, project="shop", created_at=datetime.now(UTC), **limits
    )


def refusal(limits: Rates, key: KeyRecord, now: float) -> RefusedError:
    with pytest.raises(RefusedError) as refused:
        limits.begin(key, now)
    assert refused.value.status == 429
    return refused.value


def test_a_key_without_limits_is_never_refused() -> None:
    limits = Rates(0)
    for _ in range(100):
        limits.begin(record(), 0)
        limits.took(record(), events=10_000, size=10**9, now=0)


@pytest.mark.parametrize(("limit", "name"), [("events_per_s", "events"), ("bytes_per_s", "bytes")])
def test_a_key_that_has_used_up_its_rate_waits_until_it_comes_back(limit: str, name: str) -> None:
    limits, key = Rates(0), record(**{limit: 100})
    limits.begin(key, 0)
    limits.took(key, events=300, size=300, now=0)
    refused = refusal(limits, key, 0)
    assert refused.headers["Retry-After"] == "3"
    assert refused.headers["RateLimit-Policy"] == f'"{name}";q=100;w=1'
    assert refused.headers["RateLimit"] == f'"{name}";r=0;t=3'
    refusal(limits, key, 1.9)
    limits.begin(key, 2.1)


def test_no_client_is_asked_to_wait_longer_than_exporters_do() -> None:
    limits, key = Rates(0), record(events_per_s=1)
    limits.begin(key, 0)
    limits.took(key, events=10_000, size=0, now=0)
    assert refusal(limits, key, 0).headers["Retry-After"] == str(RETRY_MAX_S)


def test_an_address_may_send_so_many_verdicts_a_minute() -> None:
    limits = Rates(3)
    for _ in range(3):
        limits.feedback_from("10.0.0.1", 0)
    with pytest.raises(RefusedError, match="this address"):
        limits.feedback_from("10.0.0.1", 0)
    limits.feedback_from("10.0.0.2", 0)
    limits.feedback_from("10.0.0.1", 21)


def test_addresses_that_are_not_seen_again_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "ADDRESSES_MAX", 10)
    limits = Rates(1)
    for number in range(1_000):
        limits.feedback_from(str(number), 0)
    assert len(limits._addresses) == 10
    limits.feedback_from("0", 0)


def test_keys_that_are_gone_are_forgotten() -> None:
    limits, key = Rates(0), record(events_per_s=1)
    limits.begin(key, 0)
    limits.forget({key.id})
    assert limits._keys
    limits.forget(set())
    assert not limits._keys
