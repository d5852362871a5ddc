"""One producer process: `python -m tests.chaos.load ORDER`, with the order as JSON.

It writes what it tries to `<ledger>.attempted` and what was handed over to `<ledger>.sent`, one `event_id` a line, each line in one step
after the fact: what stands there when it is killed is true. Parts of sessions are in `<ledger>.sessions` before they are sent. It ends
with 0 when everything is handed over.
"""

import itertools
import json
import os
import random
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

import orjson
from pydantic import SecretStr

from assay_capture import Capture
from assay_capture.redis_transport import RedisTransport
from assay_schema.ids import event_ms, new_event_id
from assay_schema.limits import ITEMS_MAX, QUERY_MAX_CHARS, TEXT_MAX_BYTES
from assay_schema.settings import CaptureSettings, RedisSettings, Settings
from tests.chaos.sessions import Part, Sessions, written
from tests.chaos.traces import Trace

#: Most events between two looks at the clock and two lines in the ledger.
CHUNK = 200
TEXT = "which function parses a date that a person typed, and what does it raise when there is none? "


@dataclass(frozen=True)
class Order:
    """What one producer is to do."""

    #: `raw`: pre-built events, pipelined as many SDKs together would. `post`: the same in requests to the gateway. `trace`: spans, in
    #: requests to the gateway. `sdk`: the SDK as producers use it, over HTTP if there is a `gateway`.
    how: str
    redis: str
    ledger: str
    events: int
    #: Events per second.
    rate: float
    #: The producer's name, by which the store's rows are told apart.
    service: str
    seed: int
    spool: str = ""
    #: How wrong the producer's clock is, in seconds.
    skew_s: float = 0.0
    timeout_s: float = 3.0
    high_water: int = 1_000_000
    large: bool = False
    #: After so many ordinary events only large ones; -1 for never.
    large_after: int = -1
    #: Settings of Redis beside its address.
    topology: dict[str, str | int] = field(default_factory=dict)
    #: Address of the gateway, and a key of its project; empty for Redis.
    gateway: str = ""
    key: str = ""

    def text(self) -> str:
        """As the command line wants it."""
        return json.dumps(asdict(self))


class Notes:
    """Lines that are in the file when the call returns."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, lines: list[str]) -> None:
        os.write(self._file, "".join(f"{line}\n" for line in lines).encode())


def noted(path: Path) -> list[str]:
    """The whole lines of a ledger file; one that was cut off by a kill is not a line."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def payloads(rng: random.Random, target: str, *, large: bool = False) -> dict[str, Any]:
    """A kind and its payload: mostly retrievals, some of every other kind; or a large one. A session's is empty: see `sessions.py`."""
    return _large(rng, target) if large else _ordinary(rng, target)


