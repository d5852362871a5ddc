"""Serve a model to coding agents on loopback: the APIs of OpenAI, Anthropic and Gemini, with answers from a script.

A scene is a list of replies to one prompt: the first to the prompt, the next to the results of the tools, and so on. The scene of
a request is the one whose name is in the last words of the user; any other request is answered with "OK.".
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Event, Thread
from typing import Any, Self
from urllib.parse import urlsplit

Json = dict[str, Any]
_numbers = count()


@dataclass(frozen=True)
class Reply:
    """What the model says: a text, calls of tools as name and arguments, or an HTTP error. `stall` never ends the reply."""

    text: str = ""
    calls: Sequence[tuple[str, Json]] = ()
    status: int = 200
    stall: bool = False
    tokens: int = 100


@dataclass
class AgentModel:
    """A server for the time of a `with` block. `asked` has the path of each request; `stalled` is set while a reply stalls."""

    scenes: Mapping[str, Sequence[Reply]]
    asked: list[str] = field(default_factory=list)
    stalled: Event = field(default_factory=Event)

    def __enter__(self) -> Self:
        self._ending = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()

    def reply(self, prompt: str, done: int) -> Reply:
        """Return the reply to a prompt after so many replies to it."""
        named = [name for name in self.scenes if name in prompt]
        replies = self.scenes[max(named, key=len)] if named else []
        return replies[min(done, len(replies) - 1)] if replies else Reply("OK.")

    def wait(self) -> None:
        """Wait for the end of the test, as a model that thinks for too long."""
        self.stalled.set()
        self._ending.wait()


class _Handler(BaseHTTPRequestHandler):
    model: AgentModel
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Keep the output of tests clean."""

    def do_GET(self) -> None:
        self.model.asked.append(self.path)
        self._json(200, {"data": [], "models": []})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        self.model.asked.append(path)
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if path.endswith(("/count_tokens", ":countTokens")):
            self._json(200, {"input_tokens": 10, "totalTokens": 10})
            return
        api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
        if api is None:
            self._json(404, {"error": {"message": "not here"}})
            return
        prompt, done = api.asked(body)
        reply = self.model.reply(prompt, done)
        if reply.status != 200:
            self._json(
                reply.status,
                {"type": "error", "error": {"type": "invalid_request_error", "message": "refused by the script"}},
            )
        elif api.streams(path, body):
            self._stream(api, reply)
        else:
            self._json(200, api.whole(reply))

    def _stream(self, api: "_Api", reply: Reply) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            for event in api.events(reply):
                name = f"event: {event['type']}\n" if "type" in event else ""
                self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()
            if reply.stall:
                self.model.wait()
            elif api.last:
                self.wfile.write(api.last)
        except OSError:
            pass  # the agent went away
        self.close_connection = True

    def _json(self, status: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Api:
    last = b""

    def asked(self, body: Json) -> tuple[str, int]:
        """Return the last words of the user, and the number of the model's messages after them."""
        raise NotImplementedError

    def streams(self, _path: str, body: Json) -> bool:
        return bool(body.get("stream"))

    def events(self, reply: Reply) -> Iterator[Json]:
        raise NotImplementedError

    def whole(self, reply: Reply) -> Json:
        raise NotImplementedError


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def _place(messages: Sequence[Json], is_prompt: Any, is_reply: Any) -> tuple[int, int]:
    at = max((number for number, message in enumerate(messages) if is_prompt(message)), default=-1)
    return at, sum(bool(is_reply(message)) for message in messages[at + 1 :])


class _Chat(_Api):
    last = b"data: [DONE]\n\n"

    def asked(self, body: Json) -> tuple[str, int]:
        messages = body["messages"]
        at, done = _place(messages, lambda one: one["role"] == "user", lambda one: one["role"] == "assistant")
        return _text(messages[at]["content"]) if at >= 0 else "", done

    def events(self, reply: Reply) -> Iterator[Json]:
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
        if reply.text:
            yield base | {
                "choices": [{"index": 0, "delta": {"role": "assistant", "content": reply.text}, "finish_reason": None}]
            }
        if reply.stall:
            return
        for number, (name, args) in enumerate(reply.calls):
            function = {"name": name, "arguments": json.dumps(args)}
            call = {"index": number, "id": f"call_{next(_numbers)}", "type": "function", "function": function}
            yield base | {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
        usage = {"prompt_tokens": reply.tokens, "completion_tokens": 7, "total_tokens": reply.tokens + 7}
        yield base | {
            "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.calls else "stop"}],
            "usage": usage,
        }

    def whole(self, reply: Reply) -> Json:
        usage = {"prompt_tokens": reply.tokens, "completion_tokens": 7, "total_tokens": reply.tokens + 7}
        message = {"role": "assistant", "content": reply.text}
        return {
            "id": "1",
            "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }


class _Anthropic(_Api):
    def asked(self, body: Json) -> tuple[str, int]:
        def prompt(message: Json) -> bool:
            content = message["content"]
            results = not isinstance(content, str) and any(part.get("type") == "tool_result" for part in content)
            return message["role"] == "user" and not results

        messages = body["messages"]
        at, done = _place(messages, prompt, lambda one: one["role"] == "assistant")
        return _text(messages[at]["content"]) if at >= 0 else "", done

    def events(self, reply: Reply) -> Iterator[Json]:
        message = self.whole(reply) | {"content": [], "stop_reason": None}
        yield {"type": "message_start", "message": message}
        for number, block in enumerate(self._blocks(reply)):
            start = block | ({"text": ""} if block["type"] == "text" else {"input": {}})
            yield {"type": "content_block_start", "index": number, "content_block": start}
            delta: Json = {"type": "text_delta", "text": block.get("text")}
            if block["type"] == "tool_use":
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_delta", "index": number, "delta": delta}
            if reply.stall:
                return
            yield {"type": "content_block_stop", "index": number}
        end = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 7}}
        yield {"type": "message_stop"}

    def whole(self, reply: Reply) -> Json:
        usage = {
            "input_tokens": reply.tokens,
            "output_tokens": 7,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 0,
        }
        own = {
            "id": f"msg_{next(_numbers)}",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "content": self._blocks(reply),
        }
        return own | {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}

    def _blocks(self, reply: Reply) -> list[Json]:
        text = [{"type": "text", "text": reply.text}] if reply.text else []
        calls = [
            {"type": "tool_use", "id": f"toolu_{next(_numbers)}", "name": name, "input": args}
            for n, (name, args) in enumerate(reply.calls)
        ]
        return [*text, *calls]


class _Responses(_Api):
    def asked(self, body: Json) -> tuple[str, int]:
        messages = body["input"]
        at, _ = _place(messages, lambda one: one.get("type") == "message" and one.get("role") == "user", bool)
        kinds = [one.get("type") == "function_call_output" for one in messages[at + 1 :]]
        done = sum(now and not before for before, now in zip([False, *kinds], kinds, strict=False))
        return _text(messages[at].get("content")) if at >= 0 else "", done

    def events(self, reply: Reply) -> Iterator[Json]:
        yield {"type": "response.created", "response": {"id": "resp_1"}}
        items: list[Json] = []
        if reply.text:
            item = {
                "type": "message",
                "role": "assistant",
                "id": "m",
                "content": [{"type": "output_text", "text": reply.text}],
            }
            yield {"type": "response.output_item.added", "item": item | {"content": []}}
            yield {"type": "response.output_text.delta", "delta": reply.text}
            items.append(item)
        if reply.stall:
            return
        for name, args in reply.calls:
            items.append(
                {
                    "type": "function_call",
                    "call_id": f"call_{next(_numbers)}",
                    "name": name,
                    "arguments": json.dumps(args),
                }
            )
        for item in items:
            yield {"type": "response.output_item.done", "item": item}
        usage: Json = {
            "input_tokens": reply.tokens,
            "input_tokens_details": None,
            "output_tokens": 7,
            "output_tokens_details": None,
        }
        yield {
            "type": "response.completed",
            "response": {"id": "resp_1", "usage": usage | {"total_tokens": reply.tokens + 7}},
        }


class _Gemini(_Api):
    def asked(self, body: Json) -> tuple[str, int]:
        def prompt(content: Json) -> bool:
            return content.get("role") == "user" and not any("functionResponse" in part for part in content["parts"])

        contents = body["contents"]
        at, done = _place(contents, prompt, lambda one: one.get("role") == "model")
        return _text(contents[at]["parts"]) if at >= 0 else "", done

    def streams(self, path: str, _body: Json) -> bool:
        return path.endswith(":streamGenerateContent")

    def events(self, reply: Reply) -> Iterator[Json]:
        yield self.whole(reply, done=not reply.stall)

    def whole(self, reply: Reply, *, done: bool = True) -> Json:
        parts: list[Json] = [{"text": reply.text}] if reply.text else []
        parts += [
            {"functionCall": {"id": f"call_{next(_numbers)}", "name": name, "args": args}}
            for n, (name, args) in enumerate(reply.calls)
        ]
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        usage = {"promptTokenCount": reply.tokens, "candidatesTokenCount": 7, "totalTokenCount": reply.tokens + 7}
        return {
            "candidates": [candidate | ({"finishReason": "STOP"} if done else {})],
            "usageMetadata": usage,
            "modelVersion": "m-1",
        }


_APIS: dict[str, _Api] = {
    "/chat/completions": _Chat(),
    "/v1/messages": _Anthropic(),
    "/responses": _Responses(),
    ":generateContent": _Gemini(),
    ":streamGenerateContent": _Gemini(),
}
