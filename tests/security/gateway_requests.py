"""Requests that a gateway should refuse or survive, each with the answers that are right: a function of its seed.

`attack(seed, number)` returns one. Most bodies are small; about one in fifty is as large as the gateway reads, or larger.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from assay_gateway.otlp_wire import field as encoded
from assay_gateway.otlp_wire import varint
from assay_schema.ids import new_event_id
from tests.support.gateway import event

MIB = 1 << 20
EVENTS, TRACES, LANGFUSE = "/v1/events", "/v1/traces", "/api/public/otel/v1/traces"
LOGS, METRICS, FEEDBACK = "/v1/logs", "/v1/metrics", "/v1/feedback"
JSON, NDJSON, PROTOBUF = "application/json", "application/x-ndjson", "application/x-protobuf"
#: No answer: the gateway closed the connection, which is right if what came was no HTTP or never ended.
CLOSED = 0
#: One in so many bodies is large.
LARGE_EVERY = 50
#: Levels of a value at which protobuf's parser gives up, and those around it.
LEVELS = (1, 10, 44, 45, 46, 47, 48, 49, 50, 51, 96, 97, 98, 99, 100, 101, 500, 5_000)


@dataclass(frozen=True)
class Attack:
    """A request: its parts are sent one after the other, with a pause before each except the first."""

    name: str
    #: Statuses of the answer that are right.
    right: frozenset[int]
    parts: tuple[bytes, ...]
    pause_s: float = 0.0
    #: Close the sending side at the end, as a client that dies does.
    ends: bool = False


@dataclass
class _Body:
    """A body on its way: what it is sent to, as what."""

    name: str
    content: bytes
    right: set[int]
    path: str = EVENTS
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


Make = Callable[[random.Random], _Body]


def attack(seed: int, number: int, keys: dict[str, str]) -> Attack:
    """Return an attack. `keys` has one of each kind: `ingest`, `feedback`, `read`, `expired`."""
    choices = random.Random(f"{seed}/{number}")
    if choices.random() < 0.06:
        return choices.choice(_NO_HTTP)(choices, keys["ingest"])
    makers = _LARGE if number % LARGE_EVERY == LARGE_EVERY - 1 else _SMALL
    body = _packed(choices, choices.choice(makers)(choices))
    return _sent(choices, body, keys)


# Bodies of events.


def _events(choices: random.Random, count: int = 3) -> list[dict[str, Any]]:
    return [event(event_id=new_event_id(), service=choices.choice(["search", "chat"])) for _ in range(count)]


def _truncated_array(choices: random.Random) -> _Body:
    whole = json.dumps(_events(choices)).encode()
    return _Body("truncated array", whole[: choices.randrange(len(whole))], {400})


def _truncated_lines(choices: random.Random) -> _Body:
    whole = b"\n".join(json.dumps(each).encode() for each in _events(choices))
    return _Body("truncated lines", whole[: choices.randrange(len(whole))], {200, 400}, media_type=NDJSON)


def _damaged(choices: random.Random, whole: bytes) -> bytes:
    made = bytearray(whole)
    noise = (
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"\0",
        b"\xff",
        b"\xc3\x28",
        b"\\ud800",
        b"\xed\xa0\x80",
        b"1e999",
        b"\n",
    )
    for _ in range(choices.randint(1, 5)):
        place = choices.randrange(len(made) + 1)
        match choices.randrange(4):
            case 0:
                del made[place : place + choices.randint(1, 30)]
            case 1:
                made[place:place] = choices.choice(noise)
            case 2:
                made[place:place] = choices.randbytes(choices.randint(1, 8))
            case _:
                made[place:place] = made[: choices.randrange(len(made) + 1)]
    return bytes(made)


def _damaged_events(choices: random.Random) -> _Body:
    lines = choices.random() < 0.5
    made = [json.dumps(each).encode() for each in _events(choices)]
    whole = b"\n".join(made) if lines else b"[" + b",".join(made) + b"]"
    return _Body("damaged events", _damaged(choices, whole), {200, 400}, media_type=NDJSON if lines else JSON)


def _bad_event(choices: random.Random) -> _Body:
    bad: list[Any] = [
        {}, 7, None, "x", [], [[]], {"kind": "other"}, event(kind="answer"), event(payload=None), event(payload=[]),
        event(event_id="7"), event(event_id="ffffffff-ffff-7fff-bfff-ffffffffffff"), event(event_id=5), event(project="other"),
        event(event_id="01995a3c-8f2e-4c41-9b0d-2f6e8a1c4d55"), event(schema_version=2), event(occurred_at="yesterday"),
        event(occurred_at=-1), event(service=""), event(service="x" * 5_000), event(session_id="x" * 5_000),
        event(payload={"tool_name": "query"}), event(payload={"query": "x" * 60_000}),
    ]  # fmt: skip
    made = [choices.choice(bad) for _ in range(choices.randint(1, 40))]
    return _Body("bad events", json.dumps(made).encode(), {400})


def _bad_text(choices: random.Random) -> _Body:
    text = choices.choice(
        [b"\xff\xfe", b"\xc3\x28", b"\\ud800", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\0", b"\x1f", b"\\x41"]
    )
    whole = json.dumps([event()]).encode().replace(b"how long", b"how " + text)
    return _Body("bad text", whole, {400})


def _bad_number(choices: random.Random) -> _Body:
    number = choices.choice([b"NaN", b"Infinity", b"1e999", b"9" * 5_000, b"0x1", b"1.", b"--1", b"01", b"-"])
    whole = json.dumps([event()]).encode().replace(b"12.5", number)
    return _Body("bad number", whole, {400})


def _deep(choices: random.Random) -> _Body:
    levels, opened = choices.choice([65, 80, 100, 300, 2_000, 50_000]), choices.choice([(b'{"a":', b"}"), (b"[", b"]")])
    inner = opened[0] * levels + b"1" + opened[1] * levels * choices.randint(0, 1)
    whole = json.dumps([event()]).encode().replace(b"12.5", b'12.5,"params":{"a":' + inner + b"}")
    return _Body("deep events", whole, {400})


def _no_batch(choices: random.Random) -> _Body:
    made = (
        b"", b"null", b"{}", b"7", b'"x"', b"[", b"]", b"[[", b"[}", b"[,]", b"[1,]", b"[]x", b'{"events":{}}', b'{"events":[]', b"\0",
        b'{"events":[],"more":1}', b"\xef\xbb\xbf[]", "[]".encode("utf-16"), b"PK\x03\x04", b" " * 70_000 + b"[]", b"[" * 60_000,
    )  # fmt: skip
    return _Body("no batch", choices.choice(made), {400})


def _too_many(choices: random.Random) -> _Body:
    unit, separator, media_type = choices.choice([(b"{}", b",", JSON), (b"0", b",", JSON), (b"{}", b"\n", NDJSON)])
    joined = separator.join([unit] * 10_001)
    return _Body("too many", joined if media_type == NDJSON else b"[" + joined + b"]", {400}, media_type=media_type)


def _many_bad(choices: random.Random) -> _Body:
    unit = choices.choice([b"{}", b"0", b'{"kind":"x"}', b'{"kind":"retrieval","payload":{}}', b"[]", b'{"a":[{}]}'])
    return _Body("many bad", b"[" + b",".join([unit] * choices.randint(100, 2_000)) + b"]", {400})


# Bodies of spans.


def _value(text: str) -> dict[str, Any]:
    return {"stringValue": text}


def _span(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "traceId": "ab" * 16,
        "spanId": f"{number:016x}",
        "name": "chat m",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000001000000000",
        "attributes": [{"key": "gen_ai.input.messages", "value": _value("[]")}],
    } | changes


def _request(*spans: Any) -> bytes:
    resource = {"attributes": [{"key": "service.name", "value": _value("shop")}]}
    return json.dumps(
        {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}
    ).encode()


_IDS = b"\x0a\x10" + b"\xab" * 16 + b"\x12\x08" + b"\xcd" * 8
_MARK = encoded(0x4A, b"\x0a\x15gen_ai.input.messages" + encoded(0x12, encoded(0x0A, b"[]")))


def _binary(*spans: bytes) -> bytes:
    scoped = encoded(0x12, encoded(0x0A, encoded(0x0A, b"lib")) + b"".join(encoded(0x12, each) for each in spans))
    name = encoded(0x0A, encoded(0x0A, b"\x0a\x0cservice.name" + encoded(0x12, encoded(0x0A, b"shop"))))
    return encoded(0x0A, name + scoped)


def _damaged_spans(choices: random.Random) -> _Body:
    if choices.random() < 0.5:
        whole = _binary(*[_IDS + _MARK for _ in range(5)])
        return _Body(
            "damaged protobuf", _damaged(choices, whole), {200, 400}, choices.choice([TRACES, LANGFUSE, LOGS]), PROTOBUF
        )
    whole = _request(*[_span(number) for number in range(1, 6)])
    return _Body(
        "damaged JSON spans", _damaged(choices, whole), {200, 400}, choices.choice([TRACES, LANGFUSE, LOGS]), JSON
    )


def _truncated_spans(choices: random.Random) -> _Body:
    if choices.random() < 0.5:
        whole = _binary(*[_IDS + _MARK for _ in range(5)])
        return _Body("truncated protobuf", whole[: choices.randrange(1, len(whole))], {400}, TRACES, PROTOBUF)
    whole = _request(*[_span(number) for number in range(1, 6)])
    return _Body("truncated JSON spans", whole[: choices.randrange(len(whole))], {400}, TRACES, JSON)


def _random_bytes(choices: random.Random) -> _Body:
    content = b"\x0f" + choices.randbytes(choices.randint(0, 3_000))
    return _Body("random protobuf", content, {400}, choices.choice([TRACES, LOGS, LANGFUSE]), PROTOBUF)


def _wrong_wire(choices: random.Random) -> _Body:
    long = varint(choices.choice([1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1, 1 << 20]))
    made = (
        b"\x0a" + long + b"gen_ai.", b"\x0b\x0c", b"\x0f", b"\x0a\x02\x12\x05", b"\x00\x00", b"\x0a" + b"\xff" * 11, b"\x02\x00",
        encoded(0x0A, encoded(0x12, b"\x12" + long)), encoded(0x0A, b"\x12" + long), b"\xff" * 20, b"\x09\x00",
    )  # fmt: skip
    return _Body("wrong wire", choices.choice(made), {400}, TRACES, PROTOBUF)


def _bad_ids(choices: random.Random) -> _Body:
    if choices.random() < 0.5:
        trace, span = choices.choice(
            [
                (b"", b"\1" * 8),
                (b"\1" * 16, b""),
                (bytes(16), b"\1" * 8),
                (b"\1" * 15, b"\1" * 8),
                (b"\1" * 16, bytes(8)),
            ]
        )
        return _Body("bad ids", _binary(encoded(0x0A, trace) + encoded(0x12, span) + _MARK), {400}, TRACES, PROTOBUF)
    bad = choices.choice(
        [
            {"traceId": ""},
            {"traceId": "0" * 32},
            {"traceId": "zz" * 16},
            {"spanId": 7},
            {"spanId": None},
            {"traceId": []},
            {"spanId": "a a a a "},
        ]
    )
    return _Body("bad ids", _request(_span(1, **bad)), {400}, TRACES, JSON)


def _deep_spans(choices: random.Random) -> _Body:
    levels = choices.choice(LEVELS)
    if choices.random() < 0.5:
        value = encoded(0x0A, b"x")
        for _ in range(levels):
            value = encoded(0x2A, encoded(0x0A, value))
        right = {200} if levels <= 40 else {400} if levels >= 60 else {200, 400}
        return _Body(
            "deep protobuf",
            _binary(_IDS + _MARK + encoded(0x4A, b"\x0a\x01k" + encoded(0x12, value))),
            right,
            TRACES,
            PROTOBUF,
        )
    inner = '{"arrayValue":{"values":[' * levels + _json(_value("x")) + "]}}" * levels
    right = {200} if levels <= 50 else {400} if levels >= 100 else {200, 400}
    span = _json(_span(1)).replace(
        '"[]"', f'"[]"}}}},{{"key":"k","value":{inner}}},{{"key":"l","value":{{"stringValue":"l"'
    )
    return _Body("deep JSON spans", _request("SPAN").replace(b'"SPAN"', span.encode()), right, TRACES, JSON)


def _json(value: Any) -> str:
    return json.dumps(value)


def _odd_spans(choices: random.Random) -> _Body:
    odd = [
        {"attributes": 7}, {"attributes": [None, 7, {}, {"key": 5}, {"key": "gen_ai.x", "value": 3}]}, {"events": {"a": 1}}, {"links": "x"},
        {"startTimeUnixNano": "x"}, {"startTimeUnixNano": -1}, {"flags": "many"}, {"status": 3}, {"name": None}, {"name": ["x"]},
        {"kind": 99}, {"endTimeUnixNano": 1e300}, {"parentSpanId": "zz"}, {"droppedAttributesCount": "x"},
    ]  # fmt: skip
    return _Body("odd spans", _request(_span(1) | choices.choice(odd), _span(2)), {200}, TRACES, JSON)


def _no_request(choices: random.Random) -> _Body:
    made = (
        b"", b"[", b"[]", b"1", b"null", b"{", b'{"resourceSpans"', b'{"resourceSpans":{}}', b'{"resourceSpans":[7]}', b'{"a":tru}',
        b'{"resourceSpans":[{"scopeSpans":"gen_ai."}]}', b'{"resourceSpans":[{"scopeSpans":[{"spans":["gen_ai."]}]}]}', b"{}{}", b"{},",
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"a":1}}]}]}', b'{"resourceSpans":[}', b"[" * 60_000, b'{"x":' * 60_000, b'{"x":"',
        b'{"a" 1}',
    )  # fmt: skip
    return _Body("no request", choices.choice(made), {400}, TRACES, JSON)


def _many_places(choices: random.Random) -> _Body:
    count = choices.choice([50, 3_000])
    made = b"".join(_binary(b"\x0a\x10" + number.to_bytes(16, "big") + _IDS[18:] + _MARK) for number in range(1, count))
    return _Body("many places", made, {200}, TRACES, PROTOBUF)


def _too_many_spans(choices: random.Random) -> _Body:
    marked = choices.random() < 0.5
    if choices.random() < 0.5:
        return _Body("too many spans", _binary(*[_MARK if marked else b""] * 50_001), {400}, TRACES, PROTOBUF)
    return _Body("too many spans", _request(*[{"gen_ai.": 1} if marked else {}] * 50_001), {400}, TRACES, JSON)


def _fields(choices: random.Random) -> _Body:
    unit = choices.choice([b"\x0a\x00", b"\x18\x01", b"\x1a\x00", b"\x12\x00"])
    return _Body("no spans", unit * 100_001 + b"\x1a\x07gen_ai.", {400}, choices.choice([TRACES, LOGS]), PROTOBUF)


# Other routes.


def _metrics(choices: random.Random) -> _Body:
    return _Body(
        "metrics", choices.randbytes(choices.randint(0, 500)), {200}, METRICS, choices.choice([JSON, PROTOBUF])
    )


def _verdict(choices: random.Random) -> _Body:
    target = {"event_id": new_event_id()}
    bad: list[Any] = [
        {}, [], None, 7, {"target": target}, {"target": target, "verdict": "fine"}, {"target": {"event_id": "7"}, "verdict": "negative"},
        {"target": target, "verdict": "negative", "text": "x" * 5_000}, {"target": target, "verdict": "negative", "more": 1},
        {"target": target, "verdict": "negative", "id": ""}, {"target": [target], "verdict": "negative"},
    ]  # fmt: skip
    whole = json.dumps(choices.choice(bad)).encode()
    return _Body("bad verdict", _damaged(choices, whole) if choices.random() < 0.3 else whole, {400}, FEEDBACK)


# Large bodies: as large as the gateway reads, or larger.


def _too_large(choices: random.Random) -> _Body:
    path, media_type = choices.choice(
        [(EVENTS, JSON), (EVENTS, NDJSON), (TRACES, JSON), (TRACES, PROTOBUF), (METRICS, PROTOBUF)]
    )
    return _Body("too large", bytes(17 * MIB), {413}, path, media_type)


def _bomb(choices: random.Random) -> _Body:
    inside = choices.choice(
        [bytes(64 * MIB), b"[" * (17 * MIB), b"[" + b"{}," * (6 * MIB) + b"{}]", gzip.compress(bytes(64 * MIB), 1)]
    )
    path, media_type = choices.choice(
        [(EVENTS, JSON), (EVENTS, NDJSON), (TRACES, JSON), (TRACES, PROTOBUF), (METRICS, JSON)]
    )
    right = {400, 413} if path != METRICS else {200, 413}
    return _Body("bomb", gzip.compress(inside, 1), right, path, media_type, {"Content-Encoding": "gzip"})


def _large_events(choices: random.Random) -> _Body:
    members = json.dumps({str(number): 1 for number in range(80_000)})
    items = {
        "members": (members, 13, {400}),
        "params": (json.dumps(event(payload=event()["payload"] | {"params": json.loads(members)})), 13, {400}),
        "text": (json.dumps(event(payload=event()["payload"] | {"query": "x" * (MIB - 2_000)})), 15, {400}),
        "oversize": (json.dumps(event(padding="x" * (2 * MIB))), 7, {400}),
        "kinds": ('{"kind":"' + "x" * 1_500 + '"}', 10_000, {400}),
        "bare": ('{"kind":"retrieval","payload":{"tool_name":"search","query":"' + "x" * 1_500 + '"}}', 10_000, {400}),
        "backslashes": ('{"a":"' + "\\\\" * (7 * MIB) + '"}', 1, {400}),
        "lists": (json.dumps(event(payload={"args_summary": {"a": [[]] * 200_000}})), 15, {400}),
        "arguments": (
            json.dumps(event(payload={"args_summary": json.loads(members.replace(": 1", ": {}"))})),
            12,
            {400},
        ),
        "near the limit": (json.dumps(event(payload={"args_summary": {str(n): {} for n in range(32_000)}})), 30, {400}),
        "brackets": ("[" + "[]," * 4_000 + "[]]", 1_000, {400}),
        "numbers": ("9" * MIB, 15, {400}),
        "floats": ("[" + "1.2345678901234567e-300," * 40_000 + "1]", 15, {400}),
    }
    name = choices.choice(list(items))
    item, count, right = items[name]
    lines = choices.random() < 0.3
    joined = ("\n" if lines else ",").join([item] * count)
    return _Body(
        f"large events: {name}",
        (joined if lines else f"[{joined}]").encode(),
        right,
        media_type=NDJSON if lines else JSON,
    )


def _large_spaces(choices: random.Random) -> _Body:
    unit = choices.choice([b" ", b"\n", b" \n", b"\t", b"\r\n"])
    space = unit * (15 * MIB // len(unit))
    content, right = choices.choice(
        [(space, {200, 400}), (b"[]" + space, {200, 400}), (b"[" + space + b"]", {200, 400}), (space + b"{}", {400})]
    )
    media_type = choices.choice([JSON, NDJSON])
    return _Body("large white space", content, right, EVENTS, media_type)


def _members() -> bytes:
    return b",".join(b'"%070d":1' % number for number in range(190_000))


def _objects() -> bytes:
    return b",".join(b'{"%040d":"%040d"}' % (number, number) for number in range(150_000))


def _scopes() -> bytes:
    named = (encoded(0x0A, encoded(0x0A, b"%d" % number)) for number in range(40_000))
    return encoded(0x0A, b"".join(encoded(0x12, scope + encoded(0x12, _IDS + _MARK)) for scope in named))


def _large_spans(choices: random.Random) -> _Body:
    kinds: dict[str, tuple[Callable[[], bytes], set[int], str]] = {
        "members": (lambda: _request(_span(1))[:-1] + b"," + _members() + b"}", {400}, JSON),
        "one text": (lambda: _request(_span(1, name="y" * (15 * MIB))), {400}, JSON),
        "wide text": (lambda: _request(_span(1, name="QQ")).replace(b"QQ", "\U0001f600".encode() * (3 * MIB)), {400}, JSON),
        "dicts": (lambda: _request(_span(1, more=["QQ"])).replace(b'"QQ"', _objects()), {400}, JSON),
        "texts": (lambda: _request(*[_span(n, name="y" * 1_000_000) for n in range(1, 16)]), {200}, JSON),
        "spans": (lambda: _request(*[_span(n, name="y" * 1_300) for n in range(1, 9_000)]), {200}, JSON),
        "attributes": (lambda: _binary(*[_IDS + _MARK + b"\x4a\x00" * 500_000] * 15), {200}, PROTOBUF),
        "events": (lambda: _binary(*[_IDS + _MARK + b"\x5a\x00" * 500_000] * 15), {200}, PROTOBUF),
        "others": (lambda: _binary(_IDS + _MARK, *[_IDS + b"\x4a\x00" * 500_000] * 15), {200}, PROTOBUF),
        "scopes": (_scopes, {200}, PROTOBUF),
        "one span": (lambda: _binary(_IDS + _MARK + encoded(0x2A, b"y" * (15 * MIB))), {400}, PROTOBUF),
        "empty": (lambda: _binary(*[b""] * (7 * MIB)), {400}, PROTOBUF),
        "near marks": (lambda: _binary(_IDS + encoded(0x2A, b"gen_ai,openinference.span.kin,llm.request.typ," * 300_000)), {200}, PROTOBUF),
        "marks": (lambda: _binary(_IDS + encoded(0x2A, b"gen_ai." * 2_000_000)), {400}, PROTOBUF),
    }  # fmt: skip
    name = choices.choice(list(kinds))
    make, right, media_type = kinds[name]
    return _Body(f"large spans: {name}", make(), right, TRACES, media_type)


_SMALL: tuple[Make, ...] = (
    _truncated_array, _truncated_lines, _damaged_events, _damaged_events, _bad_event, _bad_text, _bad_number, _deep, _no_batch, _many_bad,
    _damaged_spans, _damaged_spans, _truncated_spans, _random_bytes, _wrong_wire, _bad_ids, _deep_spans, _odd_spans, _no_request,
    _metrics, _verdict,
)  # fmt: skip
_LARGE: tuple[Make, ...] = (
    _too_large, _bomb, _large_events, _large_events, _large_spaces, _large_spans, _large_spans,
    _too_many, _too_many_spans, _fields, _many_places,
)  # fmt: skip


# How a body is sent.


def _packed(choices: random.Random, body: _Body) -> _Body:
    """Compress some bodies, some of them wrongly."""
    if "Content-Encoding" in body.headers or choices.random() < 0.6:
        return body
    encoding = choices.choice(["gzip", "deflate"])
    packed = (gzip.compress if encoding == "gzip" else zlib.compress)(body.content, 1)
    wrong = choices.random()
    if len(body.content) > 16 * MIB:
        body.right = {413}
    elif wrong < 0.1:
        packed, body.right = packed[: choices.randrange(1, len(packed))], {400}
    elif wrong < 0.2:
        packed, body.right = packed + choices.choice([b"\0", packed, b"x" * 100]), {400}
    elif wrong < 0.3:
        packed, body.right = choices.randbytes(20) + packed, {400}
    elif wrong < 0.4:
        encoding, body.right = choices.choice(["br", "zstd", "gzip, gzip", "compress", "x" * 500, "\xe9"]), {415}
    body.content = packed
    body.headers["Content-Encoding"] = encoding
    body.name += ", packed"
    return body


def _sent(choices: random.Random, body: _Body, keys: dict[str, str]) -> Attack:
    right, path, method, key = body.right, body.path, "POST", keys["feedback" if body.path == FEEDBACK else "ingest"]
    headers = {"Host": "a", "Content-Type": body.media_type, **body.headers}
    if len(body.content) > 16 * 1024 and path == FEEDBACK:
        right = {413, 415} if "Content-Encoding" in headers else {413}
    match choices.randrange(24):
        case 0:
            headers["Content-Type"], right = (
                choices.choice(["text/csv", "", "application/xml", "application/json; charset=utf-16", "a" * 999]),
                {415},
            )
        case 1:
            key, right = choices.choice(
                [
                    ("", {401}),
                    ("assay_", {401}),
                    (keys["expired"], {401}),
                    (key[:-1] + "0", {401}),
                    (keys["read"], {403}),
                ]
            )
        case 2 if path != FEEDBACK:
            key, right = keys["feedback"], {403}
        case 3:
            method, right = choices.choice(["GET", "PUT", "DELETE", "PATCH", "HEAD", "TRACE"]), {405}
        case 4:
            path, right = (
                choices.choice(
                    [
                        "/",
                        "/v1",
                        "/v1/event",
                        "/v1/events/",
                        "/../v1/events",
                        "/v1/traces%00",
                        "//v1/events",
                        "/metrics",
                        "/x" * 500,
                    ]
                ),
                {404},
            )
        case 5:
            headers["X-Request-Id"] = choices.choice(["a" * 65, "\x01", "a b", "../../x", "é"])
            right = right | {400} if headers["X-Request-Id"] == "\x01" else right
        case 6:
            headers["Expect"] = choices.choice(["100-continue", "200-ok"])
    if key and choices.random() < 0.3:
        headers["Authorization"] = f"Basic {base64.b64encode(f':{key}'.encode()).decode()}"
    elif key:
        headers["Authorization"] = f"Bearer {key}"
    chunked = choices.random() < 0.3
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in headers.items() if text)]
    lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body.content)}")
    head = "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")
    parts = tuple(_chunks(choices, body.content)) if chunked else (body.content,)
    return Attack(f"{body.name}{', chunked' if chunked else ''}", frozenset(right), (head, *parts))


def _chunks(choices: random.Random, content: bytes) -> list[bytes]:
    least = max(1, len(content) // 30)
    made, place = [], 0
    while place < len(content):
        size = choices.randint(least, 4 * least)
        part = content[place : place + size]
        made.append(b"%x\r\n%b\r\n" % (len(part), part))
        place += size
    return [*made, b"0\r\n\r\n"]


# What is no HTTP, or never ends.


def _head(key: str, *lines: str) -> bytes:
    return "\r\n".join(
        ["POST /v1/events HTTP/1.1", "Host: a", f"Authorization: Bearer {key}", f"Content-Type: {JSON}", *lines, "", ""]
    ).encode()


def _slow_body(choices: random.Random, key: str) -> Attack:
    parts = [_head(key, "Content-Length: 1000"), *[b" "] * choices.randint(1, 4)]
    return Attack("slow body", frozenset({408}), tuple(parts), pause_s=0.5)


def _slow_head(_choices: random.Random, key: str) -> Attack:
    return Attack(
        "slow head",
        frozenset({CLOSED}),
        tuple(_head(key)[place : place + 20] for place in range(0, 80, 20)),
        pause_s=0.5,
    )


def _cut_off(choices: random.Random, key: str) -> Attack:
    whole = json.dumps([event()]).encode()
    kept = whole[: choices.randrange(len(whole))]
    return Attack("cut off", frozenset({CLOSED, 408}), (_head(key, f"Content-Length: {len(whole)}"), kept), ends=True)


def _wrong_length(choices: random.Random, key: str) -> Attack:
    length = choices.choice(["-1", "1e3", "0x10", "9" * 30, "5, 5", " ", "+2", "2\r\nContent-Length: 3"])
    return Attack(
        "wrong length", frozenset({CLOSED, 400, 413}), (_head(key, f"Content-Length: {length}"), b"[]"), ends=True
    )


def _wrong_chunks(choices: random.Random, key: str) -> Attack:
    chunks = choices.choice(
        [
            b"zz\r\n[]\r\n0\r\n\r\n",
            b"2\r\n[]0\r\n\r\n",
            b"-2\r\n[]",
            b"f" * 40 + b"\r\n[]",
            b"2\r\n[",
            b"2;" + b"x" * 5_000 + b"\r\n[]\r\n0\r\n\r\n",
        ]
    )
    right = frozenset({CLOSED, 200, 400, 408, 413})
    return Attack("wrong chunks", right, (_head(key, "Transfer-Encoding: chunked"), chunks), ends=True)


def _both_lengths(_choices: random.Random, key: str) -> Attack:
    head = _head(key, "Transfer-Encoding: chunked", "Content-Length: 3")
    return Attack("both lengths", frozenset({CLOSED, 400}), (head, b"2\r\n[]\r\n0\r\n\r\n"), ends=True)


def _long_head(choices: random.Random, key: str) -> Attack:
    line = choices.choice(["X-Long: " + "a" * 200_000, "X-A: b\r\n" * 20_000 + "X: y"])
    return Attack("long head", frozenset({CLOSED, 400, 431}), (_head(key, line),), ends=True)


def _noise(choices: random.Random, _key: str) -> Attack:
    noise = choices.choice(
        [
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"GET\r\n\r\n",
            b"\0" * 1_000,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            choices.randbytes(300),
            b"\r\n" * 500,
        ]
    )
    return Attack("noise", frozenset({CLOSED, 400, 404, 405}), (noise,), ends=True)


_NO_HTTP = (_slow_body, _slow_head, _cut_off, _cut_off, _wrong_length, _wrong_chunks, _both_lengths, _long_head, _noise)
