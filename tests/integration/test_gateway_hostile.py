"""Hostile clients of the gateway: they get an answer or are cut off, nothing of theirs is stored, and others are served meanwhile."""

import contextlib
import gzip
import random
import socket
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from assay_gateway.connection import HEAD_BYTES
from tests.support.gateway import Gateway, event, running_gateway
from tests.support.wait import until

#: Answers to a request whose body is not what it should be. 500 is none of them.
EXPECTED = {200, 400, 408, 413, 415}
SEED = 20260501


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway"), ASSAY_GATEWAY_BODY_TIMEOUT_S="1") as running:
        yield running


@pytest.fixture
def key(gateway: Gateway) -> str:
    made = gateway.key()
    assert gateway.post([], made).status == 200
    return made


@pytest.fixture(autouse=True)
def still_served(gateway: Gateway) -> Iterator[None]:
    """After each test the gateway answers, has forgotten every body, keeps to its memory, and had no bug."""
    yield
    assert gateway.post([event()], gateway.key()).status == 200
    until(lambda: gateway.metric("assay_gateway_in_flight_bytes") == 0, "bodies are still counted")
    assert gateway.metric("assay_memory_peak_bytes") < gateway.metric("assay_memory_bound_bytes")
    assert gateway.metric('assay_gateway_requests_total{route="events",status="500"}') == 0
    assert "Traceback" not in gateway.log()


def head(key: str, length: int | str, **headers: str) -> bytes:
    told = {"Host": "a", "Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    told |= {"Content-Length": str(length)} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in told.items() if value]
    return "\r\n".join(["POST /v1/events HTTP/1.1", *lines, "", ""]).encode()


def connect(gateway: Gateway) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), timeout=60)