def _large(rng: random.Random, target: str) -> dict[str, Any]:
    """A query as long as may be, or an answer whose texts reach their limits and whose entry almost reaches its own."""
    words = TEXT * (TEXT_MAX_BYTES // len(TEXT))
    if rng.random() < 0.6:
        hits = list(range(ITEMS_MAX))
        query = (TEXT * (QUERY_MAX_CHARS // len(TEXT) + 1))[:QUERY_MAX_CHARS]
        retrieval = {"tool_name": "query", "query": query, "retrieved_slugs": ["a"], "retrieved_chunk_ids": hits}
        return {"kind": "retrieval", "payload": retrieval | {"latency_ms": 1.0}}
    contexts = [{"id": f"handbook/page-{n}", "text": words} for n in range(rng.randint(1, 2))]
    answer = {"query": TEXT, "answer": words, "contexts": contexts, "citations": [], "model": "m", "latency_ms": 8.5}
    return {"kind": "answer", "payload": answer | {"retrieval_event_id": target}}


def _ordinary(rng: random.Random, target: str) -> dict[str, Any]:
    choice = rng.random()
    words = TEXT * rng.randint(1, 4)
    if choice < 0.9:
        hits = rng.sample(range(100_000), 6)
        return {
            "kind": "retrieval",
            "payload": {
                "tool_name": rng.choice(("query", "search")),
                "query": words,
                "retrieved_slugs": [f"handbook/page-{hit}" for hit in hits],
                "retrieved_chunk_ids": hits,
                "latency_ms": rng.uniform(1, 90),
            },
        }
    if choice < 0.92:
        return _of_an_agent(rng)
    if choice < 0.95:
        return {"kind": "session", "payload": {}}
    if choice < 0.98:
        answer = {"query": TEXT, "answer": words, "contexts": [], "citations": [], "model": "m", "latency_ms": 8.5}
        return {"kind": "answer", "payload": answer | {"retrieval_event_id": target}}
    return {"kind": "feedback", "payload": {"target_event_id": target, "verdict": "positive", "text": TEXT}}


def _of_an_agent(rng: random.Random) -> dict[str, Any]:
    """A tool call, or an event of a tool server."""
    now = datetime.now(UTC).isoformat()
    kind = rng.choice(("tool_call", "tool_call", "server_event"))
    event: dict[str, Any] = {"timestamp": now, "server_session_id": "run", "kind": kind}
    if kind == "server_event":
        return {"kind": kind, "payload": event | {"event_subtype": "server_start", "message": TEXT}}
    status = rng.choice(("success", "empty", "error"))
    call = {
        "tool_name": rng.choice(("read", "bash")),
        "args_summary": {"q": TEXT},
        "status": status,
        "duration_ms": 1.5,
    }
    return {"kind": kind, "payload": event | call}


def event_id(skew_s: float) -> str:
    """A fresh id by a clock that is wrong by so much."""
    fresh = new_event_id()
    if not skew_s:
        return fresh
    ms = event_ms_of(fresh) + int(skew_s * 1000)
    return f"{ms >> 16:08x}-{ms & 0xFFFF:04x}{fresh[13:]}"


def event_ms_of(text: str) -> int:
    from uuid import UUID

    return event_ms(UUID(text))


def builder(order: Order, sessions: Sessions, tried: list[Part]) -> Callable[[], tuple[str, bytes]]:
    """Makes events fast: bodies are built beforehand, each event gets an id and a time of its own. Adds parts of sessions to `tried`."""
    rng = random.Random(order.seed)
    bodies: list[bytes | None] = []
    for _ in range(20 if order.large else 500):
        payload = payloads(rng, new_event_id(), large=order.large)
        bodies.append(None if payload["kind"] == "session" else _body(order, payload))
    endless = itertools.cycle(bodies)

    def build() -> tuple[str, bytes]:
        identity, body = event_id(order.skew_s), next(endless)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if body is None:
            tried.append(sessions.draw()._replace(event_id=identity))
            body = _body(order, {"kind": "session", "payload": _session(tried[-1], now)})
        return identity, f'{{"event_id":"{identity}","occurred_at":"{now}",'.encode() + body

    return build


def _body(order: Order, payload: dict[str, Any]) -> bytes:
    """An event but for its id and time, and without the brace before them."""
    return orjson.dumps({"schema_version": 1, "project": "chaos", "service": order.service, **payload})[1:]


def _session(part: Part, now: str) -> dict[str, Any]:
    said = [{"role": "user", "parts": [{"text": TEXT}]}]
    names = {"session_id": part.session_id, "revision": part.revision, "part": part.part, "parts": part.parts}
    return names | {"digest": f"{part.revision:x}", "created": now, "request": {"contents": said}, "response": {}}


def raw(order: Order, attempted: Notes, sent: Notes) -> None:
    """Send each chunk until Redis has acknowledged all of it. A time-out makes second entries, as with any producer."""
    settings = _redis(order)
    link = RedisTransport(settings)

    def deliver(events: list[bytes]) -> None:
        entries = [(number % settings.shards, data) for number, data in enumerate(events)]
        while entries := link.send(entries).failed:
            time.sleep(0.1)

    _prebuilt(order, attempted, sent, deliver)


def post(order: Order, attempted: Notes, sent: Notes) -> None:
    """POST each chunk until the gateway answers 200, as a program without the SDK would."""
    headers = {"Authorization": f"Bearer {order.key}", "Content-Type": "application/x-ndjson"}

    def deliver(events: list[bytes]) -> None:
        request = urllib.request.Request(f"{order.gateway}/v1/events", b"\n".join(events), headers)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=order.timeout_s + 5) as answer:
                    if json.load(answer)["accepted"] == len(events):
                        return
                raise SystemExit("the gateway rejected events that are well")
            except (OSError, HTTPException):
                time.sleep(0.1)

    _prebuilt(order, attempted, sent, deliver)


def trace(order: Order, attempted: Notes, sent: Notes) -> None:
    """POST spans until the gateway answers 200: those inside first, then their roots, as an instrumented program does."""
    pace = Pace(order.rate)
    for size in chunks(order):
        traces = [Trace.of(order.service) for _ in range(max(1, size // 2))]
        names = [name for each in traces for name in each.event_ids]
        attempted.add(names)
        for spans in ([each.inside for each in traces], [each.root for each in traces]):
            _post_spans(order, b"".join(spans))
        sent.add(names)
        pace.wait(len(names))


def _post_spans(order: Order, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {order.key}", "Content-Type": "application/x-protobuf"}
    request = urllib.request.Request(f"{order.gateway}/v1/traces", body, headers)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=order.timeout_s + 5) as answer:
                if not answer.read():
                    return
            raise SystemExit("the gateway rejected spans that are well")
        except (OSError, HTTPException):
            time.sleep(0.1)


def _prebuilt(order: Order, attempted: Notes, sent: Notes, deliver: Callable[[list[bytes]], None]) -> None:
    sessions, tried = Sessions(random.Random(order.seed), f"{order.service}/{order.seed}"), list[Part]()
    parts_noted = Notes(f"{order.ledger}.sessions")
    build, pace, done = builder(order, sessions, tried), Pace(order.rate), 0
    for size in chunks(order):
        if 0 <= order.large_after <= done:
            build = builder(replace(order, large=True, large_after=-1), sessions, tried)
            order = replace(order, large_after=-1)
        done += size
        events = [build() for _ in range(size)]
        names = [identity for identity, _ in events]
        attempted.add(names)
        parts_noted.add(written(tried))
        tried.clear()
        deliver([data for _, data in events])
        sent.add(names)
        pace.wait(size)


def sdk(order: Order, attempted: Notes, sent: Notes) -> None:
    """Capture as a program does."""
    capture = capture_for(order)
    hand_over(capture, order, attempted, sent)
    close(capture, order)


def capture_for(order: Order) -> Capture:
    """The `Capture` of a process."""
    capture_settings = CaptureSettings(
        enabled=True,
        project="chaos",
        spool_dir=Path(order.spool),
        queue_entries=20_000,
        high_water_entries=order.high_water,
        url=order.gateway or None,
        key=SecretStr(order.key),
        timeout_s=order.timeout_s + 5,
    )
    return Capture(Settings(redis=_redis(order), capture=capture_settings), service=order.service)


def hand_over(capture: Capture, order: Order, attempted: Notes, sent: Notes) -> None:
    """Capture an order's events. A chunk counts as sent once `flush` says that it is safe and nothing was dropped."""
    rng, pace, dropped = random.Random(order.seed), Pace(order.rate), 0
    for size in chunks(order):
        names = []
        for _ in range(size):
            names.append(_captured(capture, payloads(rng, new_event_id(), large=order.large)))
            attempted.add(names[-1:])  # at once: what is in the spool must be in the books, whenever this is killed
        while not capture.flush(1.0):
            pass
        before, dropped = dropped, sum(capture.stats().dropped.values())
        if dropped == before:
            sent.add(names)
        pace.wait(size)


def close(capture: Capture, order: Order) -> None:
    """End it, and write down what it dropped."""
    capture.close(30.0)
    if dropped := sum(capture.stats().dropped.values()):
        Notes(f"{order.ledger}.dropped").add([str(dropped)])


def _captured(capture: Capture, event: dict[str, Any]) -> str:
    kind, payload = event["kind"], dict(event["payload"])
    if kind in ("tool_call", "server_event"):
        for name in ("timestamp", "kind"):  # the SDK's own
            del payload[name]
    if kind == "session":  # the SDK has no verb for it: imports publish sessions
        kind, payload = "feedback", {"target_event_id": new_event_id(), "verdict": "positive"}
    return str(getattr(capture, kind)(**payload))


def _redis(order: Order) -> RedisSettings:
    values = {"url": order.redis, "connect_timeout_s": 1, "command_timeout_s": order.timeout_s, **order.topology}
    return RedisSettings.model_validate(values)


def chunks(order: Order) -> list[int]:
    """Sizes that add up, ten a second."""
    size = max(1, min(CHUNK, round(order.rate / 10)))
    return [size] * (order.events // size) + ([order.events % size] if order.events % size else [])


class Pace:
    """Keeps to a rate, and does not hurry to make up for what a fault took."""

    def __init__(self, rate: float) -> None:
        self._each = 1 / rate
        self._due = time.monotonic()

    def wait(self, events: int) -> None:
        now = time.monotonic()
        self._due = max(self._due + events * self._each, now - 0.5)
        time.sleep(max(0.0, self._due - now))


def main(text: str, with_sdk: Callable[[Order, Notes, Notes], None] = sdk) -> None:
    """Carry an order out."""
    order = Order(**json.loads(text))
    how = {"raw": raw, "post": post, "trace": trace, "sdk": with_sdk}[order.how]
    how(order, Notes(f"{order.ledger}.attempted"), Notes(f"{order.ledger}.sent"))


if __name__ == "__main__":
    main(sys.argv[1])
