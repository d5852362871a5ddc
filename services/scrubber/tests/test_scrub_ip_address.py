"""IP addresses: what is found, what the text becomes, what is left alone."""

from collections.abc import Callable

import pytest

FOUND = [
    # text, found, output
    ("from 203.0.113.7 today", ["203.0.113.7"], "from [REDACTED] today"),
    ("host 192.168.1.20:8080/x", ["192.168.1.20"], "host [REDACTED]:8080/x"),
    ("10.20.30.40/24", ["10.20.30.40"], "[REDACTED]/24"),
    ("ip=198.51.100.23, ok", ["198.51.100.23"], "ip=[REDACTED], ok"),
    ("dns 8.8.8.8.", ["8.8.8.8"], "dns [REDACTED]."),
    ("at 2001:db8:85a3:0:0:8a2e:370:7334!", ["2001:db8:85a3:0:0:8a2e:370:7334"], "at [REDACTED]!"),
    ("2001:db8::1", ["2001:db8::1"], "[REDACTED]"),
    ("http://[2001:db8::8a2e:370:7334]:80/", ["2001:db8::8a2e:370:7334"], "http://[[REDACTED]]:80/"),
    ("::ffff:203.0.113.7", ["::ffff:203.0.113.7"], "[REDACTED]"),
    ("fe80::1ff:fe23:4567:890a%eth0 up", ["fe80::1ff:fe23:4567:890a%eth0"], "[REDACTED] up"),
    ("10.1.2.33-10.1.2.44", ["10.1.2.33", "10.1.2.44"], "[REDACTED]-[REDACTED]"),
    ('{"ip":"203.0.113.7"}', ["203.0.113.7"], '{"ip":"[REDACTED]"}'),
    ("２０３．０．１１３．７", ["２０３．０．１１３．７"], "[REDACTED]"),
    ("<td>203.0.113.7</td>", ["203.0.113.7"], "<td>[REDACTED]</td>"),
    ("<br/>203.0.113.7", ["203.0.113.7"], "<br/>[REDACTED]"),
    ("203.0.113[.]7", ["203.0.113[.]7"], "[REDACTED]"),
    ("203[.]0[.]113[.]7", ["203[.]0[.]113[.]7"], "[REDACTED]"),
    ("1.2.3[.]4", ["1.2.3[.]4"], "[REDACTED]"),
    ("203[dot]0[dot]113[dot]7", ["203[dot]0[dot]113[dot]7"], "[REDACTED]"),
    # words that end like an announcement of a version
    ("server 10.20.30.40", ["10.20.30.40"], "server [REDACTED]"),
    ("config: 10.20.30.40", ["10.20.30.40"], "config: [REDACTED]"),
    ("avoid 10.20.30.40", ["10.20.30.40"], "avoid [REDACTED]"),
    ("recv 10.20.30.40", ["10.20.30.40"], "recv [REDACTED]"),
]
KEPT = [
    "lib>1.2.30.4",
    "a<2.3.40.5",
    "127.0.0.1",
    "0.0.0.1",
    "255.255.255.0",
    "224.0.0.251",
    "version 10.2.30.4",
    "ver 10.2.30.4",
    "app_ver=10.2.30.4",
    "appVersion: 10.2.30.4",
    "v10.2.30.4",
    "tool-11.8.1.5",
    "pip install tool==11.8.1.5",
    "1.8.1.5",
    "1.3.6.1.4.1.311",
    "256.1.1.1",
    "1.2.3",
    "10.0.19041.1110",
    "::1",
    "::",
    "std::vector<int>::size",
    "a[1::3]",
    "xs[1000::3]",
    "12:34:56",
    "2024-01-01T10:22:33",
    "section 8.2.44.1",
    "abc::def",
    "key: value: other",
    "2.5.29.17 and 2.5.4.10",
    "oid 1.3.6.1",
    'AssemblyVersion("12.3.14.15")',
    "build number 10.0.19.41",
]


@pytest.mark.parametrize(("text", "found", "output"), FOUND)
def test_ip_address_is_removed(check: Callable[..., None], text: str, found: list[str], output: str) -> None:
    check("ip_address", text, found, output)


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_ip_address_stays(check: Callable[..., None], text: str) -> None:
    check("ip_address", text, [], text)
