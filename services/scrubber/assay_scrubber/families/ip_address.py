"""Match IP addresses that may identify a person: not loopback, masks, multicast or unspecified."""

import re
import socket

from assay_scrubber.family import Family, LiteralRule, Literals, Seen, ShapeRule, Shapes, View
from assay_scrubber.taxonomy import Category

# The search finds the first dot, a literal; the acceptance checks the digits before it.
_V4 = re.compile(rb"\.(?<=9\.)9{1,3}\.9{1,3}\.9{1,3}(?![A9\x80]|\.9)")
_OCTETS = re.compile(
    rb"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}"
)
_DIGITS = b"0123456789"
_NO_LEFT = re.compile(rb"[A-Za-z0-9\x80._]")
# A short word counts only whole: `server 10.20.30.40` and `recv: 10.20.30.40` are addresses, `ver 10.20.30.40` is not.
_VERSION = re.compile(
    rb"(?:(?<![a-z])(?:ver|vers|v|rev|sec|fig|oid|table|item|step|lib|pkg)|"
    rb"version|versions|release|revision|build|firmware|driver|section|chapter|clause|figure|"
    rb"paragraph|appendix|annex|since|upgrade(?:d)? to|python|chrome|safari|firefox|edg|opr|mozilla|webkit|package|"
    rb"objectid|object identifier|patch|edition|agent|opera|runtime|sdk|jdk|kernel)"
    rb"(?:\x22|'|s)?(?: number| no\.?| id)?[ \t]?[:=./#(]{0,2}[ \t]?[\x22'(]?(?:v|to |from |is |no\.? ?)?$"
)
_ANNOUNCED = re.compile(
    rb"(?:ip|ipv4|addr|address|host|server|client|dns|from|ping|peer|remote|gateway|inet|resolver|nameserver)[^a-z0-9]{0,4}$"
)
# Names of packages and comparisons: `lib-1.2.3.4`, `tool==1.2.3.4`, `pkg@1.2.3.4`.
_PACKAGE = re.compile(rb"(?:[a-z]-|==|~=|>=|<=|!=|>|<|\^|~|[a-z]@|[a-z]_v?|#)$")

#: Object identifiers (X.500, X.509, SNMP), in which four numbers look like an address.
_OBJECT = re.compile(rb"2\.5\.(?:4|29)\.|1\.3\.(?:6\.1$|14\.|132\.)|1\.2\.840\.|0\.9\.")
_TAG = re.compile(rb"<(?:/?[a-z][^<>]{0,20}/?)>$")  # a `>` that ends a tag is not a comparison


def _v4(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    dot = match.start()
    left = view.raw[max(0, dot - 4) : dot]
    start = dot - (len(left) - len(left.rstrip(_DIGITS)))
    end = match.end()
    if _NO_LEFT.match(view.raw[start - 1 : start]) and start:
        return None
    address = view.raw[start:end]
    if not _OCTETS.fullmatch(address):
        return None
    first, second, third, fourth = (int(octet) for octet in address.split(b"."))
    if first in (0, 127, 255) or first >= 224:
        return None
    before = view.before(start, 24)
    if max(first, second, third, fourth) < 10 and not _ANNOUNCED.search(before):
        return None  # 1.8.1.5 is a version, or a section
    if _OBJECT.match(address) and not _ANNOUNCED.search(before):
        return None
    if before and (_VERSION.search(before) or _PACKAGE.search(before, len(before) - 4)) and not _TAG.search(before):
        return None
    return start, end


_V6_ALPHABET = b"0123456789abcdefABCDEF:."
_V6 = re.compile(
    rb":(?=[0-9A-Fa-f]{0,4}:)(?<![0-9A-Za-z]{5}:)([0-9A-Fa-f:.]{1,45}+)(?![0-9A-Fa-f:])(%[0-9A-Za-z]{1,15})?"
)
_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_TELLING = re.compile(rb"(?=[0-9a-f]*[0-9])[0-9a-f]{3,4}(?![0-9a-f])")
_FEWEST_GROUPS = 4


def _v6(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    colon, after = match.start(), match.group(1)
    if after.startswith(b"::"):
        return None  # three colons in a row
    left = view.raw[max(0, colon - 5) : colon]
    group = left[len(left.rstrip(_V6_ALPHABET)) :].replace(b".", b":").rpartition(b":")[2]
    start, end = colon - len(group), match.end(1)
    if start and view.raw[start - 1] in _WORD:
        return None
    written = view.raw[start:end].rstrip(b".")
    if written.endswith(b":") and not written.endswith(b"::"):
        written = written[:-1]
    end = start + len(written)
    try:
        packed = socket.inet_pton(socket.AF_INET6, written.decode("ascii"))
    except (OSError, ValueError):
        return None
    if packed[:15] == bytes(15) or packed[0] == 0xFF:
        return None  # unspecified, loopback, multicast
    groups = [g for g in written.split(b":") if g]
    low = view.low[start:end]
    if len(groups) < _FEWEST_GROUPS and b"." not in written and not _TELLING.search(low):
        return None  # a[1::3], abc::def
    if view.raw[start - 1 : start] == b"[" and start > 1 and view.raw[start - 2] in _WORD + b")]":
        return None  # a slice
    return start, match.end() if match.group(2) and end == match.end(1) else end


# `203.0.113[.]7`, `203[dot]0[dot]113[dot]7`, `203\\.0\\.113\\.7`: defanged addresses, as reports write them.
_DEFANGED = re.compile(
    rb"(?<![0-9a-z\x80.])[0-9]{1,3}(?=\.|[\[({\\])(?:(?:\.|[\[({](?:\.|dot)[\])}]|\\\.)[0-9]{1,3}){3}(?![0-9a-z\x80]|[.\[({]{1,2}[0-9])"
)
_NOT_ADDRESS = re.compile(rb"[^0-9]+")


def _defanged(view: View, match: re.Match[bytes]) -> tuple[int, int] | None:
    address = _NOT_ADDRESS.sub(b".", match.group())
    first = int(address.partition(b".")[0])
    if not _OCTETS.fullmatch(address) or first in (0, 127, 255) or first >= 224:
        return None
    return None if _VERSION.search(view.before(match.start(), 24)) else match.span()


FAMILY = Family(
    name="ip_address",
    category=Category.ONLINE_IDENTIFIER,
    rank=75,
    gate=Shapes(rb"9\.9{1,3}\.9{1,3}\.9"),
    rules=(ShapeRule(_V4, _v4),),
    description="IPv4 and IPv6 addresses, also compressed, mapped and with a zone; ports and prefix lengths are kept.",
    examples=("203.0.113.7", "192.168.1.20:8080", "2001:db8::8a2e:370:7334", "::ffff:203.0.113.7", "fe80::1%eth0"),
    counterexamples=(
        "127.0.0.1",
        "255.255.255.0",
        "version 1.2.3.4",
        "tool-1.8.1.5",
        "std::vector",
        "a[1::3]",
        "12:34:56",
    ),
    more=(
        (
            Literals((b"[.]", b"(.)", b"{.}", b"[dot]", b"(dot)", b"\\."), mark=b""),
            (LiteralRule(_DEFANGED, _defanged, lower=True, fewest=4),),
        ),
        (Seen(rb"::|(?::[A9]{1,4}){5}:"), (ShapeRule(_V6, _v6),)),
    ),
)
