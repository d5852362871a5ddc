"""What a request asks for: pure functions from URL, headers and form."""

import base64

import pytest

from assay_store import multipart
from assay_store.errors import StoreError
from assay_store.request import Credentials, External, credentials, query_request

BASIC = "Basic " + base64.b64encode(b"sre:pass:word").decode()


@pytest.mark.parametrize(
    ("url", "headers", "expected"),
    [
        ({}, {"authorization": BASIC}, Credentials("sre", "pass:word")),
        ({}, {"x-clickhouse-user": "a", "x-clickhouse-key": "b"}, Credentials("a", "b")),
        ({"user": "a", "password": "b"}, {}, Credentials("a", "b")),
        ({"user": "a"}, {"authorization": BASIC}, Credentials("sre", "pass:word")),
        ({}, {}, Credentials("default", "")),
    ],
)
def test_credentials_come_from_headers_or_the_url(
    url: dict[str, str], headers: dict[str, str], expected: Credentials
) -> None:
    assert credentials(url, headers) == expected


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": BASIC, "x-clickhouse-user": "a"},
        {"authorization": "Bearer x"},
        {"authorization": "Basic !!!"},
    ],
)
def test_ambiguous_or_broken_credentials_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(StoreError) as caught:
        credentials({}, headers)
    assert caught.value.code == 516


def test_settings_are_what_is_left_of_the_url() -> None:
    want = query_request(
        {"query": "select 1", "max_threads": "2", "param_a": "x", "wait_end_of_query": "1", "database": "d"}, {}
    )
    assert want.settings == {"max_threads": "2"}
    assert (want.params, want.database, want.wait_end_of_query) == ({"a": "x"}, "d", True)


@pytest.mark.parametrize("name", ["max threads", "a=b", "x`y", "1a", "readonly = 0, x"])
def test_a_setting_with_a_strange_name_never_reaches_the_engine(name: str) -> None:
    with pytest.raises(StoreError):
        query_request({name: "1"}, {})


def test_external_tables_take_names_and_types_from_the_url() -> None:
    want = query_request({"t_types": "UInt8,Map(String, Int8)", "t_format": "CSV", "max_threads": "1"}, {}, {"t": b"1"})
    assert want.externals == [External("t", "_1 UInt8, _2 Map(String, Int8)", "CSV", b"1")]
    assert want.settings == {"max_threads": "1"}


def test_an_external_table_without_columns_is_an_error() -> None:
    with pytest.raises(StoreError):
        query_request({}, {}, {"t": b"1"})


@pytest.mark.parametrize("name", ["compress", "decompress", "role"])
def test_what_is_not_implemented_is_refused_and_not_ignored(name: str) -> None:
    with pytest.raises(StoreError) as caught:
        query_request({name: "1"}, {})
    assert caught.value.code == 48


def test_a_form_holds_fields_and_files_byte_for_byte() -> None:
    body = (
        b'--xx\r\nContent-Disposition: form-data; name="query"\r\n\r\nselect 1\r\n'
        b'--xx\r\nContent-Disposition: form-data; name="t"; filename="t"\r\nContent-Type: application/x\r\n\r\n\x00\r\n\xff\r\n'
        b"--xx--\r\n"
    )
    form = multipart.parse("multipart/form-data; boundary=xx", body)
    assert form.fields == {"query": "select 1"}
    assert form.files == {"t": b"\x00\r\n\xff"}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [("multipart/form-data", b""), ("multipart/form-data; boundary=xx", b'--xx\r\nname="a"\r\n\r\ncut off')],
)
def test_a_broken_form_is_an_error(content_type: str, body: bytes) -> None:
    with pytest.raises(StoreError):
        multipart.parse(content_type, body)
