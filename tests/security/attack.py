"""Requests that a store should refuse or survive: seeded, one after another, each a function of its random numbers."""

from __future__ import annotations

import base64
import gzip
import http.client
import random
import socket
import urllib.parse
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import cache

import lz4.frame
from backports import zstd

from tests.support.store import PASSWORD, ROLES

READERS = ("sre", "exporter", "evaluator", "operator", "console", "auditor")
LONGEST = 100_000
"""Beyond the longest statement of a reader."""

SECONDS = 20.0
"""How long an attacker waits for an answer, or for room to send."""

_NOISE = (
    b"/* ", b"/*", b"*/", b"-- ", b"\n", b";", b"'", b'"', b"`", b"\\", b"\x00", b"\xff\xfe", b"\xe2\x80\x98", b"\xe2\x80\x99", b"$a$",
    b"(", b")", b"[", b"{", b"{x:String}", b" FORMAT ", b" SETTINGS ", b" INTO OUTFILE ", b" UNION ALL ", b" WITH ", b" VALUES ", b"f(",
    b"CAST(", b"CASE WHEN ", b"x -> ", b"SELECT (", b" LIMIT ", b" APPLY(file) ", b"#!", b"1,",
)  # fmt: skip

_STATEMENTS = (
    "SELECT 1", "SELECT * FROM assay.t LIMIT 10", "SELECT count() FROM assay.t", "SELECT number FROM numbers(300000)",
    "SHOW TABLES FROM assay", "SELECT repeat('x', 100000) FROM numbers(300)",
    "SELECT sleepEachRow(0.05), number FROM numbers(20) SETTINGS max_block_size = 1",
    "SELECT number, throwIf(number = 200000) FROM numbers(1000000)", "SELECT * FROM numbers(50000) FORMAT JSON",
    "EXPLAIN SELECT 1", "DESCRIBE assay.t", "SET max_threads = 1", "SELECT * APPLY(file) FROM (SELECT '{file}' AS x)",
    "SELECT arrayMap(file, ['{file}'])", "SELECT file('{file}')", "SELECT * FROM file('{file}', LineAsString)",
    "SHOW TABLES LIMIT (SELECT length(file('{file}')))", "SELECT * FROM assay_base.secret",
    "SELECT (SELECT any(a) FROM assay_base.secret)", "SELECT * FROM merge('assay_base', '.*')",
    "SELECT * FROM url('http://127.0.0.1:1/')", "SELECT query FROM system.processes",
    "SELECT * APPLY(x -> (SELECT any(a) FROM assay_base.secret)) FROM t", "SET ROLE owner", "SET profile = 'owner'",
    "DROP DATABASE assay_base SYNC", "DROP TABLE assay.t", "TRUNCATE TABLE assay_base.secret",
    "INSERT INTO assay_base.secret VALUES ('planted')", "INSERT INTO assay_base.secret FORMAT TSV\nplanted\n",
    "SYSTEM STOP MERGES", "SELECT 'planted' INTO OUTFILE '{planted}'",
    "CREATE TABLE assay.planted (a String) ENGINE = Memory", "CREATE TEMPORARY TABLE x (a String)",
    "CREATE VIEW assay.planted AS SELECT * FROM assay_base.secret",
    "WITH 1 AS x INSERT INTO assay_base.secret FORMAT TSV\nplanted;\n",
    "INSERT INTO FUNCTION file('{planted}', TSV) SELECT 1", "SELECT currentRoles()",
    "SELECT * FROM executable('id', TSV, 'a String')",
    "INSERT INTO assay_base.secret SETTINGS log_comment=‘ SELECT ’ VALUES (file('{file}'))", "KILL QUERY WHERE 1",
    "USE assay_base", "BACKUP DATABASE assay_base TO File('{planted}')",
    "ALTER TABLE assay_base.secret DELETE WHERE 1", "EXPLAIN AST SELECT file('{file}')",
)  # fmt: skip

_FORMATS = (
    "TSV", "JSON", "Native", "Parquet", "NoSuchFormat", "TSV; SET ROLE owner",
    "JSONEachRow\n;DROP DATABASE assay_base SYNC", "TSV SETTINGS readonly = 0",
    "JSONEachRow/**/;CREATE VIEW assay.planted AS SELECT * FROM assay_base.secret", "Values",
    "TSV INTO OUTFILE '{planted}'",
)  # fmt: skip

