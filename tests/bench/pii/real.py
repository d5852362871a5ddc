# ruff: noqa: SIM905  # lists of words read better as text
"""Clean texts of real kinds: sources and documentation on this machine, and generated logs, ids, hashes, versions.

Sources and documentation do hold addresses of their authors and examples of hosts. `genuine` says, by means of its own,
which findings there are just that; all others are false. Generated kinds hold nothing personal at all.
"""

import base64
import hashlib
import ipaddress
import json
import pydoc_data.topics
import random
import re
import string
import sysconfig
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

MEGABYTE = 1_000_000
CHUNK = 16_000
_WORDS = (
    "cache worker queue index shard batch retry timeout request response session bucket replica leader follower commit "
    "offset partition schema column row table view cursor page token limit policy metric gauge counter trace span"
).split()


def _chunks(text: str) -> Iterator[str]:
    lines: list[str] = []
    size = 0
    for line in text.splitlines(keepends=True):
        lines.append(line)
        size += len(line)
        if size > CHUNK:
            yield "".join(lines)
            lines, size = [], 0
    if lines:
        yield "".join(lines)


def _files(root: Path, suffixes: tuple[str, ...], most: int, skip: str) -> Iterator[str]:
    total = 0
    paths = sorted(
        path for path in root.rglob("*") if path.suffix in suffixes and not re.search(skip, str(path.relative_to(root)))
    )
    # In an order of its own, so that no package fills the sample alone.
    for path in sorted(paths, key=lambda path: hashlib.sha256(str(path.relative_to(root)).encode()).digest()):
        try:
            text = path.read_text()
        except (UnicodeDecodeError, OSError):
            continue
        total += len(text)
        yield from _chunks(text)
        if total > most:
            return


def _log(rng: random.Random, at: datetime) -> str:
    a, b = rng.choice(_WORDS), rng.choice(_WORDS)
    ident = uuid.UUID(int=rng.getrandbits(128), version=4)
    n = rng.randrange
    json_line = {"ts": at.timestamp(), "level": "debug", "id": n(10**9, 10**10), a: n(10**8), "trace": ident.hex}
    return rng.choice(
        [
            f"{at.isoformat()} INFO {a}.{b} [{n(32768)}] {a} {n(10**6)} of {b} {ident} took {rng.random() * 900:.3f} ms",
            f'{at:%d/%b/%Y:%H:%M:%S} +0000 "GET /{a}/{n(10**9)}?after={n(10**12)} HTTP/1.1" 200 {n(10**6)}',
            json.dumps(json_line),
            f"{at.timestamp() * 1000:.0f} {a}-{n(100)} offset={n(10**9)} lag={n(10**4)} {b}=v{n(9)}.{n(40)}.{n(20)}",
            f"E{at:%m%d %H:%M:%S}.{n(10**6):06} {n(10**5):7} {a}.go:{n(999)}] {b} failed: code {n(10**3)}",
        ]
    )


def _uuid(rng: random.Random, _: datetime) -> str:
    return str(uuid.UUID(bytes=rng.randbytes(16), version=rng.choice([1, 4, 5])))


def _hash(rng: random.Random, _: datetime) -> str:
    digest = hashlib.new(rng.choice(["md5", "sha1", "sha256"]), rng.randbytes(32)).hexdigest()
    return f"{digest}  {rng.choice(_WORDS)}-{rng.randrange(99)}.tar.gz"


def _timestamp(rng: random.Random, at: datetime) -> str:
    seconds = at.timestamp()
    forms = [at.isoformat(), f"{seconds:.0f}", f"{seconds * 1000:.0f}", f"{at:%Y%m%d%H%M%S}", f"{seconds:.6f}"]
    return rng.choice([*forms, f"{at:%a, %d %b %Y %H:%M:%S} GMT"])


def _version(rng: random.Random, _: datetime) -> str:
    n = rng.randrange
    head = rng.choice(_WORDS) + rng.choice(["==", "-", " ", "@", "/"]) + rng.choice(["", "v"])
    tail = rng.choice(["", f"-rc.{n(9)}", f"+{n(1 << 32):08x}", f".dev{n(10**4)}"])
    return f"{head}{n(20)}.{n(40)}.{n(99)}{tail}"


def _number(rng: random.Random, _: datetime) -> str:
    n = rng.randrange
    return rng.choice(
        [
            f"{rng.uniform(-1e4, 1e4):.8f}", f"order {n(10**9, 10**10)}", f"[{n(999)}, {n(9999)}, {n(99999)}]", f"{n(10**12):,}",
            f"$ {n(10**6)}.{n(100):02}", f"sku {n(10**4):04}-{n(10**4):04}", f"row {n(10**8)}",
        ]
    )  # fmt: skip