def rest_of(connection: socket.socket) -> bytes:
    """Return what the gateway sends until it closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            found += data
    return found


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_a_body_that_ends_early_is_not_stored(gateway: Gateway, key: str) -> None:
    sent = event()
    body = orjson.dumps([sent])
    before = len(gateway.stored())
    for kept in (0, 1, len(body) // 2, len(body) - 1):
        with connect(gateway) as connection:
            connection.sendall(head(key, len(body)) + body[:kept])
    assert len(gateway.stored()) == before


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "99999999999999999999999", "5, 5", " "])
def test_a_length_that_is_no_number_is_refused(gateway: Gateway, key: str, length: str) -> None:
    with connect(gateway) as connection:
        connection.sendall(head(key, length))
        connection.shutdown(socket.SHUT_WR)
        answer = rest_of(connection)
    assert not answer or status_of(answer) in {400, 413, 415}


def test_a_length_and_chunks_at_once_are_refused(gateway: Gateway, key: str) -> None:
    with connect(gateway) as connection:
        connection.sendall(head(key, 2, Transfer_Encoding="chunked") + b"2\r\n[]\r\n0\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = rest_of(connection)
    assert not answer or status_of(answer) in EXPECTED


def test_chunks_without_a_length_are_read_to_the_limit_only(gateway: Gateway, key: str) -> None:
    with connect(gateway) as connection:
        connection.sendall(head(key, "", Transfer_Encoding="chunked"))
        with contextlib.suppress(ConnectionError):
            for _ in range(17):
                connection.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
        assert status_of(connection.recv(65536)) == 413


def test_a_slow_body_is_cut_off_and_counts_no_longer(gateway: Gateway, key: str) -> None:
    with connect(gateway) as connection:
        connection.sendall(head(key, 100) + b"[")
        answer = rest_of(connection)
    assert status_of(answer) == 408
    assert b"connection: close" in answer


def test_an_endless_head_is_cut_off(gateway: Gateway, key: str) -> None:
    with connect(gateway) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"POST /v1/events HTTP/1.1\r\nX-Long: ")
        for _ in range(64 * HEAD_BYTES // 4096):
            connection.sendall(b"a" * 4096)
        pytest.fail("the gateway read it all") if not rest_of(connection) else None


def test_a_client_that_sends_no_head_is_cut_off_and_one_that_sends_blank_lines_too(gateway: Gateway, key: str) -> None:
    with connect(gateway) as silent, connect(gateway) as blank:
        blank.sendall(b"\r\n\r\n")
        assert rest_of(silent) == rest_of(blank) == b""


def test_what_is_not_http_is_refused(gateway: Gateway, key: str) -> None:
    for noise in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"\0" * 1000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ):
        with connect(gateway) as connection:
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            answer = rest_of(connection)
        assert not answer or status_of(answer) in {400, 404, 405}, noise


def test_a_thousand_idle_connections_hold_nobody_up(gateway: Gateway, key: str) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(1_000):
            connection = stack.enter_context(connect(gateway))
            connection.sendall(head(key, 100)[: number % 50 + 1])
        assert gateway.post([event()], key).status == 200


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip of zeros": lambda: gzip.compress(bytes(1 << 28), 1),
    "gzip of brackets": lambda: gzip.compress(b"[" * (1 << 24), 1),
    "gzip of empty events": lambda: gzip.compress(b"[" + b"{}," * (5 << 20) + b"{}]", 1),
    "gzip of one string": lambda: gzip.compress(b'[{"a":"' + b"a" * (15 << 20) + b'"}]', 1),
    "gzip of quotes": lambda: gzip.compress(b'[{"a":"' + b'\\"' * (7 << 20) + b'"}]', 1),
    "gzip of numbers": lambda: gzip.compress(b"[" + b"9" * (15 << 20) + b"]", 1),
    "gzip in gzip": lambda: gzip.compress(gzip.compress(bytes(1 << 28), 1), 1),
    "many members": lambda: gzip.compress(b"") * 10_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused(gateway: Gateway, key: str, bomb: str) -> None:
    answer = gateway.post(BOMBS[bomb](), key, Content_Encoding="gzip")
    assert answer.status in {400, 413}
    assert len(answer.body) < 100_000


BODIES: dict[str, Callable[[], bytes]] = {
    "deep": lambda: orjson.dumps([event(payload={})])[:-3] + b'{"a":' * 70 + b"1" + b"}" * 73 + b"]",
    "bad utf-8": lambda: orjson.dumps([event()]).replace(b"how long", b"how \xff\xfe\xc3\x28"),
    "lone surrogate": lambda: orjson.dumps([event()]).replace(b"how long", b"\\ud800"),
    "huge number": lambda: orjson.dumps([event()]).replace(b"12.5", b"9" * 100_000),
    "not a number": lambda: orjson.dumps([event()]).replace(b"12.5", b"NaN"),
    "huge text": lambda: orjson.dumps([event()]).replace(b"how long", b"x" * (2 << 20)),
    "long name": lambda: orjson.dumps([{"x" * (1 << 20): 1}]),
    "many members": lambda: orjson.dumps([{str(number): 1 for number in range(200_000)}]),
    "repeated members": lambda: b"[{" + b'"kind":"answer",' * 50_000 + b'"kind":"retrieval"}]',
    "byte order mark": lambda: b"\xef\xbb\xbf[]",
    "utf-16": lambda: "[]".encode("utf-16"),
    "nul": lambda: b"[\0]",
    "array of arrays": lambda: b"[[[]]]",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("media_type", ["application/json", "application/x-ndjson"])
def test_a_hostile_body_is_refused_and_nothing_of_it_is_stored(
    gateway: Gateway, key: str, body: str, media_type: str
) -> None:
    before = len(gateway.stored())
    answer = gateway.post(BODIES[body](), key, Content_Type=media_type)
    assert answer.status in {400, 413}
    assert len(answer.body) < 100_000
    assert len(gateway.stored()) == before


def mutated(choices: random.Random, body: bytes) -> bytes:
    """Return a body with a few random changes."""
    found = bytearray(body)
    for _ in range(choices.randint(1, 4)):
        place = choices.randrange(len(found) + 1)
        match choices.randrange(5):
            case 0:
                del found[place : place + choices.randint(1, 20)]
            case 1:
                found[place:place] = bytes(choices.choices(range(256), k=choices.randint(1, 5)))
            case 2:
                found[place:place] = choices.choice([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b"\0", b"\xff", b"\\u"])
            case 3:
                found[place:place] = found[: choices.randrange(len(found) + 1)]
            case _:
                del found[place:]
    return bytes(found)


@pytest.mark.parametrize("form", ["array", "ndjson", "gzip", "deflate"])
def test_fuzzed_bodies_are_answered_and_only_valid_events_are_stored(gateway: Gateway, key: str, form: str) -> None:
    choices = random.Random(SEED)
    headers: dict[str, str] = {"Content_Type": "application/x-ndjson"} if form == "ndjson" else {}
    if form in ("gzip", "deflate"):
        headers["Content_Encoding"] = form
    pack = {"gzip": gzip.compress, "deflate": zlib.compress}.get(form, bytes)
    accepted, before = 0, len(gateway.stored())
    for _ in range(250):
        events: list[Any] = [event() for _ in range(2)]
        plain = b"\n".join(map(orjson.dumps, events)) if form == "ndjson" else orjson.dumps(events)
        body = mutated(choices, pack(plain)) if choices.random() < 0.5 else pack(mutated(choices, plain))
        answer = gateway.post(body, key, **headers)
        assert answer.status in EXPECTED, body
        accepted += answer.json.get("accepted", 0)
    assert len(gateway.stored()) == before + accepted
