"""Serve an API compatible with OpenAI's chat completions on loopback: marks in the question choose errors.

It supports the marks of `tests.support.anthropic_server`, and three options: the reported usage (`usage`), the accepted
`response_format` (`modes`), and text around the JSON of a reply (`around`).
"""

import json
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.anthropic_server import AnthropicServer


class OpenAiServer(AnthropicServer):
    """Serve the API; set `judge.base_url` to `server.url`. Without `keys` it requires none."""

    def __init__(
        self, *, modes: Sequence[str] = ("json_schema", "json_object", "text"), around: str = "{}", **options: Any
    ) -> None:
        super().__init__(**options)
        self.url += "/v1"
        self.modes, self.around = modes, around
        #: The usage to report instead of the right one; `...` for the right one.
        self.usage: Any = ...
        self.headers: dict[str, str] = {}
        self.code: str | None = None
        self.heard: list[str | None] = []

    def _routes(self) -> list[Route]:
        return [
            Route("/v1/chat/completions", self._messages, methods=["POST"]),
            Route("/moved/chat/completions", self._moved, methods=["POST"]),
        ]

    async def _moved(self, _: Request) -> Response:
        return RedirectResponse(f"{self.url}/chat/completions", 307)

    def _refusal(self, request: Request) -> Response | None:
        self.heard.append(request.headers.get("authorization"))
        return super()._refusal(request) if self.keys else None

    def _failed(self, status: int) -> Response:
        headers = {"retry-after": self.retry_after} if self.retry_after else {}
        error = {"message": "as the documentation says", "type": "error", "param": None, "code": self.code}
        return JSONResponse({"error": error}, status, headers)

    def _message(
        self, body: dict[str, Any], document: dict[str, Any], what: str, usage: dict[str, int]
    ) -> dict[str, Any]:
        said = super()._message(body, document, what, usage)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": self.around.replace("{}", said["content"][0]["text"]),
        }
        if what == "refuse":
            message |= {"content": None, "refusal": "I cannot."}
        reply = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "length" if what == "truncate" else "stop"}],
            "usage": usage if self.usage is ... else self.usage,
        }
        assert body.get("response_format", {"type": "text"})["type"] in self.modes
        return reply

    def _bill(self, question: str, body: dict[str, Any]) -> dict[str, int]:
        billed = super()._bill(question, body)
        read, written = billed["input_tokens"], billed["output_tokens"]
        return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}

    def _limits(self) -> dict[str, str]:
        return self.headers


def settings_toml(url: str, key: str = "", **more: Any) -> str:
    """Return a settings file for this API."""
    values = {
        "backend": "openai",
        "base_url": url,
        "model": "local-judge",
        "price_input_usd": 0.1,
        "price_output_usd": 0.5,
    }
    values |= {"api_key": key} | more
    return "[judge]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
