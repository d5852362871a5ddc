"""Hardware addresses: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("mac 00:1A:2B:3C:4D:5E up", ["00:1A:2B:3C:4D:5E"], "mac [REDACTED] up"),
    ("52-54-00-9d-0e-67", ["52-54-00-9d-0e-67"], "[REDACTED]"),
    ("001a.2b3c.4d5e,", ["001a.2b3c.4d5e"], "[REDACTED],"),
    ("00:1a:2b:ff:fe:3c:4d:5e", ["00:1a:2b:ff:fe:3c:4d:5e"], "[REDACTED]"),
    ("MAC address 1234.5678.9012", ["1234.5678.9012"], "MAC address [REDACTED]"),
    ("hwaddr=01-02-03-04-05-06", ["01-02-03-04-05-06"], "hwaddr=[REDACTED]"),
]
KEPT = [
    "2034  ; [*03BF.0020.0004]",
    "ff:ff:ff:ff:ff:ff",
    "00:00:00:00:00:00",
    "12:34:56",
    "16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48",
    "01-02-03-04-05-06",
    "1234.5678.9012",
    "001a2b3c4d5e",
    "2024-01-02-03-04-05-06",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_mac_address_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("mac_address", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_mac_address_stays(check: Callable[..., None], text: str) -> None:
    check("mac_address", text, [], text)
