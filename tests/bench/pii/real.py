# ruff: noqa: SIM905  # lists of words read better as text
"""Clean texts of real kinds: sources and documentation on this machine, and generated logs, ids, hashes, versions.

Sources and documentation do hold addresses of their authors and examples of hosts. `genuine` says, by means of its own,
which findings there are just that; all others are false. Generated kinds hold nothing personal at all.
"""

import hashlib
import ipaddress
import json
import pydoc_data.topics
import random
import re
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


_GENERATED = {
    "logs": _log,
    "uuids": _uuid,
    "hashes": _hash,
    "timestamps": _timestamp,
    "versions": _version,
    "numbers": _number,
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
