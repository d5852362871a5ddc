"""Client for OpenAI's chat completions: OpenAI itself, a gateway, or a local model.

These APIs differ in details: how a reply is forced to be JSON (`judge.json_mode`), whether usage is reported, what an
error means. An invalid reply costs the reserved amount; reported usage is accepted only where it is plausible.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx

from assay_judge.api import (
    STOPPING,
    BadReplyError,
    CallError,
    Calls,
    Prompt,
    Said,
    StoppedError,
    TryAgainError,
    refusal_of,
    retry_after,
)
from assay_judge.pricing import Usage, bound_tokens
from assay_schema.settings import JudgeSettings

#: Default API, unless `judge.base_url` is set.
OPENAI = "https://api.openai.com/v1"
#: Maximum length of a reply, in bytes.
REPLY_MAX_BYTES = 4 * 1024 * 1024
#: Time until a limit resets, as these APIs write it: `1s`, `6m0s`, `20ms`.
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}


class OpenAiApi(Calls):
    """Client for single calls to an OpenAI-compatible API."""

    def __init__(self, settings: JudgeSettings, key: str) -> None:
        self._settings = settings
        self._url = f"{(settings.base_url or OPENAI).rstrip('/')}/chat/completions"
        headers = {"authorization": f"Bearer {key}"} if key else {}
        # Redirects are not followed: the key is for the configured address only.
        self._client = httpx.AsyncClient(headers=headers, timeout=settings.request_timeout_s, follow_redirects=False)

    async def ask(self, prompt: Prompt, timeout_s: float) -> Said:
        """Make one attempt. Raises a `CallError`, whose class says how to proceed."""
        try:
            async with asyncio.timeout(timeout_s):
                status, headers, body = await self._post(body_of(prompt, self._settings))
        except TimeoutError:
            raise TryAgainError("APITimeoutError", None) from None
        except httpx.ConnectError:
            raise TryAgainError("APIConnectionError") from None
        except httpx.TransportError:
            raise TryAgainError("APIConnectionError", None) from None
        if status != 200:
            raise failure(status, headers, body)
        if body is None:
            raise BadReplyError("ReplyTooLong", None)
        reply = _object(body)
        usage = usage_in(reply, bound_tokens(len(prompt.message.encode())), self._settings.max_output_tokens)
        return Said(text_in(reply, usage), usage, None, pause_of(headers))

    async def _post(self, body: dict[str, Any]) -> tuple[int, Mapping[str, str], bytes | None]:
        """Return status, headers and body; None for a body that is too long."""
        async with self._client.stream("POST", self._url, json=body) as response:
            content = bytearray()
            async for part in response.aiter_bytes():
                content += part
                if len(content) > REPLY_MAX_BYTES:
                    return response.status_code, response.headers, None
            return response.status_code, response.headers, bytes(content)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def body_of(prompt: Prompt, settings: JudgeSettings) -> dict[str, Any]:
    """Build the body of a request. If the API does not enforce the schema, the prompt contains it."""
    system, form = prompt.system, {}
    match settings.json_mode:
        case "json_schema":
            schema = {"name": "reply", "strict": True, "schema": prompt.schema}
            form = {"response_format": {"type": "json_schema", "json_schema": schema}}
        case "json_object":
            form = {"response_format": {"type": "json_object"}}
    if settings.json_mode != "json_schema":
        system += f"\nYour reply is one JSON object that fits this JSON Schema:\n{json.dumps(prompt.schema)}\n"
    # OpenAI's newer models refuse the old name of this limit, and most other APIs accept only the old one.
    most = "max_completion_tokens" if host_of(settings) == urlsplit(OPENAI).netloc else "max_tokens"
    messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt.message}]
    return {"model": settings.model, "messages": messages, most: settings.max_output_tokens, "stream": False} | form


def host_of(settings: JudgeSettings) -> str:
    """Return the API's host, with the port unless it is the default."""
    return urlsplit(settings.base_url or OPENAI).netloc.lower()


def endpoint_of(settings: JudgeSettings) -> str:
    """Return the API's host, and its path unless it is that of most APIs.

    A gateway may have a model at each path. The path is hashed, because it may contain a key.
    """
    path = urlsplit(settings.base_url or OPENAI).path.strip("/")
    usual = path in ("", urlsplit(OPENAI).path.strip("/"))
    return host_of(settings) if usual else f"{host_of(settings)} {sha256(path.encode()).hexdigest()[:16]}"


def _object(body: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        raise BadReplyError("ReplyUnreadable", None) from None
    if not isinstance(reply, dict):
        raise BadReplyError("ReplyUnreadable", None)
    return reply


def text_in(reply: Mapping[str, Any], usage: Usage | None) -> str:
    """Return the JSON in a complete reply, or the text in its place.

    Raises `BadReplyError` with its usage.
    """
    try:
        choice = reply["choices"][0]
        message, finish = choice["message"], choice.get("finish_reason")
        text, refusal = message.get("content"), message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise BadReplyError("ReplyUnreadable", usage) from None
    if finish == "length":
        raise BadReplyError("ReplyTruncated", usage)
    if refusal or finish == "content_filter":
        raise BadReplyError("ReplyRefused", usage)
    if not isinstance(text, str):
        raise BadReplyError("ReplyUnreadable", usage)
    said = text.rpartition("</think>")[2].strip()  # some models think aloud first
    if said.startswith("```"):
        said = said.removesuffix("```").partition("\n")[2]
    return said


def usage_in(reply: Mapping[str, Any], most_read: int, most_written: int) -> Usage | None:
    """Return the reported tokens; None if absent or implausible.

    Zero, or more than was sent or allowed, is implausible.
    """
    usage = reply.get("usage")
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(read) is not int or type(written) is not int:
        return None
    if not (0 < read <= most_read and 0 <= written <= most_written):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    cached = cached if type(cached) is int and 0 <= cached <= read else 0
    return Usage(input=read - cached, output=written, cache_read=cached)


def failure(status: int, headers: Mapping[str, str], body: bytes | None) -> CallError:
    """Classify an HTTP error. Pure."""
    name = f"Http{status}"
    if status < 400:
        return StoppedError(f"{name}: the API has moved to another address; check judge.base_url", status)
    if status == 429 and _code(body) == "insufficient_quota":
        return StoppedError(f"{name}: {STOPPING[402]}; see judge.api_key", status)
    if status in {400, 422} and _code(body) != "context_length_exceeded":
        failed = refusal_of(
            status, f"{name}: the model does not accept judge.json_mode, judge.max_output_tokens or the text", headers
        )
    else:
        failed = refusal_of(status, name, headers)
    failed.pause_s = max(retry_after(headers), pause_of(headers)) if isinstance(failed, TryAgainError) else 0.0
    return failed


def _code(body: bytes | None) -> object:
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
        return json.loads(body or b"")["error"]["code"]
    return None


def pause_of(headers: Mapping[str, str]) -> float:
    """Return the seconds until an exhausted limit resets."""
    pause = 0.0
    for what in ("requests", "tokens"):
        with contextlib.suppress(KeyError, ValueError):
            if int(headers[f"x-ratelimit-remaining-{what}"]) <= 0:
                reset = headers[f"x-ratelimit-reset-{what}"]
                spans = _SPAN.findall(reset)
                pause = max(
                    pause, sum(float(number) * _SECONDS[unit] for number, unit in spans) if spans else float(reset)
                )
    return pause