_HEX = string.hexdigits[:16]
_BASE62 = string.ascii_letters + string.digits


def _mixed(rng: random.Random, size: int, alphabet: str = _BASE62) -> str:
    return "".join(rng.choices(alphabet, k=size))


def _vendor_id(rng: random.Random, _: datetime) -> str:
    """Ids of objects: they open nothing."""
    upper, lower = string.ascii_uppercase + string.digits, string.ascii_lowercase + string.digits
    n = rng.randrange
    return rng.choice(
        [
            f'"id": "{rng.choice(["cus", "ch", "pi", "in", "evt", "price", "sub"])}_{_mixed(rng, 24)}"',
            f"request req_{_mixed(rng, 24)} msg_{_mixed(rng, 24)} run_{_mixed(rng, 24)}",
            f"chatcmpl-{_mixed(rng, 29)} system_fingerprint fp_{_mixed(rng, 10, _HEX)}",
            f"i-{_mixed(rng, 17, _HEX)} vpc-{_mixed(rng, 8, lower)} ami-{_mixed(rng, 17, _HEX)}",
            f"channel C{_mixed(rng, 10, upper)} user U{_mixed(rng, 10, upper)} team T{_mixed(rng, 8, upper)}",
            f"issue {_mixed(rng, 3, string.ascii_uppercase)}-{n(99999)} node MDQ6{_mixed(rng, 18)}",
            f"doc 1{_mixed(rng, 43, _BASE62 + '-_')} video {_mixed(rng, 11, _BASE62 + '-_')}",
            f"object {_mixed(rng, 24, _HEX)} ulid 01{_mixed(rng, 24, '0123456789ABCDEFGHJKMNPQRSTVWXYZ')}",
        ]
    )


def _log_probability(rng: random.Random, _: datetime) -> str:
    tokens = [
        {"token": rng.choice(_WORDS), "logprob": -rng.random() * 12, "bytes": [rng.randrange(256)]} for _ in range(3)
    ]
    return rng.choice(
        [
            json.dumps({"tokens": tokens}),
            json.dumps([[rng.randrange(100_000), -rng.random() * 9] for _ in range(4)]),
            json.dumps({"embedding": [round(rng.gauss(0, 0.1), 9) for _ in range(8)]}),
            f"max_tokens=4096 prompt_tokens={rng.randrange(9999)} completion_tokens={rng.randrange(9999)}",
        ]
    )


def _trace(rng: random.Random, _: datetime) -> str:
    a, b, n = rng.choice(_WORDS), rng.choice(_WORDS), rng.randrange
    return rng.choice(
        [
            f'  File "/srv/app/{a}/{b}.py", line {n(2000)}, in {a}_{b}\n    return {b}.{a}(token, key={a})',
            f"\tat com.example.{a}.{b.title()}Service${a}$1.invoke({b.title()}Service.java:{n(900)})",
            f"KeyError: 'password'\n#{n(30)} 0x{n(1 << 48):016x} in {a}_{b} () from /lib/x86_64/{a}.so.{n(9)}",
            f"goroutine {n(9999)} [running]:\nmain.({a.title()}).{b.title()}(0xc{n(1 << 36):09x}, 0x{n(99):x})",
            f"    at async {a}.{b} (webpack-internal:///./src/{a}/{b}.ts:{n(900)}:{n(90)})",
            f"ValueError: invalid token {rng.choice(['EOF', 'NAME', 'INDENT'])} at line {n(900)}, column {n(90)}",
        ]
    )


def _parcel(rng: random.Random, at: datetime) -> str:
    n = rng.randrange
    return rng.choice(
        [
            f"tracking 1Z{_mixed(rng, 6, string.ascii_uppercase + string.digits)}{n(10**10):010}",
            f"parcel {n(10**12):012} left on {at:%d.%m.%Y}, order no. {n(10**3):03}-{n(10**7):07}-{n(10**7):07}",
            f"{_mixed(rng, 2, string.ascii_uppercase)}{n(10**9):09}{_mixed(rng, 2, string.ascii_uppercase)} is in transit",
            f"invoice {at:%Y}-{n(10**6):06}, customer {n(10**6)}, total {n(10**5)}.{n(100):02} EUR",
            f"ISBN 978-{n(10)}-{n(10**4):04}-{n(10**4):04}-{n(10)}, doi:10.{n(10**4):04}/{rng.choice(_WORDS)}.{n(10**7)}",
            f"EAN {n(10**13):013} batch {n(10**8):08} booking {_mixed(rng, 6, string.ascii_uppercase)}",
        ]
    )


