"""Serve the Anthropic API on loopback over a real socket: verdicts, errors, limits, usage, batches.

It behaves as the API's documentation describes. The verdict is computed: a claim is each sentence of the answer, supported if a passage
contains it word for word. Errors are chosen by marks in the question (`[fail:429]`, `[truncate]`, `[refuse]`, `[malformed]`, `[slow]`,
`[cut]`, `[once:...]` for the first attempt only), or by `chance`, at random with a seed. It counts every request and the billed cost.
"""

import asyncio
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.ports import free_port

KEY = "test-key-of-no-account"
#: Prices of the tests' model, in nano-dollars per token.
INPUT, OUTPUT = 100, 500
_MARK = re.compile(r"\[(once:)?(fail:(\d{3})|truncate|refuse|malformed|misfit|half|sorry|slow|cut|nothing)\]")


class AnthropicServer:
    """Serve with `with AnthropicServer() as server`; set `judge.base_url` to `server.url`."""

    def __init__(
        self,
        *,
        chance: float = 0.0,
        seed: int = 7,
        slow_s: float = 30.0,
        latency_s: float = 0.0,
        retry_after: str | None = None,
        reply: Callable[[dict[str, Any]], str] | None = None,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.chance, self.slow_s, self.latency_s, self.retry_after = chance, slow_s, latency_s, retry_after
        self.reply = reply or verdict
        self.keys = {KEY}
        self.random = random.Random(seed)
        #: Requests by question; outcomes of calls; billed tokens and nano-dollars.
        self.asked: Counter[str] = Counter()
        self.billed: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.nano = 0
        self.at: list[float] = []
        self.bodies: list[dict[str, Any]] = []
        self.batches: dict[str, list[dict[str, Any]]] = {}
        self.batch_open = False
        self._lines: dict[str, list[str]] = {}
        self._dead: set[int] = set()
        config = uvicorn.Config(Starlette(routes=self._routes()), port=self.port, log_level="critical", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + 60
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=60)

    def _routes(self) -> list[Route]:
        return [
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/messages/batches", self._create, methods=["POST"]),
            Route("/v1/messages/batches/{batch}", self._retrieve),
            Route("/v1/messages/batches/{batch}/results", self._results),
        ]

    # One call

    def _refusal(self, request: Request) -> Response | None:
        key = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key")
        if key not in self.keys:
            return _error(401, "authentication_error")
        return None

    async def _messages(self, request: Request) -> Response:
        self.at.append(time.monotonic())
        if (refused := self._refusal(request)) is not None:
            self.ended["401"] += 1
            return refused
        body = await request.json()
        self.bodies.append(body)
        document = json.loads(body["messages"][-1]["content"])
        question = document.get("question") or first_words(document)
        self.asked[question] += 1
        what = self._what(question, self.asked[question])
        await asyncio.sleep(self.latency_s)
        if what.startswith("fail:"):
            self.ended[what[5:]] += 1
            return self._failed(int(what[5:]))
        if what == "slow":
            self.ended["slow"] += 1
            self._bill(question, body)  # a client that disconnects still pays
            await asyncio.sleep(self.slow_s)
            return _error(504, "timeout_error")
        if what == "cut":
            self.ended["cut"] += 1
            self._bill(question, body)
            return _Cut()
        usage = self._bill(question, body)
        self.ended[what or "ok"] += 1
        reply = JSONResponse(self._message(body, document, what, usage), headers=self._limits())
        if what == "half":  # the body ends before the length in its headers
            return Response(bytes(reply.body)[: len(reply.body) // 2], media_type="application/json")
        if what == "sorry":  # some gateways always answer 200
            return JSONResponse({"type": "error", "error": {"type": "api_error", "message": "as some gateways do"}})
        return reply

    def _what(self, question: str, asked: int) -> str:
        found = _MARK.search(question)
        if found and (not found[1] or asked == 1):
            return found[2]
        if self.random.random() < self.chance:
            return self.random.choice(["fail:429", "fail:529", "fail:500", "slow", "cut", "malformed", "truncate"])
        return ""

    def _failed(self, status: int) -> Response:
        kinds = {400: "invalid_request_error", 402: "billing_error", 403: "permission_error", 413: "request_too_large"}
        kinds |= {429: "rate_limit_error", 529: "overloaded_error"}
        headers = {"retry-after": self.retry_after} if self.retry_after and status in (429, 529) else {}
        return _error(status, kinds.get(status, "api_error"), headers)

    def _message(
        self, body: dict[str, Any], document: dict[str, Any], what: str, usage: dict[str, int]
    ) -> dict[str, Any]:
        text = self.reply(document)
        stop = "end_turn"
        match what:
            case "truncate":
                text, stop = text[: len(text) // 2], "max_tokens"
            case "refuse":
                text, stop = "", "refusal"
            case "malformed":
                text = "Here is my verdict: {"
            case "misfit":
                text = json.dumps({"claims": [{"id": "c1", "verdict": "supported"}], "relevancy": "yes", "note": "x"})
            case "nothing":
                text = json.dumps({"claims": [], "relevancy": "no"})
        return {
            "id": f"msg_{len(self.bodies)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": text}],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }

    def _bill(self, question: str, body: dict[str, Any]) -> dict[str, int]:
        read, written = len(json.dumps(body)) // 4, 60
        self.billed[question] += 1
        self.nano += read * INPUT + written * OUTPUT
        return {
            "input_tokens": read,
            "output_tokens": written,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        }

    def _limits(self) -> dict[str, str]:
        return {
            "anthropic-ratelimit-requests-limit": "100000",
            "anthropic-ratelimit-requests-remaining": "99999",
            "anthropic-ratelimit-requests-reset": "2026-01-02T03:04:05Z",
        }

    # Batches

    async def _create(self, request: Request) -> Response:
        if (refused := self._refusal(request)) is not None:
            return refused
        requests = (await request.json())["requests"]
        for each in requests:
            question = json.loads(each["params"]["messages"][0]["content"])["question"]
            if found := re.search(r"\[refused:(\d{3})\]", question):  # as in the API, the whole batch is refused
                self.ended[found[1]] += 1
                return self._failed(int(found[1]))
        name = f"msgbatch_{len(self.batches) + 1}"
        self.batches[name] = requests
        self._lines[name] = [
            self._result(each) for each in requests
        ]  # accepted requests are billed, whether fetched or not
        return JSONResponse(self._batch(name))

    async def _retrieve(self, request: Request) -> Response:
        if (refused := self._refusal(request)) is not None:
            return refused
        if request.path_params["batch"] not in self.batches:
            error = {"type": "not_found_error", "message": "no such batch"}
            return JSONResponse({"type": "error", "error": error}, status_code=404)
        return JSONResponse(self._batch(request.path_params["batch"]))

    def _batch(self, name: str) -> dict[str, Any]:
        ended = not self.batch_open
        counts = {"processing": 0, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
        counts["succeeded" if ended else "processing"] = len(self.batches[name])
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": "2026-01-02T03:04:05Z",
            "expires_at": "2026-01-03T03:04:05Z",
            "ended_at": "2026-01-02T03:05:05Z" if ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{self.url}/v1/messages/batches/{name}/results" if ended else None,
        }

    async def _results(self, request: Request) -> Response:
        lines = reversed(self._lines[request.path_params["batch"]])  # in any order
        return Response("\n".join(lines) + "\n", media_type="application/x-jsonl")

    def _result(self, request: dict[str, Any]) -> str:
        body = request["params"]
        document = json.loads(body["messages"][0]["content"])
        what = self._what(document["question"], 1)
        result: dict[str, Any]
        if what.startswith("fail:"):
            error = {"type": "error", "error": {"type": "api_error", "message": "no"}, "request_id": None}
            result = {"type": "errored", "error": error}
        elif what == "slow":
            result = {"type": "expired"}
        else:
            usage = self._bill(document["question"], body)
            result = {"type": "succeeded", "message": self._message(body, document, what, usage)}
        return json.dumps({"custom_id": request["custom_id"], "result": result})


class _Cut(Response):
    """A reply whose connection is cut."""

    async def __call__(self, _scope: Any, _receive: Any, send: Any) -> None:
        head = [(b"content-length", b"1000"), (b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b'{"id":', "more_body": True})
        raise ConnectionResetError


def _error(status: int, kind: str, headers: dict[str, str] | None = None) -> Response:
    body = {"type": "error", "error": {"type": kind, "message": "as the documentation says"}, "request_id": "req_1"}
    return JSONResponse(body, status, headers)


def first_words(document: dict[str, Any]) -> str:
    """Return the first words of the session that a message is about, after the name of its step."""
    step = "asked" if "asked" in document else "session"
    pieces = document.get(step, {}).get("pieces", [])
    return next((f"{step}: {piece['text']}" for piece in pieces if piece.get("role") == "user"), "")


def verdict(document: dict[str, Any]) -> str:
    """Return a correct judge's verdict for a case whose claims are sentences that a passage contains, or not."""
    claims = []
    for number, sentence in enumerate(re.split(r"(?<=[.])\s+", document["answer"]), 1):
        plain = re.sub(r"\s*\[\d+\]", "", sentence)
        holds = [passage for passage in document["passages"] if plain in passage["text"]]
        cited = [p["id"] for p in document["passages"] if f"[{p['marker']}]" in sentence]
        claims.append(
            {
                "id": f"c{number}",
                "text": plain,
                "citations": cited,
                "evidence_quote": plain if holds else "",
                "verdict": "supported" if holds else "not_found",
                "cited_ok": [any(passage["id"] == name for passage in holds) for name in cited],
            }
        )
    return json.dumps({"claims": claims, "relevancy": "yes"})
