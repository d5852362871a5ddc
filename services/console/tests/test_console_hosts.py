"""Host names: those of the settings, and how a Host header names them."""

import pytest

from assay_console.guard import host_name
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