def _paging(rng: random.Random, _: datetime) -> str:
    token = base64.urlsafe_b64encode(rng.randbytes(27)).decode()
    name = rng.choice(["next_page_token", "nextPageToken", "continuation_token", "page_token", "cursor", "sync_token"])
    return rng.choice(
        [
            f'{{"{name}": "{token}", "count": {rng.randrange(500)}}}',
            f"GET /{rng.choice(_WORDS)}?{name}={token}&limit=50",
            f"Idempotency-Key: {uuid.UUID(int=rng.getrandbits(128), version=4)}",
            f'ETag: W/"{rng.getrandbits(128):x}" X-Request-Id: {rng.getrandbits(96):x}',
        ]
    )


def _placeholder(rng: random.Random, _: datetime) -> str:
    name = rng.choice(["API_KEY", "DB_PASSWORD", "ACCESS_TOKEN", "CLIENT_SECRET", "AUTH_TOKEN"])
    return rng.choice(
        [
            f"{name}=${{{name}}}",
            f'{name.lower()} = os.environ["{name}"]',
            f"{name}=<your-{name.lower().replace('_', '-')}>",
            f"export {name}=changeme  # set {name} before you start",
            f"{name.lower()}: {{{{ .Values.{name.lower()} }}}}",
            f'"{name.lower()}": "********"',
            f"{name}=your_{name.lower()}_here",
            f"{name.lower()} = getpass.getpass('{name.lower()}: ')",
        ]
    )


def _masked(rng: random.Random, _: datetime) -> str:
    last = f"{rng.randrange(10**4):04}"
    return rng.choice(
        [
            f"card **** **** **** {last} exp **/**", f"ending in {last}", f"phone +** *** *** {last[2:]}", f"key sk-...{last}",
            f"IBAN DE** **** **** **** {last}", f"ssn ***-**-{last}", "password: ********", f"XXXX-XXXX-XXXX-{last}",
            "user j***@e***.com", f"token=[REDACTED] card=[FILTERED] {last}",
        ]
    )  # fmt: skip


_GENERATED = {
    "logs": _log,
    "uuids": _uuid,
    "hashes": _hash,
    "timestamps": _timestamp,
    "versions": _version,
    "numbers": _number,
    "ids of vendors' objects": _vendor_id,
    "log probabilities and vectors": _log_probability,
    "stack traces": _trace,
    "parcels, orders and books": _parcel,
    "paging and idempotency": _paging,
    "placeholders": _placeholder,
    "masked values": _masked,
}


def _lines(rng: random.Random, line: Callable[[random.Random, datetime], str]) -> str:
    at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(30_000_000))
    return "".join(line(rng, at + timedelta(milliseconds=700 * number)) + "\n" for number in range(120))


def texts(rng: random.Random, megabytes: float) -> Iterator[tuple[str, str]]:
    """(kind, text) of about `megabytes` in sum: four fifths real, one fifth generated."""
    paths = sysconfig.get_paths()
    for topic in sorted(pydoc_data.topics.topics):
        yield "standard library: documentation", pydoc_data.topics.topics[topic]
    most = int(megabytes * MEGABYTE)
    for text in _files(Path(paths["stdlib"]), (".py",), most * 4 // 10, r"site-packages|/?test/|/tests/|pydoc_data"):
        yield "standard library: sources", text
    for text in _files(Path(paths["purelib"]), (".py", ".pyi"), most * 3 // 10, r"/tests?/"):
        yield "packages: sources", text
    for text in _files(Path(paths["purelib"]), (".md", ".rst", ".txt", ".json"), most // 10, r"/tests?/"):
        yield "packages: documentation", text
    for kind, line in _GENERATED.items():
        size = 0
        while size < most // 5 // len(_GENERATED):
            text = _lines(rng, line)
            size += len(text)
            yield kind, text


_ADDRESS = re.compile(r"[\w.+\-']+@(?:[\w\-]+\.)+[^\W\d]{2,}", re.UNICODE)
_VERSION_BEFORE = re.compile(r"(?:version|release|v|\w==|>=|<=)[\s:=\"']*$", re.IGNORECASE)


def genuine(family: str, text: str, start: int, end: int) -> bool:
    """True when what was found in a source or a document is what the family looks for."""
    value = text[start:end]
    if family == "email":
        return _ADDRESS.fullmatch(value) is not None
    if family == "ip_address":
        try:
            ipaddress.ip_interface(value.strip("[]").partition("%")[0])
        except ValueError:
            return False
        return not _VERSION_BEFORE.search(text[max(0, start - 16) : start])
    if family == "mac_address":
        return re.fullmatch(r"(?:[0-9A-Fa-f]{2}([:\-]))(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}", value) is not None
    if family == "connection_url":
        return re.search(r"://[^\s/@]*@", value) is not None
    if family == "private_key":
        return "PRIVATE KEY" in value
    return False