_COLUMNS = (
    "a String", "a UInt8", "a String DEFAULT file('{file}')", "a String ALIAS (SELECT any(a) FROM assay_base.secret)",
    "a String) ENGINE = File(TSV, '{file}'", "a Array(Nullable(", "a Enum8('x' = 1, 'y')", "",
)  # fmt: skip

_SETTINGS = (
    ("readonly", "0"), ("profile", "owner"), ("dialect", "kusto"), ("max_memory_usage", "0"),
    ("max_threads", "999999999"), ("max_block_size", "1"), ("additional_result_filter", "file('{file}') != ''"),
    ("format_schema", "{file}"), ("log_comment", "assay-1"), ("max_execution_time", "-1"), ("wait_end_of_query", "1"),
    ("session_timeout", "9999999"), ("session_check", "1"), ("client_protocol_version", "54405"), ("compress", "1"),
    ("client_protocol_version", "99999999999999999999"), ("max_result_rows", "0"), ("allow_experimental_xxxx", "1"),
    ("", "1"), ("role", "owner"), ("enable_http_compression", "1"), ("max_parser_depth", "100000000"),
    ("send_logs_level", "trace"), ("query_id", "a\r\nX-Mine: 1"), ("a b", "c"), ("database", "assay_base"),
    ("database", "`; DROP DATABASE assay_base"), ("database", "system"), ("param_x", "' OR file('{file}')"),
)  # fmt: skip

_HEADERS = (
    ("Accept-Encoding", "gzip, lz4, zstd, deflate"), ("Accept-Encoding", "*;q=0"),
    ("X-ClickHouse-Format", "TSV; SET ROLE owner"), ("Expect", "100-continue"),
    ("X-ClickHouse-Database", "assay_base"), ("Content-Type", "multipart/form-data"),
    ("Content-Type", "multipart/form-data; boundary=x"), ("Range", "bytes=1-"), ("Connection", "Upgrade"),
    ("Upgrade", "websocket"), ("Content-Encoding", "br"), ("X-ClickHouse-User", "owner"),
    ("Authorization", "Basic !!!"), ("Authorization", "Bearer x"), ("X-Long", "x" * 60_000),
    ("Cookie", "a=b; " * 1000), ("Origin", "http://evil.example"), ("Host", ""),
)  # fmt: skip


_WIRE = (
    b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\n", b"Host: x\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
    b"Transfer-Encoding: chunked\r\n", b"ffffffffffffffff\r\n", b"0\r\n\r\n", b"\x00" * 100, b"PRI * HTTP/2.0\r\n\r\n", b"\r\n",
    b"GET /?" + b"a=1&" * 3000, b"X: " + b"y" * 50_000 + b"\r\n",
)  # fmt: skip

_LONG = (
    ("SELECT 1 IN (", "1,", "1)"), ("SELECT ", "a,", "a"), ("SELECT 1 IN (", "'a',", "'a')"), ("SELECT ", "f(),", "1"),
    ("SELECT ", "1+", "1"), ("SELECT ", "- ", "1"), ("SELECT ", "(", "1"), ("SELECT 1", " UNION ALL SELECT 1", ""), ("SELECT ", "[", "1"),
    ("SELECT ", "CASE WHEN ", "1"), ("SELECT ", "`a`,", "1"), ("SELECT 1", ";", ""), ("SELECT ", "CAST(", "1"), ("SELECT ", "(1),", "1"),
    ("SELECT ", "{a:UInt8},", "1"), ("SELECT ", "a.b.c,", "1"), ("SELECT ", "file,", "1"), ("WITH ", "1 AS a,", "1 AS b SELECT 1"),
    ("SELECT ", "`\\\\x`,", "1"), ("SELECT 1 SETTINGS ", "limit=1,", "limit=1"), ("SELECT 1 ", "/* ", ""), ("SELECT ", "$a$", ""),
)  # fmt: skip
"""How statements begin, what is repeated as often as there is room, and how they end: what parsers and lexers take long for."""

_ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "lz4": lz4.frame.compress,
    "zstd": zstd.compress,
}
_DECODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: zlib.decompressobj(31).decompress(data),
    "deflate": lambda data: zlib.decompressobj(15).decompress(data),
    "lz4": lambda data: lz4.frame.LZ4FrameDecompressor().decompress(data),
    "zstd": lambda data: zstd.ZstdDecompressor().decompress(data),
}


@cache
def _bomb(encoding: str) -> bytes:
    return _ENCODE[encoding](b"SELECT 1 " + b" " * (30 << 20))


@dataclass
class Target:
    """What is attacked, and what must not come out of it."""

    port: int
    file: str
    planted: str
    canaries: tuple[bytes, ...]


@dataclass
class Found:
    """What should not have happened, by kind, with what was sent; and how many requests were answered how."""

    faults: list[str] = field(default_factory=list)
    answers: dict[str, int] = field(default_factory=dict)

    def count(self, what: object) -> None:
        self.answers[str(what)] = self.answers.get(str(what), 0) + 1


class Attacker:
    """Sends one hostile request after another."""

    def __init__(self, target: Target, seed: int, longest: int = 0) -> None:
        """`longest` sends nothing but the statements of so many bytes that are worst to judge."""
        self._target, self._longest = target, longest
        self._random = random.Random(seed)
        self.found = Found()

    def attack(self) -> None:
        """Send one."""
        if self._longest:
            with suppress(OSError):
                self._long()
            return
        choose = self._random.choices(
            (self._ask, self._raw, self._leave, self._drip, self._pipeline), weights=(80, 6, 6, 4, 4)
        )[0]
        with suppress(OSError):  # the store may hang up at any time
            choose()

    # -- ways of asking ------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        method, url, headers, body = self._request()
        with closing(http.client.HTTPConnection("127.0.0.1", self._target.port, timeout=SECONDS)) as connection:
            try:
                connection.request(method, url, body, headers)
                answer = connection.getresponse()
                said = answer.read(2 << 20)
            except (http.client.HTTPException, ValueError, UnicodeError) as refusal:
                self.found.count(type(refusal).__name__)
                return
            self.found.count(answer.status)
            self._check(said, answer.headers.get("Content-Encoding", ""), f"{method} {url[:500]} {body[:500]!r}")

    def _long(self) -> None:
        begin, unit, end = self._random.choice(_LONG)
        body = begin + unit * ((self._longest - len(begin) - len(end)) // len(unit)) + end
        headers = {"Authorization": "Basic " + base64.b64encode(f"sre:{PASSWORD}".encode()).decode()}
        with closing(http.client.HTTPConnection("127.0.0.1", self._target.port, timeout=SECONDS)) as connection:
            connection.request("POST", "/", body.encode(), headers)
            answer = connection.getresponse()
            answer.read()
            self.found.count(answer.status)

    def _raw(self) -> None:
        pieces = [*_WIRE, self._random.randbytes(200)]
        with closing(self._socket()) as connection:
            connection.sendall(b"".join(self._random.choices(pieces, k=self._random.randint(1, 12))))
            connection.settimeout(0.3)
            with suppress(TimeoutError):
                self.found.count(connection.recv(4096)[:12])

    def _leave(self) -> None:
        with closing(self._socket()) as connection:
            data = self._wire()
            connection.sendall(data[: self._random.randint(1, len(data))])

    def _drip(self) -> None:
        with closing(self._socket()) as connection:
            data = self._wire()
            for at in range(min(len(data), 10)):
                connection.sendall(data[at : at + 1])
                connection.settimeout(0.05)
                with suppress(TimeoutError):
                    connection.recv(1)

    def _pipeline(self) -> None:
        with closing(self._socket()) as connection:
            connection.sendall(b"".join(self._wire() for _ in range(5)))
            connection.settimeout(1)
            with suppress(TimeoutError):
                while said := connection.recv(1 << 20):
                    self._check(said, "", "pipelined")

    def _socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._target.port), timeout=SECONDS)

    def _wire(self) -> bytes:
        method, url, headers, body = self._request()
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if name != "X-Long")
        head = f"{method} {url} HTTP/1.1\r\nHost: x\r\n{head}Content-Length: {len(body)}\r\n\r\n"
        return head.encode("utf-8", "surrogateescape") + body

    # -- what is asked -------------------------------------------------------------------------------------------------

    def _request(self) -> tuple[str, str, dict[str, str], bytes]:
        pick, chance = self._random.choice, self._random.random
        method = self._random.choices(
            ("POST", "GET", "HEAD", "OPTIONS", "PUT", "DELETE"), weights=(80, 10, 3, 3, 2, 2)
        )[0]
        url = [
            (name, self._fill(value))
            for name, value in self._random.choices(_SETTINGS, k=pick((0, 0, 0, 0, 0, 1, 1, 2, 5)))
        ]
        headers = dict(self._random.choices(_HEADERS, k=pick((0, 0, 0, 0, 0, 0, 0, 1, 2))))
        if chance() < 0.97:
            headers |= self._credentials()
        if chance() < 0.2:
            url.append(("session_id", pick(("1", "2", "3", "x" * 1000, ""))))
        if chance() < 0.2:
            url.append(("default_format", self._fill(pick(_FORMATS))))
        body = self._statement()
        if chance() < 0.15:
            headers["Content-Type"] = "multipart/form-data; boundary=x"
            url += [("x_structure", self._fill(pick(_COLUMNS))), ("x_format", self._fill(pick(_FORMATS)))]
            url.append(("query", pick(("SELECT * FROM x", body[:2000].decode("utf-8", "surrogateescape")))))
            body = b'--x\r\nContent-Disposition: form-data; name="x"; filename="x"\r\n\r\n1\n2\n\r\n--x--\r\n'[
                : pick((999, 999, 50))
            ]
        elif chance() < 0.3:
            url.append(("query", body[:20_000].decode("utf-8", "surrogateescape")))
            body = pick((b"", b"1\n2\n", self._random.randbytes(500)))
        if chance() < 0.2:
            headers["Content-Encoding"], body = self._encoded(body)
        path = pick(("/",) * 20 + ("/ping", "/metrics", "/readyz", "/nothing", "/%00", "//"))
        return method, path + "?" + urllib.parse.urlencode(url, errors="surrogateescape"), headers, body

    def _credentials(self) -> dict[str, str]:
        role = self._random.choice((*READERS * 3, *ROLES))
        password = PASSWORD if self._random.random() < 0.98 else "wrong"
        if role in ("owner", "writer"):
            return {"X-ClickHouse-User": role, "X-ClickHouse-Key": "wrong"}
        return {"Authorization": "Basic " + base64.b64encode(f"{role}:{password}".encode()).decode()}

    def _statement(self) -> bytes:
        pick = self._random.choice
        text = self._fill(pick(_STATEMENTS)).encode()
        for _ in range(pick((0, 0, 0, 0, 0, 1, 1, 2, 4))):
            at = self._random.randint(0, len(text))
            noise = pick(_NOISE)
            if self._random.random() < 0.1:
                noise *= self._random.randint(1, LONGEST) // len(noise)
            text = text[:at] + noise + text[at + pick((0, 0, 0, 1, 5)) :]
        if self._random.random() < 0.05:
            text = bytes(self._random.choices(range(256), k=100))
        return text

    def _fill(self, text: str) -> str:
        return text.replace("{file}", self._target.file).replace("{planted}", self._target.planted)

    def _encoded(self, body: bytes) -> tuple[str, bytes]:
        encoding = self._random.choice(("gzip", "deflate", "lz4", "zstd"))
        match self._random.randint(0, 5):
            case 0:
                return encoding, self._random.randbytes(300)
            case 1:
                return encoding, _bomb(encoding)
            case 2:
                return encoding, _ENCODE[encoding](body)[:-5]
            case _:
                return encoding, _ENCODE[encoding](body)

    # -- what comes back -----------------------------------------------------------------------------------------------

    def _check(self, said: bytes, encoding: str, sent: str) -> None:
        with suppress(Exception):  # it may be cut off
            said = _DECODE[encoding](said) if encoding else said
        for canary in self._target.canaries:
            if canary in said:
                self.found.faults.append(f"a right too many: {sent}")
        if b"Internal error of the store" in said:
            self.found.faults.append(f"an internal error ({said[:200]!r}): {sent}")
