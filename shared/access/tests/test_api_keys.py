"""The form of keys, their records, and which key fits which record."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from assay_access.api_keys import (
    KeyKind,
    KeyRecord,
    KeyState,
    as_fields,
    expiry,
    fits,
    id_of,
    key_hash,
    new_key,
    records_in,
    revocation,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def record(key: str, key_id: str, **facts: object) -> KeyRecord:
    given = {"kind": KeyKind.INGEST, "project": "shop", "created_at": NOW} | facts
    return KeyRecord.model_validate({"id": key_id, "sha256": key_hash(key), **given})


def stored(*fields: dict[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode() for each in fields for name, value in each.items()}


@pytest.mark.parametrize("kind", KeyKind)
def test_a_new_key_names_its_kind_and_its_id(kind: KeyKind) -> None:
    key, key_id = new_key(kind)
    assert key.startswith(f"assay_{kind}_{key_id}_")
    assert id_of(key) == key_id
    assert len({new_key(kind)[0] for _ in range(100)}) == 100


def test_a_key_fits_its_own_record_only() -> None:
    (key, key_id), (other, _) = new_key(KeyKind.INGEST), new_key(KeyKind.INGEST)
    assert fits(key, record(key, key_id))
    assert not fits(other, record(key, key_id))


def test_no_part_of_a_key_is_in_its_record_except_the_id() -> None:
    key, key_id = new_key(KeyKind.INGEST)
    kept = record(key, key_id)
    secret = key.rpartition("_")[2]
    assert secret not in str(as_fields(kept))
    assert key_hash(key) not in repr(kept)


@pytest.mark.parametrize(
    "text", ["", "assay", "assay_ingest_short_x", "assay_admin_" + "a" * 10 + "_" + "b" * 32, "ä" * 55]
)
def test_a_text_that_is_no_key_has_no_id(text: str) -> None:
    assert id_of(text) is None


@given(st.text(max_size=80))
def test_any_text_can_be_asked_for_an_id(text: str) -> None:
    assert id_of(text) is None


def test_a_key_is_live_until_it_expires_or_is_revoked() -> None:
    key, key_id = new_key(KeyKind.INGEST)
    lasting = record(key, key_id)
    ending = lasting.model_copy(update={"expires_at": NOW + timedelta(hours=1)})
    assert lasting.state(NOW + timedelta(days=9_000)) is KeyState.LIVE
    assert ending.state(NOW + timedelta(minutes=59)) is KeyState.LIVE
    assert ending.state(NOW + timedelta(hours=1)) is KeyState.EXPIRED
    assert ending.model_copy(update={"revoked_at": NOW}).state(NOW) is KeyState.REVOKED


def test_records_come_back_with_what_ended_them() -> None:
    (one, one_id), (two, two_id) = new_key(KeyKind.INGEST), new_key(KeyKind.INGEST)
    end = NOW + timedelta(hours=2)
    found = records_in(
        stored(
            as_fields(record(one, one_id)),
            as_fields(record(two, two_id)),
            revocation(one_id, NOW),
            expiry(two_id, end),
            {"version": "7"},
        )
    )
    assert {key_id: (each.revoked_at, each.expires_at) for key_id, each in found.items()} == {
        one_id: (NOW, None),
        two_id: (None, end),
    }


@pytest.mark.parametrize("damaged", [b"", b"{", b"{}", b'{"id": 1}', b"\xff"])
def test_a_record_that_cannot_be_read_is_left_out(damaged: bytes) -> None:
    key, key_id = new_key(KeyKind.INGEST)
    good = stored(as_fields(record(key, key_id)))
    assert list(records_in({**good, b"A" * 10: damaged, b"\xff" * 10: damaged})) == [key_id]


def test_a_revocation_that_cannot_be_read_leaves_the_key_out() -> None:
    key, key_id = new_key(KeyKind.INGEST)
    fields = stored(as_fields(record(key, key_id)), {f"{key_id}:revoked": "yes"})
    assert records_in(fields) == {}


@pytest.mark.parametrize(
    ("given_origin", "kept"),
    [
        ("https://App.Example.com/", "https://app.example.com"),
        ("https://app.example.com:443", "https://app.example.com"),
        ("http://localhost:8000", "http://localhost:8000"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(given_origin: str, kept: str) -> None:
    key, key_id = new_key(KeyKind.FEEDBACK)
    assert record(key, key_id, kind=KeyKind.FEEDBACK, origins=(given_origin,)).origins == (kept,)


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "app.example.com", "https://", "https://a.example/path", "https://a:b", "https://u@a.example"],
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    key, key_id = new_key(KeyKind.FEEDBACK)
    with pytest.raises(ValidationError):
        record(key, key_id, kind=KeyKind.FEEDBACK, origins=(origin,))
