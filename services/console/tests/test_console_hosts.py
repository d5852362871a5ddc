"""Host names: those of the settings, and how a Host header names them."""

import pytest
from starlette.datastructures import Headers

from assay_console.guard import from_own_page, host_name
from assay_console.login import hosts_of
from assay_schema.settings import ConsoleSettings


@pytest.mark.parametrize(
    ("public_url", "host"),
    [
        (None, "127.0.0.1:9112"),
        (None, "[::1]:9112"),
        (None, "LOCALHOST"),
        ("https://Assay.example.com", "assay.example.com"),
        ("https://assay.example.com:8443", "assay.example.com.:8443"),
        ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443"),
    ],
)
def test_browsers_may_use_the_names_of_the_settings(public_url: str | None, host: str) -> None:
    assert host_name(host) in hosts_of(ConsoleSettings(public_url=public_url))


@pytest.mark.parametrize("host", ["", "example.com", "127.0.0.1.example.com", "127.0.0.1@example.com", "[::1]x", "::1"])
def test_every_other_name_is_unknown(host: str) -> None:
    assert host_name(host) not in hosts_of(ConsoleSettings(public_url="https://assay.example.com"))


HOST = "127.0.0.1:9112"
OWN = f"http://{HOST}"


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "same-origin", "referer": "https://evil.example/"}, True),
        ({"sec-fetch-site": "cross-site", "origin": OWN, "referer": f"{OWN}/sql"}, False),
        ({"sec-fetch-site": "same-site", "referer": f"{OWN}/sql"}, False),
        ({"sec-fetch-site": "none", "referer": f"{OWN}/sql"}, False),
        ({"sec-fetch-site": "", "referer": f"{OWN}/sql"}, False),
        ({"origin": OWN}, True),
        ({"referer": f"{OWN}/sql?q=SELECT+1"}, True),
        ({"origin": "https://evil.example", "referer": f"{OWN}/sql"}, False),
        ({"origin": "null", "referer": f"{OWN}/sql"}, False),
        ({}, False),
        ({"referer": ""}, False),
        ({"referer": "https://evil.example/?http://127.0.0.1:9112/"}, False),
        ({"referer": "http://127.0.0.1:9112@evil.example/"}, False),
        ({"referer": "http://127.0.0.1:9112.evil.example/"}, False),
        ({"referer": "http://127.0.0.1/"}, False),
        ({"referer": "http://127.0.0.1:9113/"}, False),
        ({"referer": "http://[/"}, False),
    ],
)
def test_only_a_page_of_this_console_counts_as_its_own(headers: dict[str, str], own: bool) -> None:
    assert from_own_page(Headers({"host": HOST, **headers})) is own


def test_without_a_host_nothing_is_of_this_console() -> None:
    assert not from_own_page(Headers({"referer": "/sql"}))
    assert not from_own_page(Headers({"host": "", "referer": "http:///sql"}))
